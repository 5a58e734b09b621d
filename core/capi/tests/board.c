/* The board of examples/firmware.c: the virtual link. */
#include "bench.h"

uint64_t board_ticks(void *context);
int32_t board_send(void *context, const uint8_t *message, size_t length);
int32_t board_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length);
int32_t board_discard(void *context);
uint64_t board_random(void);
void board_keep(const uint8_t *bytes, size_t length);
int32_t assess_and_keep(void);
int32_t answer_for_ever(void);
int32_t answer_misconfigured(void);

static loopback board;
static LOGGAP_ALIGNAS uint8_t responder[LOGGAP_RESPONDER_BYTES(LARGEST)];
static uint8_t kept[LOGGAP_PROFILE_BYTES];
static size_t kept_length;
static uint32_t times;
/* Whether the initiator of script.c is at the other end. */
static int scripted;
static uint32_t readings, readings_before;

uint64_t board_ticks(void *context) {
  (void)context;
  readings++;
  board.now += READING;
  return board.now / 40000;
}

int32_t board_send(void *context, const uint8_t *message, size_t length) {
  (void)context;
  if (scripted) return script_send(0, message, length);
  loggap_link table = loopback_link(&board);
  return table.send(&board, message, length);
}

int32_t board_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length) {
  (void)context;
  if (readings_before == 0) readings_before = readings;
  if (scripted) return script_poll(0, buffer, capacity, length);
  loggap_link table = loopback_link(&board);
  if (board.over) return -5;
  return table.poll_receive(&board, buffer, capacity, length);
}

int32_t board_discard(void *context) {
  (void)context;
  loggap_link table = loopback_link(&board);
  return table.discard(&board);
}

uint64_t board_random(void) { return 7; }

void board_keep(const uint8_t *bytes, size_t length) {
  times++;
  kept_length = length;
  for (size_t i = 0; i < length; i++) kept[i] = bytes[i];
}

void test_firmware(void) {
  loopback_begin(&board, 211, responder, sizeof responder);
  stack_paint();
  CHECK_OK(assess_and_keep());
  /* As examples/firmware.c has it, which wants no report. */
  put_ram("loggap_assess", LOGGAP_ASSESS_BYTES(1024, 8, 12, 12), sizeof(loggap_profile),
          stack_used());
  static loggap_profile profile;
  CHECK_OK(loggap_profile_decode(kept, kept_length, &profile, 0));
  CHECK(times == 1 && profile.range_count >= 1 && profile.ranges[0].first == 1);
  int64_t gap = profile.ranges[0].gap.at_one.value;
  CHECK(gap > GAP_SHORT - GAP_SHORT / 20 && gap < GAP_SHORT + GAP_SHORT / 20);
  board.over = 1;
  CHECK_STATUS(answer_for_ever(), LOGGAP_STATUS_LINK, 0);
  CHECK_STATUS(answer_misconfigured(), LOGGAP_STATUS_OPTION, 0);
  scripted = 1;
  readings = readings_before = 0;
  script_begin(board_random());
  CHECK_STATUS(answer_for_ever(), LOGGAP_STATUS_LINK, 0);
  script_check();
  /* Its clock was calibrated before anything was waited for. */
  CHECK(readings_before > 10);
}
