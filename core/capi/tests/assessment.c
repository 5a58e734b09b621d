/* A complete assessment over the virtual link, and what it keeps. */
#include "bench.h"

#define OUTCOME_BYTES LOGGAP_ASSESS_BYTES(1200, 24, 40, 16)

static loopback link_state;
static LOGGAP_ALIGNAS uint8_t responder_memory[LOGGAP_RESPONDER_BYTES(LARGEST)];
static LOGGAP_ALIGNAS uint8_t memory[OUTCOME_BYTES + 64];
static loggap_profile profile, again;
static loggap_assess_report report;
static uint8_t encoded[LOGGAP_PROFILE_BYTES];
static uint32_t told;

static int32_t progress(void *context, const loggap_progress *progress) {
  (*(uint32_t *)context)++;
  return progress->messages > 2000000;
}

static int32_t stop(void *context, const loggap_progress *progress) {
  (void)context;
  return progress->messages > 30;
}

static loggap_assess_options options(void) {
  loggap_assess_options options;
  CHECK_OK(loggap_assess_options_default(&options));
  options.largest = 1200;
  options.coarse_sizes = 24;
  options.sizes = 40;
  options.repetitions = 16;
  options.max_changes = 3;
  return options;
}

/* Whether `value` is within 3 percent of `truth`. */
static int near(int64_t value, int64_t truth) {
  int64_t off = value > truth ? value - truth : truth - value;
  return off * 100 <= truth * 3;
}

/* By how many millionths the gap is longer at the change than the shorter
 * sizes' line says. */
static int64_t jump(void) {
  int64_t before = GAP_SHORT + (CHANGE - 1) * PER_BYTE_SHORT;
  int64_t after = GAP_LONG + (CHANGE - 1) * PER_BYTE_LONG;
  return (after - before) * 1000000 / before;
}

static void check_profile(void) {
  CHECK(profile.range_count == 2 && profile.change_count == 1);
  CHECK(profile.changes[0].at == CHANGE);
  CHECK(profile.changes[0].low == CHANGE && profile.changes[0].high == CHANGE);
  CHECK(profile.changes[0].parameter == LOGGAP_PARAMETER_KIND_GAP && profile.changes[0].splits == 1);
  CHECK(near(profile.changes[0].jump_ppm, jump()));
  const loggap_range *shorter = &profile.ranges[0], *longer = &profile.ranges[1];
  CHECK(shorter->first == 1 && shorter->last == CHANGE - 1 && longer->last == 1200);
  CHECK(shorter->known == (LOGGAP_KNOWN_HALF_RTT | LOGGAP_KNOWN_SEND_OVERHEAD |
                           LOGGAP_KNOWN_RECV_OVERHEAD | LOGGAP_KNOWN_LATENCY));
  CHECK(near(shorter->gap.at_one.value, GAP_SHORT));
  CHECK(near(shorter->gap.per_byte.value, (int64_t)PER_BYTE_SHORT << 16));
  CHECK(near(shorter->send_overhead.at_one.value, SEND_OVERHEAD));
  CHECK(near(shorter->recv_overhead.at_one.value, RECV_OVERHEAD));
  CHECK(near(shorter->latency.value, LATENCY));
  CHECK(near(longer->gap.at_one.value, GAP_LONG));
  CHECK(near(longer->gap.per_byte.value, (int64_t)PER_BYTE_LONG << 16));
}

static void check_encoding(void) {
  size_t length = 0;
  loggap_detail detail;
  CHECK_OK(loggap_profile_encode(&profile, encoded, sizeof encoded, &length, &detail));
  CHECK(length > 100 && length < 400);
  CHECK_OK(loggap_profile_decode(encoded, length, &again, &detail));
  CHECK(again.range_count == profile.range_count && again.change_count == profile.change_count);
  CHECK(again.changes[0].at == CHANGE && again.changes[0].splits == 1);
  CHECK(again.changes[0].parameter == LOGGAP_PARAMETER_KIND_GAP);
  CHECK(again.changes[0].jump_ppm == profile.changes[0].jump_ppm);
  const uint8_t *a = (const uint8_t *)&profile.ranges[1], *b = (const uint8_t *)&again.ranges[1];
  int same = 1;
  for (size_t i = 0; i < 2 * sizeof(uint64_t) + 4; i++) same &= a[i] == b[i];
  CHECK(same && again.ranges[1].gap.per_byte.value == profile.ranges[1].gap.per_byte.value);
  CHECK_STATUS(loggap_profile_encode(&profile, encoded, 20, &length, &detail),
              LOGGAP_STATUS_FULL, &detail);
  CHECK(detail.needed > 200 && detail.found == 20);
  CHECK_OK(loggap_profile_encode(&profile, encoded, sizeof encoded, &length, 0));
  encoded[9] ^= 4;
  CHECK_STATUS(loggap_profile_decode(encoded, length, &again, &detail), LOGGAP_STATUS_MALFORMED,
              &detail);
  CHECK(detail.at == length - 4 && detail.reason == LOGGAP_REASON_CHECKSUM);
  encoded[9] ^= 4;
  for (size_t cut = 0; cut < length; cut++)
    if (loggap_profile_decode(encoded, cut, &again, &detail) != LOGGAP_STATUS_MALFORMED)
      CHECK(!"a profile that was cut off is accepted");
  profile.ranges[0].gap.at_one.mark = 9;
  CHECK_STATUS(loggap_profile_encode(&profile, encoded, sizeof encoded, &length, &detail),
              LOGGAP_STATUS_OPTION, &detail);
  profile.ranges[0].gap.at_one.mark = 0;
  profile.changes[0].parameter = LOGGAP_PARAMETER_KIND_NONE;
  CHECK_STATUS(loggap_profile_encode(&profile, encoded, sizeof encoded, &length, &detail),
              LOGGAP_STATUS_OPTION, &detail);
  profile.changes[0].parameter = LOGGAP_PARAMETER_KIND_GAP;
  profile.changes[0].splits = 2;
  CHECK_STATUS(loggap_profile_encode(&profile, encoded, sizeof encoded, &length, &detail),
              LOGGAP_STATUS_OPTION, &detail);
  CHECK(detail.found == 2 && detail.name_length == 6);
  profile.changes[0].splits = 1;
  profile.range_count = LOGGAP_MAX_RANGES + 1;
  CHECK_STATUS(loggap_profile_encode(&profile, encoded, sizeof encoded, &length, &detail),
              LOGGAP_STATUS_OPTION, &detail);
  profile.range_count = 2;
}

static int look_ahead;

static int32_t assess(uint32_t lose_every, const loggap_assess_options *options, size_t bytes,
                      loggap_detail *detail) {
  loopback_begin(&link_state, lose_every, responder_memory, sizeof responder_memory);
  loggap_clock clock = loopback_clock(&link_state);
  loggap_link table = loopback_link(&link_state);
  CHECK_OK(loggap_clock_calibrate(&clock, 0));
  CHECK(clock.read_cost_ps == READING);
  if (look_ahead)
    return loggap_assess_look_ahead(&clock, &table, options, memory, bytes, &profile, &report,
                                    detail);
  return loggap_assess(&clock, &table, options, memory, bytes, &profile, &report, detail);
}

/* A link whose other end answers nothing, refuses, says what is no frame, or that
 * others are before us. */
static int32_t failure;
static uint32_t asked;

static int32_t failing_send(void *context, const uint8_t *message, size_t length) {
  (void)context, (void)message, (void)length;
  asked++;
  return 0;
}

static int32_t failing_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length) {
  static loggap_frame frame;
  loopback *link = context;
  link->now += 10000000000;
  if (failure == LOGGAP_STATUS_SILENT || asked == 0 || capacity < LOGGAP_FRAME_BYTES) return 0;
  asked = 0;
  *length = LOGGAP_FRAME_BYTES;
  for (size_t i = 0; i < *length; i++) buffer[i] = 'x';
  if (failure == LOGGAP_STATUS_PROTOCOL) return 1;
  frame.kind = failure == LOGGAP_STATUS_REFUSED ? LOGGAP_FRAME_KIND_REFUSE : LOGGAP_FRAME_KIND_QUEUE;
  frame.position = 3;
  frame.refusal = LOGGAP_REFUSAL_KIND_BOUNDS;
  frame.limited = LOGGAP_LIMITED_KIND_PAUSE;
  frame.asked = 7;
  frame.allowed = 5;
  CHECK_OK(loggap_frame_emit(&frame, buffer, capacity, 0));
  return 1;
}

static int32_t stop_at_once(void *context, const loggap_progress *progress) {
  (void)context, (void)progress;
  return 1;
}

static void check_failures(const loggap_assess_options *usual) {
  static const int32_t statuses[] = {LOGGAP_STATUS_SILENT, LOGGAP_STATUS_REFUSED,
                                     LOGGAP_STATUS_PROTOCOL, LOGGAP_STATUS_STOPPED};
  loggap_detail detail;
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
    loggap_assess_options options = *usual;
    failure = statuses[i];
    if (failure == LOGGAP_STATUS_STOPPED) options.progress = stop_at_once;
    asked = 0;
    loopback_begin(&link_state, 0, responder_memory, sizeof responder_memory);
    loggap_clock clock = loopback_clock(&link_state);
    loggap_link table = {&link_state, failing_send, failing_poll, 0, LARGEST, 1};
    CHECK_STATUS(loggap_assess(&clock, &table, &options, memory, OUTCOME_BYTES, &profile, &report,
                               &detail),
                 failure, &detail);
    CHECK(profile.range_count == 0 && report.conclusion == LOGGAP_CONCLUSION_KIND_FAILED);
    if (failure == LOGGAP_STATUS_SILENT) CHECK(detail.needed == 5000000000000);
    if (failure == LOGGAP_STATUS_REFUSED) CHECK(detail.needed == 7 && detail.found == 5);
  }
  /* The link breaks in the middle of a round. */
  loopback_begin(&link_state, 0, responder_memory, sizeof responder_memory);
  link_state.break_after = 50;
  loggap_clock clock = loopback_clock(&link_state);
  loggap_link table = loopback_link(&link_state);
  CHECK_STATUS(loggap_assess(&clock, &table, usual, memory, OUTCOME_BYTES, &profile, &report,
                             &detail),
               LOGGAP_STATUS_LINK, &detail);
  CHECK((int64_t)detail.found == 77 && report.data_sent > 10);
  CHECK(profile.range_count == 0 && report.converged == 0);
  /* It breaks late: what was measured until then is assessed. */
  loopback_begin(&link_state, 0, responder_memory, sizeof responder_memory);
  link_state.break_after = 4000;
  CHECK_STATUS(loggap_assess(&clock, &table, usual, memory, OUTCOME_BYTES, &profile, &report,
                             &detail),
               LOGGAP_STATUS_LINK, &detail);
  CHECK((int64_t)detail.found == 77 && profile.range_count >= 1 && profile.ranges[0].first == 1);
  CHECK(report.conclusion == LOGGAP_CONCLUSION_KIND_FAILED && report.converged == 0);
}

/* Sizes that were not measured for want of time. */
static uint64_t left_out(void) {
  for (uint32_t i = 0; i < report.warning_count; i++)
    if (report.warnings[i].kind == LOGGAP_WARNING_KIND_SIZES_LEFT_OUT) return report.warnings[i].value;
  return 0;
}

static void check_sizes(loggap_assess_options options) {
  static const uint32_t most[][5] = {
      {1200, 12, 24, 16, 3}, {1, 2, 2, 8, 0}, {4096, 8, 60, 40, 7}, {449, 31, 32, 9, 1}};
  for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
    const uint32_t *m = most[i];
    options.largest = m[0];
    options.coarse_sizes = m[1];
    options.sizes = m[2];
    options.repetitions = m[3];
    options.max_changes = m[4];
    size_t constant = LOGGAP_ASSESS_BYTES(m[0], m[1], m[2], m[3]);
    size_t needed = loggap_assess_bytes(&options);
    CHECK(needed > 0 && needed <= constant && constant - needed <= 8 + 32 * (size_t)m[2]);
  }
}

void test_assessment(void) {
  loggap_detail detail;
  loggap_assess_options wanted = options();
  wanted.progress = progress;
  wanted.progress_context = &told;
  CHECK_STATUS(assess(0, &wanted, OUTCOME_BYTES, &detail), LOGGAP_STATUS_OK, &detail);
  CHECK(told > 10 && report.conclusion == LOGGAP_CONCLUSION_KIND_CONVERGED && report.converged);
  CHECK(report.rounds > 500 && report.rounds_lost == 0 && report.data_sent > report.rounds);
  CHECK(report.data_received >= report.rounds && report.wall_ps > 0 && report.control > 10);
  loggap_served served;
  CHECK_OK(loggap_responder_served(link_state.responder, &served, 0));
  CHECK(served.received == report.data_sent && served.rounds == report.rounds);
  check_profile();
  check_encoding();
  check_sizes(wanted);
  check_failures(&wanted);

  /* Lost messages are counted, and change nothing. */
  CHECK_STATUS(assess(97, &wanted, OUTCOME_BYTES, &detail), LOGGAP_STATUS_OK, &detail);
  CHECK(report.rounds_lost > 10 && report.messages_lost > 0);
  check_profile();

  /* A jump smaller than what lines may miss points by divides nothing. */
  wanted.tolerance_ppm = 300000;
  CHECK_STATUS(assess(0, &wanted, OUTCOME_BYTES, &detail), LOGGAP_STATUS_OK, &detail);
  CHECK(profile.range_count == 1 && profile.ranges[0].last == 1200);
  CHECK(profile.change_count == 1 && profile.changes[0].splits == 0);
  CHECK(profile.changes[0].low <= CHANGE && CHANGE <= profile.changes[0].high);
  wanted.tolerance_ppm = 100000;

  /* 2 ms are too short for all sizes; where more is allowed none is left out. */
  wanted.max_time_ps = wanted.longest_time_ps = 2000000000;
  CHECK_STATUS(assess(0, &wanted, OUTCOME_BYTES, &detail), LOGGAP_STATUS_OK, &detail);
  CHECK(left_out() > 0 && report.wall_ps < wanted.max_time_ps + wanted.max_time_ps / 4);
  wanted.longest_time_ps = 2500000000000;
  CHECK_STATUS(assess(0, &wanted, OUTCOME_BYTES, &detail), LOGGAP_STATUS_OK, &detail);
  CHECK(left_out() == 0 && report.wall_ps > wanted.max_time_ps);
  wanted.max_time_ps = wanted.longest_time_ps;

  /* A byte less than needed, and a link that breaks. */
  size_t needed = loggap_assess_bytes(&wanted);
  CHECK_STATUS(assess(0, &wanted, needed - 1, &detail), LOGGAP_STATUS_MEMORY, &detail);
  CHECK(detail.needed == needed && detail.found == needed - 1);
  CHECK_STATUS(assess(0, &wanted, needed, &detail), LOGGAP_STATUS_OK, &detail);
  wanted.progress = stop;
  CHECK_STATUS(assess(0, &wanted, needed, &detail), LOGGAP_STATUS_NO_DATA, &detail);
  CHECK(report.conclusion == LOGGAP_CONCLUSION_KIND_STOPPED);
  wanted.progress = 0;
  wanted.repetitions = 7;
  CHECK_STATUS(assess(0, &wanted, needed, &detail), LOGGAP_STATUS_OPTION, &detail);
  CHECK(detail.found == 7 && detail.name_length == 11 && detail.name[0] == 'r');
  CHECK(loggap_assess_bytes(&wanted) == 0);
  wanted = options();
  look_ahead = 1;
  wanted.coarse_sizes = 22;
  CHECK_STATUS(assess(0, &wanted, OUTCOME_BYTES, &detail), LOGGAP_STATUS_OK, &detail);
  CHECK(profile.range_count == 2 && profile.changes[0].low > 1 && profile.changes[0].high < 1200);
  look_ahead = 0;
}
