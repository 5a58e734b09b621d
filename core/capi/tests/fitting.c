/* The fit, the streaming detector, and predictions from a profile. */
#include "bench.h"

#define POINTS 14
static const uint64_t sizes[POINTS] = {1,   2,   8,   32,  64,  128, 256,
                                       400, 512, 600, 700, 800, 900, 1024};
static loggap_fit_point points[POINTS];
static LOGGAP_ALIGNAS uint8_t memory[LOGGAP_FIT_BYTES(POINTS)];
static loggap_fit_segment segments[4];
static loggap_detail detail;

static int near(double value, double truth) {
  double off = value > truth ? value - truth : truth - value;
  return off <= (truth > 0 ? truth : -truth) * 1e-6;
}

/* 300 ns and 80 ps a byte; from 512 bytes on 900 ns and 40 ps a byte. */
static void fill(void) {
  for (size_t i = 0; i < POINTS; i++) {
    double rest = (double)(sizes[i] - 1);
    points[i].size = sizes[i];
    points[i].value_ps = sizes[i] >= 512 ? 900000 + 40 * rest : 300000 + 80 * rest;
    points[i].sigma_ps = 0;
  }
}

static void check_fit(void) {
  loggap_fit_options options;
  size_t count = 0;
  CHECK_OK(loggap_fit_options_default(&options));
  options.max_changes = 3;
  size_t needed = loggap_fit_bytes(POINTS);
  CHECK(needed <= sizeof memory && sizeof memory - needed <= 64);
  CHECK_STATUS(loggap_fit(points, POINTS, &options, memory, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_OK, &detail);
  CHECK(count == 2 && segments[1].first_size == 512 && segments[1].begins_low == 401);
  CHECK(near(segments[0].gap_ps.value, 300000) && near(segments[0].gap_per_byte_ps.value, 80));
  CHECK(near(segments[1].gap_ps.value, 900000) && near(segments[1].gap_per_byte_ps.value, 40));
  CHECK(segments[1].jump_ppm > 900000 && segments[1].bound == 0);
  CHECK(segments[0].last == 7 && segments[1].points == 6 && segments[1].outliers == 0);
  CHECK_OK(loggap_fit_look_ahead(points, POINTS, &options, memory, needed, segments, 4, &count, 0));
  CHECK(count == 2 && segments[1].first_size == 512);
  CHECK_STATUS(loggap_fit_look_ahead(points, POINTS, &options, 0, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_NULL, &detail);
  CHECK_STATUS(loggap_fit(points, POINTS, &options, memory, needed, segments, 1, &count, &detail),
               LOGGAP_STATUS_FULL, &detail);
  CHECK(count == 2 && detail.needed == 2 && segments[0].first_size == 1);
  CHECK_STATUS(loggap_fit(points, POINTS, &options, memory, needed - 1, segments, 4, &count,
                          &detail),
               LOGGAP_STATUS_MEMORY, &detail);
  CHECK(detail.needed == needed);
  CHECK_STATUS(loggap_fit(points, 2, &options, memory, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_NO_DATA, &detail);
  points[5].size = 64;
  CHECK_STATUS(loggap_fit(points, POINTS, &options, memory, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.at == 5 && detail.reason == LOGGAP_REASON_POINT_ORDER);
  points[5].value_ps = 1e300;
  CHECK_STATUS(loggap_fit(points, POINTS, &options, memory, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.at == 5 && detail.reason == LOGGAP_REASON_POINT_VALUE);
  fill();
  options.max_changes = 16;
  CHECK_STATUS(loggap_fit(points, POINTS, &options, memory, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_OPTION, &detail);
  CHECK_STATUS(loggap_fit(0, POINTS, &options, memory, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_OPTION, &detail);
  CHECK_STATUS(loggap_fit(points, POINTS, 0, memory, needed, segments, 4, &count, &detail),
               LOGGAP_STATUS_NULL, &detail);
  CHECK(loggap_fit_bytes((size_t)-1) == (size_t)-1);
}

static void check_detector(void) {
  static LOGGAP_ALIGNAS uint8_t lent[LOGGAP_DETECTOR_BYTES];
  loggap_detector_options options;
  loggap_detector *detector = (loggap_detector *)(void *)lent;
  loggap_detected_change change = {0};
  CHECK_STATUS(loggap_detector_push(detector, points, &change, &detail), LOGGAP_STATUS_HANDLE,
               &detail);
  CHECK_OK(loggap_detector_options_default(&options));
  CHECK_STATUS(loggap_detector_init(&detector, &options, lent, loggap_detector_bytes() - 1,
                                    &detail),
               LOGGAP_STATUS_MEMORY, &detail);
  CHECK_OK(loggap_detector_init(&detector, &options, lent, sizeof lent, &detail));
  uint32_t found = 0;
  for (size_t i = 0; i <= POINTS && !found; i++) {
    if (i < POINTS)
      CHECK_OK(loggap_detector_push(detector, &points[i], &change, &detail));
    else
      CHECK_OK(loggap_detector_finish(detector, &change, &detail));
    found = change.found;
  }
  CHECK(found == 1 && change.before == 400 && change.at == 512 && change.index == 8);
  CHECK(near(change.gap_ps, 300000) && near(change.gap_per_byte_ps, 80));
  loggap_fit_point wrong = {2000, 1, -1};
  CHECK_STATUS(loggap_detector_push(detector, &wrong, &change, &detail), LOGGAP_STATUS_MALFORMED,
               &detail);
  CHECK(detail.reason == LOGGAP_REASON_POINT_SIGMA);
  options.points = 9;
  CHECK_STATUS(loggap_detector_init(&detector, &options, lent, sizeof lent, &detail),
               LOGGAP_STATUS_OPTION, &detail);
  CHECK_STATUS(loggap_detector_finish(0, &change, &detail), LOGGAP_STATUS_NULL, &detail);
}

static loggap_line exact(int64_t at_one, int64_t per_byte) {
  loggap_line line = {{at_one, at_one, at_one, 0}, {per_byte, per_byte, per_byte, 0}, 1, at_one, 0, 0};
  return line;
}

static void check_predictions(void) {
  static loggap_profile profile;
  loggap_prediction prediction;
  loggap_loggops set;
  uint64_t time = 0;
  uint32_t is_exact = 9;
  loggap_range *range = &profile.ranges[0];
  profile.range_count = 1;
  range->first = 1;
  range->last = 1000;
  range->known = 15;
  range->gap = exact(1000000, 2000 << 16);
  range->half_rtt = exact(8000000, 2000 << 16);
  range->send_overhead = exact(1500000, 0);
  range->recv_overhead = exact(500000, 0);
  range->latency.value = range->latency.low = range->latency.high = 6000000;
  CHECK_OK(loggap_predict_message(&profile, 101, &prediction, &detail));
  CHECK(prediction.value_ps == 8200000 && prediction.low_ps == prediction.high_ps);
  CHECK_OK(loggap_predict_prtt(&profile, 10, 3000000, 1, &prediction, &detail));
  CHECK(prediction.value_ps == 2 * 8000000 + 9 * 4500000);
  CHECK_STATUS(loggap_predict_prtt(&profile, 0, 0, 1, &prediction, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  CHECK_STATUS(loggap_predict_message(&profile, 1001, &prediction, &detail),
               LOGGAP_STATUS_OUTSIDE_PROFILE, &detail);
  CHECK(detail.at == 1001);
  CHECK_OK(loggap_profile_loggops(&profile, 5, UINT64_MAX, &set, &detail));
  CHECK(set.latency_ps == 6000000 && set.overhead_ps == 1000000 && set.gap_ps == 1000000);
  CHECK(set.gap_per_byte_q16 == 2000 << 16 && set.eager_limit == UINT64_MAX);
  CHECK_OK(loggap_loggops_message(&set, 101, &time, &detail));
  CHECK(time == 6000000 + 2 * 1000000 + 200000);
  CHECK_STATUS(loggap_loggops_message(&set, UINT64_MAX, &time, &detail), LOGGAP_STATUS_OVERFLOW,
               &detail);
  CHECK_OK(loggap_loggops_collective(&set, LOGGAP_FORM_KIND_BINOMIAL_TREE, 8, 1, &time, &is_exact,
                                     &detail));
  CHECK(time == 3 * 8000000 && is_exact == 1);
  CHECK_OK(loggap_loggops_collective(&set, LOGGAP_FORM_KIND_DISSEMINATION, 9, 1, &time, 0, 0));
  CHECK(time == 4 * 8000000);
  CHECK_STATUS(loggap_loggops_collective(&set, 4, 8, 1, &time, 0, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  range->known = LOGGAP_KNOWN_SEND_OVERHEAD;
  CHECK_STATUS(loggap_profile_loggops(&profile, 5, 0, &set, &detail), LOGGAP_STATUS_NOT_MEASURED,
               &detail);
  CHECK(detail.name_length == 13 && detail.name[0] == 'r');
  CHECK_STATUS(loggap_predict_message(&profile, 5, &prediction, &detail),
               LOGGAP_STATUS_NOT_MEASURED, &detail);
  range->known = 16;
  CHECK_STATUS(loggap_predict_message(&profile, 5, &prediction, &detail), LOGGAP_STATUS_OPTION,
               &detail);
  CHECK_STATUS(loggap_predict_message(0, 5, &prediction, &detail), LOGGAP_STATUS_NULL, &detail);
}

void test_fitting(void) {
  fill();
  check_fit();
  check_detector();
  check_predictions();
}
