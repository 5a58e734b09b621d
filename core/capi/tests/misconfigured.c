/* The example on a link whose messages are too small for a control frame. */
#include <stdint.h>

int32_t assess_misconfigured(void);
int32_t answer_misconfigured(void);
#define BOARD_MESSAGE 100
#define assess_and_keep assess_misconfigured
#define answer_for_ever answer_misconfigured
#include "../examples/firmware.c"
