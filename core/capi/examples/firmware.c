/* What a firmware author writes: how the board counts time and sends and
 * receives messages, and memory. The rest is below. */
#include "loggap.h"

uint64_t board_ticks(void *context);
int32_t board_send(void *context, const uint8_t *message, size_t length);
int32_t board_poll(void *context, uint8_t *buffer, size_t capacity, size_t *length);
int32_t board_discard(void *context);
void board_keep(const uint8_t *bytes, size_t length);
#define BOARD_HZ 25000000ull
#define BOARD_MESSAGE 1024

static LOGGAP_ALIGNAS uint8_t memory[LOGGAP_ASSESS_BYTES(BOARD_MESSAGE, 8, 12, 12, 2)];
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

/* Answers whoever measures, one session after the other. */
void answer_for_ever(void) {
  loggap_clock clock = {0, board_ticks, LOGGAP_PICOS_PER_TICK_Q32(BOARD_HZ), 0};
  loggap_link link = {0, board_send, board_poll, board_discard, BOARD_MESSAGE, 0};
  while (loggap_serve(&clock, &link, 0, memory, sizeof memory, 0, 0) != LOGGAP_STATUS_LINK) {
  }
}
