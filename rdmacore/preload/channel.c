/* A thread that reads a completion channel, which is a pipe, sleeps on the sockets of its connections too, and lets the engine
   receive when it wakes. So what arrives wakes that thread; else it would wake one of the engine's, and that this one. */
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

enum { SOCKETS = 8 };

#pragma weak preadv2 /* of glibc: see engine.c */

/* A read that does not wait, whatever the descriptor says. */
static ssize_t read_now(int fd, void *buf, size_t n)
{
	struct iovec to = {buf, n};
	ssize_t r = preadv2 ? preadv2(fd, &to, 1, -1, RWF_NOWAIT) : (errno = ENOSYS, -1);
	if (r >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
		return r;
	struct pollfd p = {fd, POLLIN, 0};
	if (poll(&p, 1, 0) > 0)
		return NEXT(read)(fd, buf, n);
	errno = EAGAIN;
	return -1;
}

/* To wake a thread, and the processor that idled for want of it, takes longer than an answer over loopback does. So a thread
   whose last wait was short looks for a while before it sleeps, and lets others run meanwhile; each long wait halves the while,
   to nothing for who waits seldom. */
enum { LOOK = 50000 /* ns, at most */, SHORT = 2 * LOOK };
static _Thread_local long look __attribute__((tls_model("initial-exec")));

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static ssize_t wait_channel(int fd, void *buf, size_t n, const sigset_t *signals)
{
	static const struct timespec at_once;
	long begun = now();
	for (;;) {
		int sockets[SOCKETS], k = engine.watch(fd, sockets, SOCKETS);
		/* What was received may be no event: a Write, or half of a message. There is nothing to sleep on before it has looked again. */
		bool received = k < 0;
		if (received)
			k = 0;
		nfds_t all = 1 + (nfds_t)k;
		struct pollfd p[1 + SOCKETS] = {{fd, POLLIN, 0}};
		for (int i = 0; i < k; i++)
			p[1 + i] = (struct pollfd){sockets[i], POLLIN, 0};
		int ready = 0;
		while (!received && (ready = poll(p, all, 0)) == 0 && now() - begun < look)
			sched_yield();
		/* It ends at every signal, as a read does at those whose handler says so. */
		if (ready <= 0 && ppoll(p, all, received ? &at_once : NULL, signals) < 0 && (errno != EINTR || interrupts()))
			return -1;
		ssize_t r;
		if (p[0].revents && ((r = read_now(fd, buf, n)) >= 0 || errno != EAGAIN)) {
			look = now() - begun < SHORT ? LOOK : look / 2;
			return r;
		}
	}
}

static ssize_t read_channel(int fd, void *buf, size_t n)
{
	int e = errno;
	ssize_t r = read_now(fd, buf, n);
	if (r >= 0 || errno != EAGAIN || (NEXT(fcntl)(fd, F_GETFL) & O_NONBLOCK))
		return r;
	struct stat st;
	/* Closed where we do not see it, and another's number now? */
	if (fstat(fd, &st) != 0 || st.st_ino != engine.channels[fd]) {
		no_channel(fd);
		errno = e;
		return NEXT(read)(fd, buf, n);
	}
	/* Signals wait while the thread is awake, to end its sleep: a handler that ran in between would end nothing. */
	uint64_t were = signals_hold();
	sigset_t sleeping;
	sigemptyset(&sleeping);
	memcpy(&sleeping, &were, sizeof were);
	r = wait_channel(fd, buf, n, &sleeping);
	e = r < 0 ? errno : e;
	signals_release(were);
	errno = e;
	return r;
}

EXPORT ssize_t read(int fd, void *buf, size_t n)
{
	return LIKELY(!is_channel(fd)) ? NEXT(read)(fd, buf, n) : read_channel(fd, buf, n);
}
