/* The board of examples/firmware.c: the virtual link, or three peers one after
 * the other. */
#include "bench.h"

uint64_t board_ticks(void *context);
int32_t board_send(void *context, const uint8_t *message, size_t length);
int32_t board_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length);
int32_t board_discard(void *context);
uint64_t board_random(void);
void board_next_peer(void);
void board_keep(const uint8_t *bytes, size_t length);
int32_t assess_and_keep(void);
int32_t answer_for_ever(void);
int32_t answer_misconfigured(void);

static loopback board;
static LOGGAP_ALIGNAS uint8_t responder[LOGGAP_RESPONDER_BYTES(LARGEST)];
static uint8_t kept[LOGGAP_PROFILE_BYTES];
static size_t kept_length;
static uint32_t times;
static uint32_t readings, readings_before;
/* Who sends now, from 1; 0: the other end is that of the virtual link. */
static uint32_t sender;
/* Whom the link hears; 0: anybody. */
static uint32_t heard;
/* Messages dropped because they are not from whom the link hears. */
static uint32_t dropped;
/* What the board's random number is: the worst one. */
#define RANDOM 0
#define NONCE (RANDOM | 1)

uint64_t board_ticks(void *context) {
  (void)context;
  readings++;
  board.now += READING;
  return board.now / 40000;
}

int32_t board_send(void *context, const uint8_t *message, size_t length) {
  (void)context;
  if (sender != 0) return script_send(0, message, length);
  loggap_link table = loopback_link(&board);
  return table.send(&board, message, length);
}

/* The first and the third peer play the script of script.c. The second one says
 * hello without the number that it has to echo, and nothing more. */
static int32_t poll_peers(uint8_t *buffer, size_t capacity, size_t *length) {
  if (sender == 1 && script_is_over()) {
    script_check();
    script_begin(0);
    sender = 2;
  } else if (sender == 2 && heard == 2) {
    CHECK(script_answer(0) == LOGGAP_FRAME_KIND_CHALLENGE);
    script_begin(NONCE);
    sender = 3;
  }
  if (heard != 0 && heard != sender) {
    board.now += 1000000000000;
    return ++dropped < 1000 ? 0 : -9;
  }
  int32_t arrived = script_poll(0, buffer, capacity, length);
  if (arrived == 1) heard = sender;
  return arrived;
}

int32_t board_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length) {
  (void)context;
  if (readings_before == 0) readings_before = readings;
  if (sender != 0) return poll_peers(buffer, capacity, length);
  loggap_link table = loopback_link(&board);
  if (board.over) return -5;
  return table.poll_receive(&board, buffer, capacity, length);
}

int32_t board_discard(void *context) {
  (void)context;
  loggap_link table = loopback_link(&board);
  return table.discard(&board);
}

uint64_t board_random(void) { return RANDOM; }

void board_next_peer(void) { heard = 0; }

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
  sender = 1;
  readings = readings_before = 0;
  script_begin(NONCE);
  /* Two sessions, and between them one that ends in silence. */
  CHECK_STATUS(answer_for_ever(), LOGGAP_STATUS_LINK, 0);
  CHECK(sender == 3 && dropped > 0 && dropped < 1000);
  script_check();
  /* Its clock was calibrated before anything was waited for. */
  CHECK(readings_before > 10);
}
