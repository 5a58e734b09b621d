/* A machine without a C library: where the program begins and ends, how it
 * prints, and the memory functions that compilers call. Linux on x86-64 and
 * AArch64 by system calls, Cortex-M by semihosting. */
#include <stddef.h>
#include <stdint.h>

int bench_main(void);
void put_text(const char *text);

#if defined(__x86_64__) || defined(__aarch64__)

static long call(long number, long a, long b, long c) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

#if defined(__x86_64__)
#define SYS_WRITE 1
#define SYS_EXIT 60
__asm__(".globl _start\n_start: xor %ebp, %ebp\n and $-16, %rsp\n call begin\n");
#else
#define SYS_WRITE 64
#define SYS_EXIT 93
__asm__(".globl _start\n_start: mov x29, #0\n bl begin\n");
#endif

void begin(void);
void begin(void) {
  int code = bench_main();
  for (;;) call(SYS_EXIT, code, 0, 0);
}

void put_text(const char *text) {
  size_t length = 0;
  while (text[length] != 0) length++;
  call(SYS_WRITE, 1, (long)text, (long)length);
}

void stack_paint(void);
void stack_paint(void) {}

uint32_t stack_used(void);
uint32_t stack_used(void) { return 0; }

void on_peer_stack(void (*function)(void *), void *argument);
void on_peer_stack(void (*function)(void *), void *argument) { function(argument); }

#elif defined(__arm__)

/* The part of the stack that is painted. */
#define PAINTED 65536u
#define PAINT 0xa5a5a5a5u
static uint32_t painted_top;

static inline uint32_t stack_pointer(void) {
  uint32_t sp;
  __asm__ volatile("mov %0, sp" : "=r"(sp));
  return sp;
}

void stack_paint(void);
void stack_paint(void) {
  painted_top = stack_pointer() - 64;
  for (uint32_t at = painted_top - PAINTED; at < painted_top; at += 4)
    *(volatile uint32_t *)(uintptr_t)at = PAINT;
}

uint32_t stack_used(void);
uint32_t stack_used(void) {
  uint32_t at = painted_top - PAINTED;
  while (at < painted_top && *(volatile uint32_t *)(uintptr_t)at == PAINT) at += 4;
  return painted_top - at;
}

/* Calls `function` on memory of its own as the stack. The processor's
 * procedure call standard leaves r4 to the caller of this function. */
__attribute__((used)) _Alignas(8) static uint8_t peer_stack[8192];
void on_peer_stack(void (*function)(void *), void *argument);
__asm__(
    ".text\n.syntax unified\n.thumb\n.global on_peer_stack\n.type on_peer_stack, %function\n"
    "on_peer_stack:\n"
    " push {r4, lr}\n"
    " mov r4, sp\n"
    " ldr r2, =peer_stack + 8192\n"
    " mov sp, r2\n"
    " mov r2, r0\n"
    " mov r0, r1\n"
    " blx r2\n"
    " mov sp, r4\n"
    " pop {r4, pc}\n"
    ".ltorg\n");

extern uint32_t stack_top, bss_begin, bss_end;

static void semihost(uint32_t operation, uint32_t argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register uint32_t r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void begin(void);
void begin(void) {
  /* Switch the FPU on. */
  *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20;
  __asm__ volatile("dsb\n isb" ::: "memory");
  for (volatile uint32_t *word = &bss_begin; word < &bss_end; word++) *word = 0;
  int code = bench_main();
  for (;;) semihost(0x18, code == 0 ? 0x20026u : 0x20023u);
}

static void fault(void) {
  put_text("a fault of the processor\n");
  for (;;) semihost(0x18, 0x20023u);
}

typedef struct vector_table {
  uint32_t *stack;
  void (*handlers[15])(void);
} vector_table;

__attribute__((section(".vectors"), used)) static const vector_table vectors = {
    &stack_top, {begin, fault, fault, fault, fault, fault}};

void put_text(const char *text) { semihost(0x04, (uint32_t)(uintptr_t)text); }

#endif

#if defined(__x86_64__) || defined(__aarch64__)

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  volatile unsigned char *d = to;
  const unsigned char *s = from;
  for (size_t i = 0; i < count; i++) d[i] = s[i];
  return to;
}

void *memmove(void *to, const void *from, size_t count) {
  volatile unsigned char *d = to;
  const unsigned char *s = from;
  if ((uintptr_t)to <= (uintptr_t)from) {
    for (size_t i = 0; i < count; i++) d[i] = s[i];
  } else {
    for (size_t i = count; i-- > 0;) d[i] = s[i];
  }
  return to;
}

void *memset(void *to, int value, size_t count) {
  volatile unsigned char *d = to;
  for (size_t i = 0; i < count; i++) d[i] = (unsigned char)value;
  return to;
}

int memcmp(const void *a, const void *b, size_t count) {
  const volatile unsigned char *x = a, *y = b;
  for (size_t i = 0; i < count; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

int bcmp(const void *a, const void *b, size_t count) { return memcmp(a, b, count); }

#endif
