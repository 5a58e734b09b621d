/* A complete assessment over the virtual link, and what it keeps. */
#include "bench.h"

#define OUTCOME_BYTES LOGGAP_ASSESS_BYTES(1200, 24, 24, 16, 3)

static loopback link_state;
static LOGGAP_ALIGNAS uint8_t mirror_memory[LOGGAP_MIRROR_BYTES(LARGEST)];
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
  options.coarse_sizes = 12;
  options.sizes = 24;
  options.repetitions = 16;
  options.max_changes = 3;
  return options;
}

/* Whether `value` is within 3 percent of `truth`. */
static int near(int64_t value, int64_t truth) {
  int64_t off = value > truth ? value - truth : truth - value;
  return off * 100 <= truth * 3;
}

static void check_profile(void) {
  CHECK(profile.range_count == 2 && profile.change_count == 1);
  CHECK(profile.changes[0].at == CHANGE);
  CHECK(profile.changes[0].low == CHANGE && profile.changes[0].high == CHANGE);
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
  CHECK(again.range_count == profile.range_count);
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
  profile.range_count = LOGGAP_MAX_RANGES + 1;
  CHECK_STATUS(loggap_profile_encode(&profile, encoded, sizeof encoded, &length, &detail),
              LOGGAP_STATUS_OPTION, &detail);
  profile.range_count = 2;
}

static int look_ahead;

static int32_t assess(uint32_t lose_every, const loggap_assess_options *options, size_t bytes,
                      loggap_detail *detail) {
  loopback_begin(&link_state, lose_every, mirror_memory, sizeof mirror_memory);
  loggap_clock clock = loopback_clock(&link_state);
  loggap_link table = loopback_link(&link_state);
  CHECK_OK(loggap_clock_calibrate(&clock, 0));
  CHECK(clock.read_cost_ps == READING);
  if (look_ahead)
    return loggap_assess_look_ahead(&clock, &table, options, memory, bytes, &profile, &report,
                                    detail);
  return loggap_assess(&clock, &table, options, memory, bytes, &profile, &report, detail);
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
    size_t constant = LOGGAP_ASSESS_BYTES(m[0], m[1], m[2], m[3], m[4]);
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
  CHECK_OK(loggap_mirror_served(link_state.mirror, &served, 0));
  CHECK(served.received == report.data_sent && served.rounds == report.rounds);
  check_profile();
  check_encoding();
  check_sizes(wanted);

  /* Lost messages are counted, and change nothing. */
  CHECK_STATUS(assess(97, &wanted, OUTCOME_BYTES, &detail), LOGGAP_STATUS_OK, &detail);
  CHECK(report.rounds_lost > 10 && report.messages_lost > 0);
  check_profile();

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
