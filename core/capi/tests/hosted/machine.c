/* A machine with a C library: what start.c gives without one, for builds under
 * sanitizers. */
#include <stdint.h>
#include <stdio.h>

int bench_main(void);
void put_text(const char *text);
void stack_paint(void);
uint32_t stack_used(void);
void on_peer_stack(void (*function)(void *), void *argument);

void put_text(const char *text) { fputs(text, stdout); }

/* The stack is measured on a device. */
void stack_paint(void) {}
uint32_t stack_used(void) { return 0; }
void on_peer_stack(void (*function)(void *), void *argument) { function(argument); }

int main(void) { return bench_main(); }
