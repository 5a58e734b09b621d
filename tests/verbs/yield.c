/* Preloaded where two programs that poll share one processor: a look for a
 * completion, which takes a lock, first lets the other one run. */
#include <pthread.h>
#include <sched.h>

int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	(void)shared;
	*(volatile int *)lock = 0;
	return 0;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	while (__atomic_exchange_n((int *)lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	sched_yield();
	return 0;
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	__atomic_store_n((int *)lock, 0, __ATOMIC_RELEASE);
	return 0;
}
