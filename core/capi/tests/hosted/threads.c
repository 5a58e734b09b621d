/* The responder on one thread and an assessment on another, over two queues
 * in memory and this machine's clock: the blocking calls, and that calls on
 * different memory do not disturb each other. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loggap.h"

#define MESSAGE 1024
#define SLOTS 64

/* One direction: a ring with one writer and one reader. */
typedef struct ring {
  atomic_uint written, read;
  size_t lengths[SLOTS];
  uint8_t bytes[SLOTS][MESSAGE];
} ring;

typedef struct end {
  ring *out, *in;
} end;

static ring there, back;
static end initiator = {&there, &back}, responder = {&back, &there};
static LOGGAP_ALIGNAS uint8_t serve_memory[LOGGAP_SERVE_BYTES(MESSAGE)];
static LOGGAP_ALIGNAS uint8_t memory[LOGGAP_ASSESS_BYTES(MESSAGE, 8, 12, 12)];
static loggap_profile profile;
static loggap_assess_report report;
static loggap_served served;

static uint64_t ticks(void *context) {
  struct timespec now;
  (void)context;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int32_t send_message(void *context, const uint8_t *message, size_t length) {
  ring *out = ((end *)context)->out;
  unsigned written = atomic_load_explicit(&out->written, memory_order_relaxed);
  while (written - atomic_load_explicit(&out->read, memory_order_acquire) == SLOTS) sched_yield();
  memcpy(out->bytes[written % SLOTS], message, length);
  out->lengths[written % SLOTS] = length;
  atomic_store_explicit(&out->written, written + 1, memory_order_release);
  return 0;
}

static int32_t poll_message(void *context, uint8_t *buffer, size_t capacity, size_t *length) {
  ring *in = ((end *)context)->in;
  unsigned read = atomic_load_explicit(&in->read, memory_order_relaxed);
  if (read == atomic_load_explicit(&in->written, memory_order_acquire)) {
    sched_yield();
    return 0;
  }
  *length = in->lengths[read % SLOTS];
  if (*length > capacity) return -1;
  memcpy(buffer, in->bytes[read % SLOTS], *length);
  atomic_store_explicit(&in->read, read + 1, memory_order_release);
  return 1;
}

static const loggap_clock nanos = {0, ticks, LOGGAP_PICOS_PER_TICK_Q32(1000000000ull), 0};

static loggap_link link_of(end *context) {
  loggap_link link = {context, send_message, poll_message, 0, MESSAGE, 1};
  return link;
}

static void *serve(void *context) {
  loggap_clock clock = nanos;
  loggap_link link = link_of(&responder);
  *(int32_t *)context = loggap_serve(&clock, &link, 0, 0, serve_memory, sizeof serve_memory, &served, 0);
  return 0;
}

static int fail(const char *what, const loggap_detail *detail) {
  printf("FAILED: %s: %s %s\n", what, loggap_status_text(detail->status),
         loggap_reason_text(detail->reason));
  return 1;
}

int main(void) {
  loggap_detail detail;
  loggap_assess_options options;
  loggap_clock clock = nanos;
  loggap_link link = link_of(&initiator);
  pthread_t thread;
  int32_t status = -1;
  if (loggap_check_abi(&detail)) return fail("abi", &detail);
  if (loggap_clock_calibrate(&clock, &detail)) return fail("calibrate", &detail);
  loggap_assess_options_default(&options);
  options.max_time_ps = 500000000000;
  options.max_messages = 20000;
  if (pthread_create(&thread, 0, serve, &status)) return 1;
  if (loggap_assess(&clock, &link, &options, memory, sizeof memory, &profile, &report, &detail))
    return fail("assess", &detail);
  pthread_join(thread, 0);
  const loggap_range *range = &profile.ranges[0];
  int good = status == LOGGAP_STATUS_OK && served.ending == LOGGAP_ENDING_KIND_GOODBYE &&
             served.received == report.data_sent && served.replied == report.data_received &&
             served.rounds == report.rounds && served.strays == 0 && report.rounds_lost == 0 &&
             profile.range_count >= 1 && range->first == 1 &&
             /* Where the threads wait for a processor one of both may fit best as 0. */
             (range->half_rtt.at_one.value > 0 || range->half_rtt.per_byte.value > 0);
  printf("%s: %llu rounds, half a round trip of %lld ns\n", good ? "ok" : "FAILED",
         (unsigned long long)report.rounds, (long long)(range->half_rtt.at_one.value / 1000));
  return good ? 0 : 1;
}
