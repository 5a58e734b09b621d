/* loggap_serve on one thread: an initiator whose messages stand in a list. */
#include "bench.h"

#define STEPS 6
#define ANSWERS 4
#define DATA 440

static const uint32_t kinds[STEPS] = {LOGGAP_FRAME_KIND_HELLO, LOGGAP_FRAME_KIND_BATCH, 0, 0,
                                      LOGGAP_FRAME_KIND_SYNC, LOGGAP_FRAME_KIND_BYE};
static uint64_t time;
static uint32_t step, answered;
static uint8_t messages[STEPS][LOGGAP_FRAME_BYTES], answers[ANSWERS][LOGGAP_FRAME_BYTES];
static size_t lengths[ANSWERS];
static loggap_frame frame;
static LOGGAP_ALIGNAS uint8_t memory[LOGGAP_SERVE_BYTES(LOGGAP_FRAME_BYTES)];

/* Data messages begin with their round's number, which is 0. */
static void write_messages(uint64_t nonce) {
  loggap_round round = {2, DATA, 100, 1, 0, 0, 0};
  CHECK_OK(loggap_bounds_default(&frame.bounds));
  frame.versions[0] = frame.versions[1] = 2;
  frame.nonce = nonce;
  frame.round_count = 1;
  frame.rounds[0] = round;
  for (size_t i = 0; i < STEPS; i++) {
    frame.kind = kinds[i];
    if (frame.kind != 0) CHECK_OK(loggap_frame_emit(&frame, messages[i], sizeof messages[i], 0));
  }
}

static uint64_t now(void *context) {
  (void)context;
  return time += 10;
}

int32_t script_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length) {
  (void)context;
  if (step == STEPS) return -3;
  *length = kinds[step] == 0 ? DATA : LOGGAP_FRAME_BYTES;
  if (*length > capacity) return -2;
  for (size_t i = 0; i < *length; i++) buffer[i] = messages[step][i];
  step++;
  return 1;
}

int32_t script_send(void *context, const uint8_t *message, size_t length) {
  (void)context;
  if (answered == ANSWERS || length > LOGGAP_FRAME_BYTES) return 9;
  for (size_t i = 0; i < length; i++) answers[answered][i] = message[i];
  lengths[answered++] = length;
  return 0;
}

uint32_t script_answer(uint32_t index) {
  if (lengths[index] != LOGGAP_FRAME_BYTES) return 0;
  CHECK_OK(loggap_frame_parse(answers[index], lengths[index], &frame, 0));
  return frame.kind;
}

int script_is_over(void) { return step == STEPS; }

void script_begin(uint64_t nonce) {
  step = answered = 0;
  write_messages(nonce);
}

void script_check(void) {
  CHECK(step == STEPS && answered == ANSWERS);
  CHECK(script_answer(0) == LOGGAP_FRAME_KIND_WELCOME);
  CHECK(script_answer(1) == LOGGAP_FRAME_KIND_READY);
  CHECK(lengths[2] == 100 && answers[2][0] == 0 && script_answer(3) == LOGGAP_FRAME_KIND_SYNCED);
  CHECK(frame.received == 2 && frame.replied == 1);
}

void test_script(void) {
  loggap_clock clock = {0, now, (uint64_t)1000 << 32, 0};
  loggap_link link = {0, script_send, script_poll, 0, LOGGAP_FRAME_BYTES, 1};
  loggap_served served = {0};
  loggap_detail detail;
  script_begin(0);
  stack_paint();
  int32_t status = loggap_serve(&clock, &link, 0, 0, memory, sizeof memory, &served, &detail);
  uint32_t used = stack_used();
  CHECK_STATUS(status, LOGGAP_STATUS_OK, &detail);
  put_ram("loggap_serve", sizeof memory, sizeof served, used);
  CHECK(served.ending == LOGGAP_ENDING_KIND_GOODBYE && served.rounds == 1 && served.strays == 0);
  CHECK(served.received == 2 && served.replied == 1);
  script_check();
  /* The list is over: what the link says then ends the next session. */
  CHECK_STATUS(loggap_serve(&clock, &link, 0, 0, memory, sizeof memory, 0, &detail),
               LOGGAP_STATUS_LINK, &detail);
  CHECK((int64_t)detail.found == -3);
}
