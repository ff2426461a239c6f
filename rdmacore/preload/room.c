/* Whether the engine finds what it needs to start. Go's runtime ends the process where it does not: under limits that the program has
   dropped before it opens a device, or that are the user's. */
#include "preload.h"

#include <sys/eventfd.h>
#include <sys/mman.h>

/* Somewhat more than it takes to start. */
enum { DESCRIPTORS = 16, THREADS = 8 };
static const size_t ADDRESSES = (size_t)2 << 30; /* most of it reserved alone */

static bool descriptors(void)
{
	int fds[DESCRIPTORS], n = 0;
	while (n < DESCRIPTORS && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
		n++;
	bool enough = n == DESCRIPTORS;
	while (n > 0)
		NEXT(close)(fds[--n]);
	return enough;
}

static bool addresses(void)
{
	void *p = mmap(NULL, ADDRESSES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p != MAP_FAILED && munmap(p, ADDRESSES) == 0;
}

static void *waits(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

static bool threads(void)
{
	pthread_t t[THREADS];
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int n = 0;
	pthread_mutex_lock(&lock);
	while (n < THREADS && pthread_create(&t[n], NULL, waits, &lock) == 0)
		n++;
	pthread_mutex_unlock(&lock);
	bool enough = n == THREADS;
	while (n > 0)
		pthread_join(t[--n], NULL);
	return enough;
}

const char *no_room(void)
{
	if (!descriptors())
		return "it needs 16 descriptors that are free, and the limit leaves fewer (ulimit -n, RLIMIT_NOFILE)";
	if (!addresses())
		return "it needs 2 GiB of addresses, of memory little, and the limit leaves less (ulimit -v, RLIMIT_AS)";
	if (!threads())
		return "it needs 8 threads, and the limit leaves fewer (ulimit -u, RLIMIT_NPROC, pids.max of the control group)";
	return NULL;
}
