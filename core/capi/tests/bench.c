/* Checks, and a link on virtual time. */
#include "bench.h"

uint32_t passed, failed;

void put_number(uint64_t number) {
  char digits[21];
  int at = 20;
  digits[at] = 0;
  do {
    digits[--at] = (char)('0' + (int)(number % 10));
    number /= 10;
  } while (number != 0);
  put_text(digits + at);
}

void put_ram(const char *function, size_t lent, size_t written, uint32_t stack) {
  if (stack == 0) return;
  put_text("RAM of ");
  put_text(function);
  put_text(": lent ");
  put_number(lent);
  put_text(", written ");
  put_number(written);
  put_text(", stack ");
  put_number(stack);
  put_text("\n");
}

void check(int good, const char *what, int line) {
  if (good) {
    passed++;
    return;
  }
  failed++;
  put_text("FAILED in line ");
  put_number((uint64_t)line);
  put_text(": ");
  put_text(what);
  put_text("\n");
}

void check_status(int32_t got, int32_t status, const loggap_detail *detail, const char *what,
                  int line) {
  check(got == status && (!detail || detail->status == status), what, line);
  if (got != status) {
    put_text("  got: ");
    put_text(loggap_status_text(got));
    if (detail) {
      put_text(", ");
      put_text(loggap_reason_text(detail->reason));
      put_text(", at ");
      put_number(detail->at);
      put_text(", found ");
      put_number(detail->found);
      put_text(", needed ");
      put_number(detail->needed);
    }
    put_text("\n");
  }
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Time on the wire, and until the next message may follow. */
static uint64_t bytes_time(size_t length) {
  uint64_t per_byte = length >= CHANGE ? PER_BYTE_LONG : PER_BYTE_SHORT;
  return (length - 1) * per_byte;
}

static uint64_t gap_time(size_t length) {
  return (length >= CHANGE ? GAP_LONG : GAP_SHORT) + bytes_time(length);
}

/* Up to 16 ns of noise. */
static uint64_t noise(loopback *link) {
  link->random = link->random * 1664525u + 1013904223u;
  return (uint64_t)(link->random >> 18);
}

static int is_lost(loopback *link) {
  link->messages++;
  if (link->lose_every == 0 || link->messages % link->lose_every != 0) return 0;
  link->lost++;
  return 1;
}

static uint64_t now(void *context) {
  loopback *link = context;
  link->now += READING;
  return link->now / 1000;
}

/* Puts one answer of the responder on its way back, at `time`; gives the time at
 * which the responder is free. */
static uint64_t answer(loopback *link, uint64_t time, const loggap_responder_action *action) {
  if (action->kind == LOGGAP_ACTION_KIND_END) link->over = 1;
  if (action->length == 0) return time;
  time += SEND_OVERHEAD;
  uint64_t left = later(time, link->back_free);
  link->back_free = left + gap_time(action->length);
  if (is_lost(link) || link->count == IN_FLIGHT || action->length > LARGEST) return time;
  message *slot = &link->queue[(link->first + link->count++) % IN_FLIGHT];
  slot->arrival = left + LATENCY + bytes_time(action->length) + noise(link);
  slot->length = action->length;
  for (size_t i = 0; i < action->length; i++) slot->bytes[i] = action->message[i];
  return time;
}

/* A message that arrives at the responder. */
typedef struct delivery {
  loopback *link;
  const uint8_t *bytes;
  size_t length;
  uint64_t arrival;
  int32_t status;
} delivery;

static void deliver(void *context) {
  delivery *message = context;
  loopback *link = message->link;
  loggap_responder_next_message next;
  loggap_responder_action action;
  message->status = 78;
  if (loggap_responder_next(link->responder, &next, 0) != 0) return;
  message->status = 79;
  if (next.timed && loggap_responder_timed(link->responder, RECV_OVERHEAD, 0) != 0) return;
  uint64_t time = later(message->arrival, link->peer_free) + RECV_OVERHEAD;
  message->status = 80;
  if (loggap_responder_handle(link->responder, time, message->bytes, message->length, &action, 0) != 0)
    return;
  time = answer(link, time, &action);
  if (action.kind == LOGGAP_ACTION_KIND_SEND_MORE) {
    message->status = 81;
    if (loggap_responder_more(link->responder, &action, 0) != 0) return;
    time = answer(link, time, &action);
  }
  link->peer_free = time;
  message->status = 0;
}

static int32_t send(void *context, const uint8_t *bytes, size_t length) {
  loopback *link = context;
  link->now += SEND_OVERHEAD;
  uint64_t left = later(link->now, link->wire_free);
  link->wire_free = left + gap_time(length);
  if (link->break_after != 0 && link->messages >= link->break_after) return 77;
  if (is_lost(link) || link->over) return 0;
  uint64_t arrival = left + LATENCY + bytes_time(length) + noise(link);
  delivery message = {link, bytes, length, arrival, 0};
  on_peer_stack(deliver, &message);
  return message.status;
}

static int32_t poll_receive(void *context, uint8_t *buffer, size_t capacity, size_t *length) {
  loopback *link = context;
  if (link->count == 0) {
    link->now += 1000000;
    return 0;
  }
  const message *first = &link->queue[link->first];
  if (first->arrival > link->now) {
    link->now += 2000;
    /* Close to the arrival, so that it is noticed at once. */
    if (first->arrival > link->now) link->now = first->arrival;
    return 0;
  }
  link->first = (link->first + 1) % IN_FLIGHT;
  link->count--;
  /* None of the peer's: anybody can send such a one. */
  if (first->length > capacity) return 0;
  link->now += RECV_OVERHEAD;
  for (size_t i = 0; i < first->length; i++) buffer[i] = first->bytes[i];
  *length = first->length;
  return 1;
}

static int32_t discard(void *context) {
  loopback *link = context;
  while (link->count > 0 && link->queue[link->first].arrival <= link->now) {
    link->first = (link->first + 1) % IN_FLIGHT;
    link->count--;
  }
  return 0;
}

loggap_clock loopback_clock(loopback *link) {
  loggap_clock clock = {link, now, (uint64_t)1000 << 32, 0};
  return clock;
}

loggap_link loopback_link(loopback *link) {
  loggap_link table = {link, send, poll_receive, discard, LARGEST, link->lose_every == 0};
  return table;
}

void loopback_begin(loopback *link, uint32_t lose_every, uint8_t *memory, size_t bytes) {
  link->now = 1000000000;
  link->wire_free = link->back_free = link->peer_free = 0;
  link->random = 1;
  link->lose_every = lose_every;
  link->messages = link->lost = link->break_after = 0;
  link->over = link->first = link->count = 0;
  /* Where messages get lost the initiator has to echo a nonce, too. */
  CHECK_OK(loggap_responder_init(&link->responder, 0, LARGEST, lose_every == 0, 0x1234567890abcdef,
                                 memory, bytes, 0));
}
