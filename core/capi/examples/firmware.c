/* What a firmware author writes: how the board counts time and sends and
 * receives messages, and memory. The rest is below. */
#include "loggap.h"

uint64_t board_ticks(void *context);
int32_t board_send(void *context, const uint8_t *message, size_t length);
int32_t board_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length);
int32_t board_discard(void *context);
/* A number that nobody can guess. */
uint64_t board_random(void);
/* Closes the link to whoever it heard, and lets it hear anybody: the first message that comes
 * then decides whom it sends to and hears, until the next call. What others send is dropped. */
void board_next_peer(void);
void board_keep(const uint8_t *bytes, size_t length);
#define BOARD_HZ 25000000ull
#ifndef BOARD_MESSAGE
#define BOARD_MESSAGE 1024
#endif

static LOGGAP_ALIGNAS uint8_t memory[LOGGAP_ASSESS_BYTES(BOARD_MESSAGE, 8, 12, 12)];
static loggap_profile profile;

/* Measures the link to whoever answers, and keeps its profile. */
int32_t assess_and_keep(void) {
  loggap_clock clock = {0, board_ticks, LOGGAP_PICOS_PER_TICK_Q32(BOARD_HZ), 0};
  loggap_link link = {0, board_send, board_poll, board_discard, BOARD_MESSAGE, 0};
  loggap_assess_options options;
  size_t length;
  int32_t status = loggap_check_abi(0);
  if (status == LOGGAP_STATUS_OK) status = loggap_clock_calibrate(&clock, 0);
  if (status == LOGGAP_STATUS_OK) status = loggap_assess_options_default(&options);
  if (status == LOGGAP_STATUS_OK)
    status = loggap_assess(&clock, &link, &options, memory, sizeof memory, &profile, 0, 0);
  if (status == LOGGAP_STATUS_OK)
    status = loggap_profile_encode(&profile, memory, sizeof memory, &length, 0);
  if (status == LOGGAP_STATUS_OK) board_keep(memory, length);
  return status;
}

/* Answers whoever measures, one session after the other, until the link breaks
 * or the board is not set up for it; returns why. */
int32_t answer_for_ever(void) {
  loggap_clock clock = {0, board_ticks, LOGGAP_PICOS_PER_TICK_Q32(BOARD_HZ), 0};
  loggap_link link = {0, board_send, board_poll, board_discard, BOARD_MESSAGE, 0};
  int32_t status = loggap_check_abi(0);
  /* The responder times its own receives: reading the clock must not count. */
  if (status == LOGGAP_STATUS_OK) status = loggap_clock_calibrate(&clock, 0);
  /* A silent initiator is not the last. */
  while (status == LOGGAP_STATUS_OK || status == LOGGAP_STATUS_SILENT) {
    board_next_peer();
    /* An initiator has to echo the number: nobody else can have replies sent to it. With 0 it
     * would not have to. */
    status = loggap_serve(&clock, &link, 0, board_random() | 1, memory, sizeof memory, 0, 0);
  }
  return status;
}
