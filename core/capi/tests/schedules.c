/* Schedules in all formats, noise traces, and their simulation. */
#include "bench.h"

/* The same two ranks as text, in LogGOPSim's format and in ours. */
static const char two[] =
    "num_ranks 2\nrank 0 {\na: calc 10\nb: send 8b to 1 tag 5\nb requires a\n}\n"
    "rank 1 {\na: recv 8b from 0 tag 5\nb: calc 20\nb irequires a\n}\n";
static const uint8_t two_bin[234] = {
  0x7f, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x26, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x84, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xe2, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00,
  0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00,
  0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
  0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
  0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
  0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
  0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
};
static const uint8_t two_lgs[208] = {
  0x89, 0x4c, 0x47, 0x53, 0x0d, 0x0a, 0x1a, 0x0a, 0x01, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00,
  0xd0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
  0x98, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
  0x10, 0x27, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x01, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x20, 0x4e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
  0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,
};

static const char alone[] = "num_ranks 2\nrank 0 {\nr: recv 8b from 1 tag 5\n}\nrank 1 {\n}\n";
static const char wrong[] = "num_ranks 1\nrank 0 {\na: calc 10\nb requires c\n}\n";
static const char noisy[] = "# Trace length [ns]: 1000\n100.5 10\n500 20\n";

static LOGGAP_ALIGNAS uint8_t memory[40000];
static loggap_detail detail;

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

typedef struct counts {
  uint32_t ranks, begun, ended, ops, edges, starts, digest, refuse_op;
} counts;

static int32_t on_ranks(void *context, uint32_t ranks) {
  ((counts *)context)->ranks = ranks;
  return 0;
}
static int32_t on_begin(void *context, uint32_t rank) {
  counts *c = context;
  return rank == c->begun++ ? 0 : 1;
}
static int32_t on_op(void *context, uint32_t index, const loggap_operation *op) {
  counts *c = context;
  c->ops++;
  c->digest = c->digest * 31 + op->kind + 7 * op->peer + 11 * op->tag + (uint32_t)op->amount + index;
  return c->refuse_op != 0 && c->ops == c->refuse_op ? 42 : 0;
}
static int32_t on_requires(void *context, uint32_t op, uint32_t on, uint32_t start) {
  counts *c = context;
  c->edges++;
  c->starts += start;
  return op == 1 && on == 0 ? 0 : 2;
}
static int32_t on_end(void *context) {
  ((counts *)context)->ended++;
  return 0;
}

static int32_t read_all(const uint8_t *bytes, size_t length, counts *c) {
  loggap_sink sink = {c, on_ranks, on_begin, on_op, on_requires, on_end};
  return loggap_goal_read(bytes, length, memory, sizeof memory, 5, &sink, &detail);
}

static void check_formats(void) {
  const struct {
    const uint8_t *bytes;
    size_t length;
    uint32_t format;
  } all[] = {{BYTES(two), LOGGAP_FORMAT_KIND_TEXT},
             {two_bin, sizeof two_bin, LOGGAP_FORMAT_KIND_REFERENCE},
             {two_lgs, sizeof two_lgs, LOGGAP_FORMAT_KIND_NATIVE}};
  uint32_t digest = 0;
  for (size_t i = 0; i < 3; i++) {
    loggap_goal_info info;
    counts c = {0};
    CHECK_OK(loggap_goal_survey(all[i].bytes, all[i].length, &info, &detail));
    CHECK(info.format == all[i].format && info.ranks == 2 && info.ops == 4 && info.edges == 2);
    CHECK(info.read_bytes <= sizeof memory && info.edges_most == 1);
    CHECK_STATUS(read_all(all[i].bytes, all[i].length, &c), LOGGAP_STATUS_OK, &detail);
    CHECK(c.ranks == 2 && c.begun == 2 && c.ended == 2 && c.ops == 4 && c.edges == 2 &&
          c.starts == 1);
    if (i > 0) CHECK(c.digest == digest);
    digest = c.digest;
    counts refuse = {0};
    refuse.refuse_op = 4;
    CHECK_STATUS(read_all(all[i].bytes, all[i].length, &refuse), LOGGAP_STATUS_SINK, &detail);
    CHECK(detail.found == 42 && detail.rank == 1 && detail.op == 1);
    loggap_sink nothing = {0, 0, 0, 0, 0, 0};
    CHECK_OK(loggap_goal_read(all[i].bytes, all[i].length, memory, sizeof memory, 5, &nothing, 0));
    if (info.read_bytes > 0)
      CHECK_STATUS(loggap_goal_read(all[i].bytes, all[i].length, memory, info.read_bytes - 1, 5,
                                    &nothing, &detail),
                   LOGGAP_STATUS_MEMORY, &detail);
    else
      CHECK_OK(loggap_goal_read(all[i].bytes, all[i].length, 0, 0, 5, &nothing, &detail));
    /* Every way to cut it off is noticed. */
    for (size_t cut = 0; cut + 2 < all[i].length; cut++)
      if (loggap_goal_read(all[i].bytes, cut, memory, sizeof memory, 5, &nothing, &detail) !=
          LOGGAP_STATUS_MALFORMED)
        CHECK(!"a schedule that was cut off is accepted");
  }
}

static void check_refused(void) {
  loggap_goal_info info;
  counts c = {0};
  CHECK_STATUS(read_all(BYTES(wrong), &c), LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.line == 4 && detail.column == 1 && detail.reason == LOGGAP_REASON_TEXT_UNDEFINED);
  CHECK_STATUS(loggap_goal_survey(BYTES("num_ranks 1\nrank 0 [\n}\n"), &info, &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.line == 2 && detail.found == '[' && detail.reason == LOGGAP_REASON_TEXT_EXPECTED);
  CHECK(detail.name_length == 1 && detail.name[0] == '{');
  uint8_t broken[sizeof two_lgs];
  for (size_t i = 0; i < sizeof broken; i++) broken[i] = two_lgs[i];
  broken[24]++;
  CHECK_STATUS(loggap_goal_survey(broken, sizeof broken, &info, &detail), LOGGAP_STATUS_MALFORMED,
               &detail);
  CHECK(detail.at == 24 && detail.reason == LOGGAP_REASON_FILE_FIELD && detail.needed == 4 &&
        detail.found == 5);
  CHECK_STATUS(loggap_goal_survey(0, 5, &info, &detail), LOGGAP_STATUS_NULL, &detail);
  CHECK_STATUS(loggap_goal_survey(two_bin, sizeof two_bin, 0, &detail), LOGGAP_STATUS_NULL, &detail);
  CHECK_STATUS(loggap_goal_read(two_bin, sizeof two_bin, memory, 99, 5, 0, &detail),
               LOGGAP_STATUS_NULL, &detail);
}

/* LogGOPSim's defaults. */
static const loggap_protocol usual = {0, {2500000, 1500000, 1000000, 6000 << 16, 0, 65535}};
static loggap_simulate_options plain;

static void check_simulation(void) {
  loggap_simulated simulated;
  uint64_t finish[2];
  size_t needed = 0;
  CHECK_OK(loggap_simulate_goal_bytes(two_bin, sizeof two_bin, &plain, memory, sizeof memory,
                                      &needed, &detail));
  CHECK(needed > 0 && needed <= sizeof memory);
  CHECK_STATUS(loggap_simulate_goal(two_bin, sizeof two_bin, &usual, 1, &plain, memory, needed,
                                    &simulated, finish, 2, &detail),
               LOGGAP_STATUS_OK, &detail);
  CHECK(simulated.makespan_ps == 5552000 && simulated.last_rank == 1 && simulated.ops == 4);
  CHECK(finish[0] == 1510000 && finish[1] == 5552000 && simulated.events == 5);
  CHECK_STATUS(loggap_simulate_goal(two_bin, sizeof two_bin, &usual, 1, &plain, memory, needed - 1,
                                    &simulated, 0, 0, &detail),
               LOGGAP_STATUS_MEMORY, &detail);
  CHECK(detail.needed == needed);
  CHECK_STATUS(loggap_simulate_goal(BYTES(two), &usual, 1, &plain, memory, sizeof memory,
                                    &simulated, finish, 1, &detail),
               LOGGAP_STATUS_FULL, &detail);
  CHECK(detail.needed == 2);
  CHECK_STATUS(loggap_simulate_goal(BYTES(alone), &usual, 1, &plain, memory, sizeof memory,
                                    &simulated, 0, 0, &detail),
               LOGGAP_STATUS_DEADLOCK, &detail);
  CHECK(detail.rank == 0 && detail.op == 0 && detail.reason == LOGGAP_REASON_WAITING &&
        detail.needed == 1);
  CHECK_STATUS(loggap_simulate_goal(BYTES(two), &usual, 0, &plain, memory, sizeof memory,
                                    &simulated, 0, 0, &detail),
               LOGGAP_STATUS_OPTION, &detail);
  loggap_simulate_options other = plain;
  other.receive = 2;
  CHECK_STATUS(loggap_simulate_goal(BYTES(two), &usual, 1, &other, memory, sizeof memory,
                                    &simulated, 0, 0, &detail),
               LOGGAP_STATUS_OPTION, &detail);
  /* A detour of 20 ns in the middle of the send's overhead. */
  static const loggap_detour detour = {500000, 20000};
  other = plain;
  other.detours = &detour;
  other.detour_count = 1;
  other.noise_length_ps = UINT64_MAX;
  CHECK_STATUS(loggap_simulate_goal(BYTES(two), &usual, 1, &other, memory, sizeof memory,
                                    &simulated, 0, 0, &detail),
               LOGGAP_STATUS_OK, &detail);
  CHECK(simulated.makespan_ps >= 5552000 && simulated.makespan_ps <= 5552000 + 40000);
  other.noise_length_ps = 1;
  CHECK_STATUS(loggap_simulate_goal(BYTES(two), &usual, 1, &other, memory, sizeof memory,
                                    &simulated, 0, 0, &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.reason == LOGGAP_REASON_NOISE_END);
}

static int32_t pattern(uint32_t kind, uint32_t ranks, uint64_t size, loggap_simulated *simulated) {
  loggap_pattern_options options;
  size_t needed = 0;
  CHECK_OK(loggap_pattern_options_default(&options, ranks, size));
  int32_t status = loggap_simulate_pattern_bytes(kind, &options, &plain, memory, sizeof memory,
                                                 &needed, &detail);
  if (status != LOGGAP_STATUS_OK) return status;
  CHECK(needed <= sizeof memory);
  return loggap_simulate_pattern(kind, &options, &usual, 1, &plain, memory, needed, simulated, 0, 0,
                                 &detail);
}

static void check_patterns(void) {
  loggap_simulated simulated;
  uint32_t kind = 99;
  CHECK_OK(pattern(LOGGAP_PATTERN_KIND_DISSEMINATION, 8, 1, &simulated));
  CHECK(simulated.makespan_ps == 3 * 5500000 && simulated.ranks == 8);
  CHECK_OK(pattern(LOGGAP_PATTERN_KIND_BINOMIAL_BROADCAST, 8, 100, &simulated));
  CHECK(simulated.makespan_ps == 3 * (5500000 + 99 * 6000));
  for (uint32_t i = 0; i <= LOGGAP_PATTERN_KIND_MPI_OUTCAST; i++)
    CHECK_STATUS(pattern(i, 8, 64, &simulated), LOGGAP_STATUS_OK, &detail);
  CHECK_STATUS(pattern(33, 8, 64, &simulated), LOGGAP_STATUS_OPTION, &detail);
  CHECK_STATUS(pattern(3, 0, 64, &simulated), LOGGAP_STATUS_OPTION, &detail);
  CHECK(detail.reason == LOGGAP_REASON_PATTERN_ZERO);
  CHECK_OK(loggap_pattern_named("binomialtreebcast", 17, &kind, &detail));
  CHECK(kind == LOGGAP_PATTERN_KIND_BINOMIAL_BROADCAST);
  CHECK_OK(loggap_pattern_named("ring-allreduce", 14, &kind, &detail));
  CHECK(kind == LOGGAP_PATTERN_KIND_RING_ALLREDUCE);
  CHECK_STATUS(loggap_pattern_named("none", 4, &kind, &detail), LOGGAP_STATUS_UNKNOWN_NAME,
               &detail);
  CHECK_STATUS(loggap_pattern_named("\xff", 1, &kind, 0), LOGGAP_STATUS_UNKNOWN_NAME, 0);
  CHECK_STATUS(loggap_simulate_pattern(0, 0, &usual, 1, &plain, memory, 9, &simulated, 0, 0,
                                       &detail),
               LOGGAP_STATUS_NULL, &detail);
}

static void check_noise(void) {
  loggap_detour detours[2];
  size_t count = 0;
  uint64_t length = 0;
  CHECK(loggap_noise_count(BYTES(noisy)) == 2 && loggap_noise_count(0, 5) == 0);
  size_t bytes = loggap_noise_bytes(2);
  CHECK_OK(loggap_noise_read(BYTES(noisy), memory, bytes, detours, 2, &count, &length, &detail));
  CHECK(count == 2 && length == 1000000 && detours[0].start_ps == 100500);
  CHECK(detours[1].start_ps == 500000 && detours[1].duration_ps == 20000);
  CHECK_STATUS(loggap_noise_read(BYTES(noisy), memory, bytes, detours, 1, &count, 0, &detail),
               LOGGAP_STATUS_FULL, &detail);
  CHECK(count == 2 && detail.needed == 2);
  CHECK_STATUS(loggap_noise_read(BYTES(noisy), memory, bytes - 1, detours, 2, &count, 0, &detail),
               LOGGAP_STATUS_MEMORY, &detail);
  CHECK_STATUS(loggap_noise_read(BYTES("1 2\n3 x\n"), memory, sizeof memory, detours, 2, &count, 0,
                                 &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.line == 2 && detail.column == 3 && detail.reason == LOGGAP_REASON_NOISE_NUMBER);
  CHECK_STATUS(loggap_noise_read(BYTES("1 2\n2 2\n"), memory, sizeof memory, detours, 2, &count, 0,
                                 &detail),
               LOGGAP_STATUS_MALFORMED, &detail);
  CHECK(detail.at == 1 && detail.reason == LOGGAP_REASON_NOISE_OVERLAP);
}

static void on_check(void *context, const char *name, size_t length, uint32_t good,
                     uint64_t computed, uint64_t answer) {
  (*(uint32_t *)context)++;
  CHECK(name != 0 && length > 4 && good == (computed == answer));
}

static void check_selftest(void) {
  uint32_t told = 0;
  loggap_selftest_count count = {0, 0};
  stack_paint();
  CHECK_STATUS(loggap_selftest(on_check, &told, &count, &detail), LOGGAP_STATUS_OK, &detail);
  put_ram("loggap_selftest", 0, sizeof count, stack_used());
  CHECK(told > 20 && count.passed == told && count.failed == 0);
  CHECK_OK(loggap_selftest(0, 0, 0, 0));
}

void test_schedules(void) {
  check_formats();
  check_refused();
  check_simulation();
  check_patterns();
  check_noise();
  check_selftest();
}
