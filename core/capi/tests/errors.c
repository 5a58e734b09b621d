/* Bad pointers, undersized memory and wrong versions: an error, never more. */
#include "bench.h"

static LOGGAP_ALIGNAS uint8_t memory[4096];
static loopback link_state;
static loggap_detail detail;

#define NULL_IS(call) CHECK_STATUS((call), LOGGAP_STATUS_NULL, &detail)

static int starts_with(const char *text, const char *start) {
  while (*start)
    if (*text++ != *start++) return 0;
  return 1;
}

static void check_version(void) {
  CHECK_OK(loggap_check_abi(0));
  CHECK(loggap_abi_version() == LOGGAP_ABI_VERSION);
  CHECK(starts_with(loggap_version(), "0."));
  loggap_sizes sizes = {0};
  CHECK_STATUS(loggap_abi_check(LOGGAP_ABI_VERSION + 1, &sizes, sizeof sizes, &detail),
               LOGGAP_STATUS_VERSION, &detail);
  CHECK(detail.needed == LOGGAP_ABI_VERSION && detail.found == LOGGAP_ABI_VERSION + 1);
  CHECK_STATUS(loggap_abi_check(LOGGAP_ABI_VERSION, &sizes, sizeof sizes - 4, &detail),
               LOGGAP_STATUS_VERSION, &detail);
  CHECK_STATUS(loggap_abi_check(LOGGAP_ABI_VERSION, &sizes, sizeof sizes, &detail),
               LOGGAP_STATUS_VERSION, &detail);
  CHECK(detail.reason == LOGGAP_REASON_STRUCT_SIZE && detail.needed == sizeof detail);
  NULL_IS(loggap_abi_check(LOGGAP_ABI_VERSION, 0, sizeof sizes, &detail));
}

static void check_texts(void) {
  for (int32_t status = 0; status <= LOGGAP_STATUS_SELF_TEST; status++)
    CHECK(loggap_status_text(status)[0] != 0 && !starts_with(loggap_status_text(status), "unkn"));
  CHECK(starts_with(loggap_status_text(-1), "unknown status"));
  CHECK(starts_with(loggap_status_text(1000), "unknown status"));
  CHECK(loggap_reason_text(LOGGAP_REASON_NONE)[0] == 0);
  CHECK(starts_with(loggap_reason_text(LOGGAP_REASON_CHECKSUM), "the checksum"));
  CHECK(loggap_reason_text(UINT32_MAX)[0] == 0);
}

static void check_tables(void) {
  loopback_begin(&link_state, 0, memory, sizeof memory);
  loggap_clock clock = loopback_clock(&link_state), wrong_clock = clock;
  loggap_link table = loopback_link(&link_state), wrong = table;
  uint8_t *lent = memory + 2048;
  NULL_IS(loggap_serve(0, &table, 0, 0, lent, 2048, 0, &detail));
  NULL_IS(loggap_serve(&clock, 0, 0, 0, lent, 2048, 0, &detail));
  NULL_IS(loggap_serve(&clock, &table, 0, 0, 0, 2048, 0, &detail));
  CHECK(detail.needed == LOGGAP_SERVE_BYTES_LEAST);
  NULL_IS(loggap_clock_calibrate(0, &detail));
  wrong_clock.now = 0;
  NULL_IS(loggap_clock_calibrate(&wrong_clock, &detail));
  wrong_clock = clock;
  wrong_clock.picos_per_tick_q32 = 0;
  CHECK_STATUS(loggap_clock_calibrate(&wrong_clock, &detail), LOGGAP_STATUS_OPTION, &detail);
  wrong.send = 0;
  NULL_IS(loggap_serve(&clock, &wrong, 0, 0, lent, 2048, 0, &detail));
  CHECK(detail.reason == LOGGAP_REASON_SEND_NULL);
  wrong = table;
  wrong.poll_receive = 0;
  NULL_IS(loggap_serve(&clock, &wrong, 0, 0, lent, 2048, 0, &detail));
  wrong = table;
  wrong.reliable = 0;
  wrong.discard = 0;
  NULL_IS(loggap_serve(&clock, &wrong, 0, 0, lent, 2048, 0, &detail));
  wrong.reliable = 2;
  CHECK_STATUS(loggap_serve(&clock, &wrong, 0, 0, lent, 2048, 0, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  wrong = table;
  wrong.max_message = LOGGAP_FRAME_BYTES - 1;
  CHECK_STATUS(loggap_serve(&clock, &wrong, 0, 0, lent, 2048, 0, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  CHECK(detail.reason == LOGGAP_REASON_SMALL_MESSAGES);
  for (size_t bytes = 0; bytes < LOGGAP_SERVE_BYTES_LEAST; bytes += 57)
    CHECK_STATUS(loggap_serve(&clock, &table, 0, 0, lent, bytes, 0, &detail), LOGGAP_STATUS_MEMORY,
                 &detail);
  CHECK_STATUS(loggap_serve(&clock, &table, 0, 0, lent + 1, 2047, 0, &detail),
               LOGGAP_STATUS_ALIGNMENT, &detail);
  CHECK(detail.needed == LOGGAP_ALIGNMENT);
  /* Nobody greets: the bounds end it. */
  loggap_bounds bounds;
  loggap_served served;
  CHECK_OK(loggap_bounds_default(&bounds));
  bounds.silence_ps = 1000000000;
  CHECK_STATUS(loggap_serve(&clock, &table, &bounds, 0, lent, 2048, &served, &detail),
               LOGGAP_STATUS_SILENT, &detail);
  CHECK(detail.needed == bounds.silence_ps);
  CHECK_STATUS(loggap_serve(&clock, &table, &bounds, 0, lent, 2048, 0, 0), LOGGAP_STATUS_SILENT, 0);
}

static void check_responder(void) {
  loggap_responder *responder = 0;
  loggap_responder_action action;
  loggap_responder_next_message next;
  loggap_served served;
  uint32_t over = 9;
  uint8_t *lent = memory;
  NULL_IS(loggap_responder_init(0, 0, 1000, 1, 0, lent, 2048, &detail));
  NULL_IS(loggap_responder_init(&responder, 0, 1000, 1, 0, 0, 2048, &detail));
  CHECK(loggap_responder_bytes(1000) <= LOGGAP_RESPONDER_BYTES(1000));
  size_t needed = loggap_responder_bytes(0);
  CHECK(needed <= LOGGAP_RESPONDER_BYTES_LEAST && needed == loggap_responder_bytes(448));
  CHECK_STATUS(loggap_responder_init(&responder, 0, 1000, 1, 0, lent, needed - 1, &detail),
               LOGGAP_STATUS_MEMORY, &detail);
  CHECK(detail.needed == needed);
  CHECK_STATUS(loggap_responder_init(&responder, 0, 1000, 7, 0, lent, 2048, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  CHECK_STATUS(loggap_responder_init(&responder, 0, 100, 1, 0, lent, 2048, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  NULL_IS(loggap_responder_handle(0, 0, lent, 0, &action, &detail));
  NULL_IS(loggap_responder_next(0, &next, &detail));
  NULL_IS(loggap_responder_timed(0, 1, &detail));
  NULL_IS(loggap_responder_served(0, &served, &detail));
  for (size_t i = 0; i < sizeof memory; i++) memory[i] = (uint8_t)i;
  responder = (loggap_responder *)(void *)memory;
  CHECK_STATUS(loggap_responder_silence(responder, &over, &detail), LOGGAP_STATUS_HANDLE, &detail);
  CHECK_STATUS(loggap_responder_more(responder, &action, &detail), LOGGAP_STATUS_HANDLE, &detail);
  CHECK_OK(loggap_responder_init(&responder, 0, 1000, 1, 0, lent, needed, &detail));
  NULL_IS(loggap_responder_handle(responder, 0, lent, 0, 0, &detail));
  NULL_IS(loggap_responder_handle(responder, 0, 0, 5, &action, &detail));
  /* What is no frame is answered by a refusal with the offset. */
  static const uint8_t noise[LOGGAP_FRAME_BYTES] = {0xce, 0x9b, 'g', 'x'};
  CHECK_OK(loggap_responder_handle(responder, 0, noise, sizeof noise, &action, &detail));
  CHECK(action.kind == LOGGAP_ACTION_KIND_END && action.ending == LOGGAP_ENDING_KIND_REFUSED);
  loggap_frame frame;
  CHECK_OK(loggap_frame_parse(action.message, action.length, &frame, &detail));
  CHECK(frame.kind == LOGGAP_FRAME_KIND_REFUSE && frame.refusal == LOGGAP_REFUSAL_KIND_MALFORMED);
  CHECK_OK(loggap_responder_silence(responder, &over, 0));
  CHECK(over == 1);
}

static void check_nulls(void) {
  loggap_frame frame;
  loggap_profile profile;
  size_t length;
  const uint8_t *message;
  uint8_t bytes[LOGGAP_FRAME_BYTES] = {0};
  NULL_IS(loggap_frame_parse(0, LOGGAP_FRAME_BYTES, &frame, &detail));
  NULL_IS(loggap_frame_parse(bytes, sizeof bytes, 0, &detail));
  NULL_IS(loggap_frame_emit(0, bytes, sizeof bytes, &detail));
  CHECK_STATUS(loggap_frame_parse(bytes, 0, &frame, &detail), LOGGAP_STATUS_MALFORMED, &detail);
  CHECK_STATUS(loggap_frame_parse(bytes, (size_t)-1, &frame, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  CHECK(detail.reason == LOGGAP_REASON_ADDRESS_SPACE);
  NULL_IS(loggap_ethernet_parse(bytes, 9, 0, 0, 0, &length, &detail));
  NULL_IS(loggap_ethernet_emit(0, bytes, bytes, 9, bytes, 9, &length, &detail));
  NULL_IS(loggap_ethernet_parse(0, 60, 0, 0, &message, &length, &detail));
  NULL_IS(loggap_profile_encode(0, bytes, sizeof bytes, &length, &detail));
  NULL_IS(loggap_profile_decode(0, 9, &profile, &detail));
  CHECK(loggap_bounds_default(0) == LOGGAP_STATUS_NULL);
  CHECK(loggap_assess_options_default(0) == LOGGAP_STATUS_NULL);
  CHECK(loggap_assess_bytes(0) == 0);
  loggap_assess_options options;
  CHECK_OK(loggap_assess_options_default(&options));
  loggap_clock clock = loopback_clock(&link_state);
  loggap_link table = loopback_link(&link_state);
  NULL_IS(loggap_assess(&clock, &table, 0, memory, sizeof memory, &profile, 0, &detail));
  NULL_IS(loggap_assess(&clock, &table, &options, memory, sizeof memory, 0, 0, &detail));
  NULL_IS(loggap_assess(&clock, &table, &options, 0, sizeof memory, &profile, 0, &detail));
  CHECK_STATUS(loggap_assess(&clock, &table, &options, memory, sizeof memory, &profile, 0, &detail),
               LOGGAP_STATUS_MEMORY, &detail);
  CHECK(detail.needed == loggap_assess_bytes(&options));
}

void test_errors(void) {
  check_version();
  check_texts();
  check_tables();
  check_responder();
  check_nulls();
}
