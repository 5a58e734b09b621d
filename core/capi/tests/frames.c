/* Control frames and Ethernet frames: there and back, and what is refused. */
#include "bench.h"

static loggap_frame frame, back;
static uint8_t bytes[LOGGAP_FRAME_BYTES + 8];

static int same(const void *a, const void *b, size_t count) {
  const uint8_t *x = a, *y = b;
  for (size_t i = 0; i < count; i++)
    if (x[i] != y[i]) return 0;
  return 1;
}

static void clear(loggap_frame *frame) {
  uint8_t *byte = (uint8_t *)frame;
  for (size_t i = 0; i < sizeof *frame; i++) byte[i] = 0;
}

/* Every kind, with all its fields. */
static void fill(uint32_t kind) {
  clear(&frame);
  frame.kind = kind;
  switch (kind) {
    case LOGGAP_FRAME_KIND_HELLO:
      frame.versions[0] = frame.versions[1] = 1;
      CHECK_OK(loggap_bounds_default(&frame.bounds));
      break;
    case LOGGAP_FRAME_KIND_WELCOME:
      frame.version = 1;
      CHECK_OK(loggap_bounds_default(&frame.bounds));
      break;
    case LOGGAP_FRAME_KIND_REFUSE:
      frame.refusal = LOGGAP_REFUSAL_KIND_BOUNDS;
      frame.limited = LOGGAP_LIMITED_KIND_PAUSE;
      frame.asked = 7;
      frame.allowed = 5;
      break;
    case LOGGAP_FRAME_KIND_QUEUE: frame.position = 3; break;
    case LOGGAP_FRAME_KIND_BATCH:
      frame.sequence = 99;
      frame.round_count = LOGGAP_FRAME_ROUNDS;
      for (uint32_t i = 0; i < LOGGAP_FRAME_ROUNDS; i++) {
        loggap_round round = {10 + i, 100, 200, 5, i % 2, 0, 1000 * (uint64_t)i};
        frame.rounds[i] = round;
      }
      break;
    case LOGGAP_FRAME_KIND_READY: frame.sequence = 4; break;
    case LOGGAP_FRAME_KIND_REPORT:
      frame.sequence = 8;
      frame.round_count = 2;
      frame.values_ps[0] = 12;
      frame.values_ps[1] = UINT64_MAX;
      break;
    case LOGGAP_FRAME_KIND_SYNC: frame.token = 0x01020304; break;
    case LOGGAP_FRAME_KIND_SYNCED:
      frame.token = 5;
      frame.received = 6;
      frame.replied = 7;
      break;
    default: break;
  }
}

static void check_refused(void) {
  loggap_detail detail;
  fill(LOGGAP_FRAME_KIND_BATCH);
  CHECK_OK(loggap_frame_emit(&frame, bytes, sizeof bytes, &detail));
  CHECK_STATUS(loggap_frame_parse(bytes, 100, &back, &detail), LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.at == 100 && detail.reason == LOGGAP_REASON_FRAME_ENDS && detail.needed == 348);
  for (size_t at = 0; at < LOGGAP_FRAME_BYTES; at++) {
    bytes[at] ^= 0x10;
    int32_t status = loggap_frame_parse(bytes, sizeof bytes, &back, &detail);
    /* What lies behind the body is padding. */
    int padding = at >= 16 + 8 + 24 * LOGGAP_FRAME_ROUNDS;
    if (status != (padding ? LOGGAP_STATUS_OK : LOGGAP_STATUS_MALFORMED))
      CHECK(!"a flipped bit is not noticed");
    bytes[at] ^= 0x10;
  }
  frame.rounds[3].size = 0;
  CHECK_STATUS(loggap_frame_emit(&frame, bytes, sizeof bytes, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  CHECK(detail.reason == LOGGAP_REASON_FIELD_RANGE && detail.name_length == 4 &&
        detail.name[0] == 's');
  fill(LOGGAP_FRAME_KIND_BATCH);
  frame.round_count = LOGGAP_FRAME_ROUNDS + 1;
  CHECK_STATUS(loggap_frame_emit(&frame, bytes, sizeof bytes, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  fill(77);
  CHECK_STATUS(loggap_frame_emit(&frame, bytes, sizeof bytes, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  fill(LOGGAP_FRAME_KIND_BYE);
  CHECK_STATUS(loggap_frame_emit(&frame, bytes, LOGGAP_FRAME_BYTES - 1, &detail),
               LOGGAP_STATUS_FULL, &detail);
  CHECK(detail.needed == LOGGAP_FRAME_BYTES);
}

static void check_ethernet(void) {
  static const uint8_t to[6] = {1, 2, 3, 4, 5, 6}, from[6] = {7, 8, 9, 10, 11, 12};
  uint8_t ether[80], destination[6], source[6];
  const uint8_t *message = 0;
  size_t length = 0, message_length = 0;
  loggap_detail detail;
  for (size_t i = 0; i < sizeof ether; i++) ether[i] = 0xa5;
  CHECK_OK(loggap_ethernet_emit(to, from, to, 5, ether, sizeof ether, &length, &detail));
  CHECK(length == 60 && ether[59] == 0);
  /* What the frame does not fill is left alone: clearing it would be timed. */
  CHECK(ether[60] == 0xa5 && ether[79] == 0xa5);
  CHECK_OK(loggap_ethernet_parse(ether, length, destination, source, &message, &message_length,
                                 &detail));
  CHECK(message == ether + 18 && message_length == 5 && same(message, to, 5));
  CHECK(same(destination, to, 6) && same(source, from, 6));
  CHECK_OK(loggap_ethernet_parse(ether, length, 0, 0, &message, &message_length, 0));
  CHECK_STATUS(loggap_ethernet_parse(ether, 17, 0, 0, &message, &message_length, &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.needed == 18);
  ether[13] ^= 1;
  CHECK_STATUS(loggap_ethernet_parse(ether, length, 0, 0, &message, &message_length, &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.at == 12 && detail.reason == LOGGAP_REASON_ETHERNET_FOREIGN);
  CHECK_STATUS(loggap_ethernet_emit(to, from, to, 6, ether, 59, &length, &detail),
               LOGGAP_STATUS_FULL, &detail);
  CHECK(detail.needed == 60);
}

void test_frames(void) {
  for (uint32_t kind = LOGGAP_FRAME_KIND_HELLO; kind <= LOGGAP_FRAME_KIND_BYE; kind++) {
    fill(kind);
    CHECK_OK(loggap_frame_emit(&frame, bytes, sizeof bytes, 0));
    clear(&back);
    CHECK_OK(loggap_frame_parse(bytes, sizeof bytes, &back, 0));
    CHECK(back.kind == kind && same(&frame, &back, offsetof(loggap_frame, bounds)));
    CHECK(back.bounds.message == frame.bounds.message &&
          back.bounds.session_ps == frame.bounds.session_ps);
    CHECK(same(&frame.rounds, &back.rounds, sizeof frame.rounds));
    CHECK(same(&frame.values_ps, &back.values_ps, sizeof frame.values_ps));
    CHECK(back.asked == frame.asked && back.received == frame.received);
  }
  check_refused();
  check_ethernet();
}
