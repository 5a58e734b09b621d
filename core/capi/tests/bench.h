/* What the C tests share: checks that print one line when they fail, and a
 * link on virtual time whose parameters are known. Needs no C library. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

#include "loggap.h"

/* Given by the machine: prints text, ended by a zero byte. */
void put_text(const char *text);

/* Given by the machine: marks the free stack, and says how many bytes of it
 * were used since; 0 where the machine cannot say. */
void stack_paint(void);
uint32_t stack_used(void);

/* Given by the machine: calls `function`, where the stack is measured on
 * another stack: what runs at the other end of a link takes none of the
 * library's. */
void on_peer_stack(void (*function)(void *), void *argument);

extern uint32_t passed, failed;

void check(int good, const char *what, int line);
void put_number(uint64_t number);
/* Checks that a call gave `status`, and that `detail`, if not null, says the
 * same. */
void check_status(int32_t got, int32_t status, const loggap_detail *detail, const char *what,
                  int line);

#define CHECK(condition) check((condition) ? 1 : 0, #condition, __LINE__)
#define CHECK_OK(call) check_status((call), LOGGAP_STATUS_OK, 0, #call, __LINE__)
#define CHECK_STATUS(call, status, detail) \
  check_status((call), (status), (detail), #call, __LINE__)

/* Parameters of the link, in ps and bytes. From `change` bytes on the second
 * gap holds. */
#define LATENCY 5000000u
#define SEND_OVERHEAD 1000000u
#define RECV_OVERHEAD 500000u
#define CHANGE 512u
#define GAP_SHORT 2000000u
#define PER_BYTE_SHORT 3000u
#define GAP_LONG 3600000u
#define PER_BYTE_LONG 1000u
/* What a look at the clock takes. */
#define READING 20000u
#define LARGEST 1496u

#define IN_FLIGHT 64

typedef struct message {
  uint64_t arrival;
  size_t length;
  uint8_t bytes[LARGEST];
} message;

/* An initiator's end of the link; at the other end is a responder. */
typedef struct loopback {
  uint64_t now;
  uint64_t wire_free, back_free, peer_free;
  uint32_t random;
  /* Every so many messages one is lost; 0: none. */
  uint32_t lose_every;
  uint32_t messages, lost;
  /* What send returns from the so many-th message on; 0: never. */
  uint32_t break_after;
  loggap_responder *responder;
  uint32_t over;
  uint32_t first, count;
  message queue[IN_FLIGHT];
} loopback;

/* Begins anew with a responder in `memory`. */
void loopback_begin(loopback *link, uint32_t lose_every, uint8_t *memory, size_t bytes);
loggap_clock loopback_clock(loopback *link);
loggap_link loopback_link(loopback *link);

/* Prints the RAM that a function needs, where its stack is known: bytes lent
 * to it, bytes of what it writes, and its stack. */
void put_ram(const char *function, size_t lent, size_t written, uint32_t stack);

/* An initiator whose messages stand in a list, as the callbacks of a responder's
 * link; what the responder has answered is right. After the list the link is
 * broken. `nonce` is the responder's, known beforehand. */
void script_begin(uint64_t nonce);
int32_t script_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length);
int32_t script_send(void *context, const uint8_t *message, size_t length);
void script_check(void);
int script_is_over(void);
/* Kind of the answer of this index, 0 where it is no frame. */
uint32_t script_answer(uint32_t index);

/* The parts of the test; each is one file. */
void test_errors(void);
void test_script(void);
void test_frames(void);
void test_assessment(void);
void test_fitting(void);
void test_schedules(void);
void test_firmware(void);

#endif
