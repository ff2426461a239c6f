/* The table of descriptors. Reading it takes no lock: any write() of the program looks here. Changes do, and so does
   everything that the system has to do in one step with a change (a dup of a device, and the table's entry for it). */
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

struct open *_Atomic fd_table[FD_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct open *unused;
static int top; /* no device has a number of top or more */

/* Signals wait: a handler may fork, or dup a device, which would wait for whom it has interrupted. */
static uint64_t signals_were; /* of the lock's holder */
void fd_lock(void)
{
	uint64_t were = signals_hold();
	pthread_mutex_lock(&lock);
	signals_were = were;
}
void fd_unlock(void)
{
	uint64_t were = signals_were;
	pthread_mutex_unlock(&lock);
	signals_release(were);
}

static void set(int fd, struct open *o)
{
	if (fd >= top)
		top = fd + 1;
	o->refs++;
	atomic_store_explicit(&fd_table[fd], o, memory_order_release);
}

/* The mark is the signal of F_SETSIG, which nothing uses: an eventfd sends none. It belongs to the open file,
   costs one system call, the cheapest there is of a descriptor, and is 0 of all that the program has made. */
enum { MARKS = 64 };

static bool genuine(int fd, const struct open *o) { return NEXT(fcntl)(fd, F_GETSIG) == o->mark; }

/* Takes fd out of the table; true if it was the last of an open that the engine knows, whose handle is *handle. */
static bool forget(int fd, int *handle)
{
	struct open *o = fd_open(fd);
	if (!o)
		return false;
	atomic_store_explicit(&fd_table[fd], NULL, memory_order_release);
	if (--o->refs > 0)
		return false;
	o->free = unused;
	unused = o;
	*handle = o->handle;
	return !o->stale;
}

int fd_new(int fd, enum kind kind, int handle)
{
	int mark = 1 + handle % MARKS, old;
	if (NEXT(fcntl)(fd, F_SETSIG, mark) != 0)
		return errno;
	fd_lock();
	bool last = forget(fd, &old); /* closed where we did not see it */
	struct open *o = unused;
	if (o)
		unused = o->free;
	else
		o = calloc(1, sizeof *o);
	if (o) {
		o->kind = kind;
		o->handle = handle;
		o->mark = mark;
		o->stale = false;
		set(fd, o);
	}
	fd_unlock();
	if (last)
		engine.close(old);
	return o ? 0 : ENOMEM;
}

static void forget_one(int fd)
{
	int handle;
	fd_lock();
	bool last = forget(fd, &handle);
	fd_unlock();
	if (last)
		engine.close(handle);
}

struct open *fd_device_slow(int fd)
{
	int e = errno, handle;
	struct open *o = fd_open(fd);
	if (o && !genuine(fd, o)) {
		o = NULL;
		if (own_process()) {
			fd_lock();
			o = fd_open(fd); /* another thread may have closed it meanwhile, and have another device there */
			bool gone = o && !genuine(fd, o), last = gone && forget(fd, &handle);
			fd_unlock();
			if (gone)
				o = NULL;
			if (last)
				engine.close(handle);
		}
	}
	errno = e;
	return o;
}

void fd_forget_gone(void)
{
	for (int fd = 0; fd < top; fd++)
		fd_device(fd);
}

void fd_forget_range(unsigned first, unsigned last)
{
	if (!own_process())
		return;
	for (; first <= last && first < (unsigned)top; first++)
		if (fd_open((int)first))
			forget_one((int)first);
}

void fd_forked(void)
{
	for (int fd = 0; fd < top; fd++) {
		struct open *o = fd_open(fd);
		if (o)
			o->stale = true;
	}
}

/* Closes fd, or the stream that it is of. */
static int close_either(int fd, FILE *stream)
{
	int handle;
	bool last = false;
	if (is_channel(fd) && own_process())
		no_channel(fd);
	if (!LIKELY(!fd_open(fd)) && own_process()) {
		fd_lock();
		last = forget(fd, &handle);
		fd_unlock();
	}
	int r = stream ? NEXT(fclose)(stream) : NEXT(close)(fd);
	if (last) {
		int e = errno;
		engine.close(handle);
		errno = e;
	}
	return r;
}

EXPORT int close(int fd) { return close_either(fd, NULL); }

EXPORT int fclose(FILE *stream)
{
	int e = errno, fd = fileno(stream); /* of one in memory there is none */
	errno = e;
	return close_either(fd, stream);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	if (!NEXT(close_range)) {
		errno = ENOSYS;
		return -1;
	}
	int r = NEXT(close_range)(first, last, flags);
	if (r == 0 && !(flags & 4 /* CLOSE_RANGE_CLOEXEC */))
		fd_forget_range(first, last);
	return r;
}

EXPORT void closefrom(int first)
{
	if (!NEXT(closefrom)) { /* before glibc 2.34, whose programs do not know it */
		for (long fd = sysconf(_SC_OPEN_MAX); --fd >= first;)
			close((int)fd);
		return;
	}
	NEXT(closefrom)(first);
	fd_forget_range(first < 0 ? 0 : (unsigned)first, FD_MAX);
}

enum { DUP, DUP2, DUP3, FCNTL, FCNTL64 };

/* Makes a duplicate of fd by one of these calls. Where fd or the target is a device this is one step: another thread that
   closes fd meanwhile would end an open that has one descriptor more. */
static int duplicate(int call, int fd, int target, int arg)
{
	fd_device(fd);
	bool ours = (fd_open(fd) || (call <= DUP3 && call != DUP && fd_open(target))) && own_process();
	if (ours)
		fd_lock();
	int made = -1;
	switch (call) {
	case DUP: made = NEXT(dup)(fd); break;
	case DUP2: made = NEXT(dup2)(fd, target); break;
	case DUP3: made = NEXT(dup3)(fd, target, arg); break;
	case FCNTL: made = NEXT(fcntl)(fd, arg, target); break;
	case FCNTL64: made = NEXT(fcntl64)(fd, arg, target); break;
	}
	if (!ours)
		return made;
	int e = errno, handle;
	bool last = false;
	struct open *o = fd_open(fd);
	if (made >= FD_MAX && o) { /* no room to know it */
		NEXT(close)(made);
		made = -1;
		e = EMFILE;
	} else if (made >= 0 && made != fd) {
		last = forget(made, &handle);
		if (o)
			set(made, o);
	}
	fd_unlock();
	if (last)
		engine.close(handle);
	errno = e;
	return made;
}

EXPORT int dup(int fd) { return duplicate(DUP, fd, -1, 0); }
EXPORT int dup2(int fd, int target) { return duplicate(DUP2, fd, target, 0); }
EXPORT int dup3(int fd, int target, int flags) { return duplicate(DUP3, fd, target, flags); }

#define FCNTL_(name, how)                                                                                                  \
	EXPORT int name(int fd, int cmd, ...)                                                                              \
	{                                                                                                                  \
		va_list a;                                                                                                 \
		va_start(a, cmd);                                                                                          \
		void *arg = va_arg(a, void *);                                                                             \
		va_end(a);                                                                                                 \
		if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)                                                              \
			return duplicate(how, fd, (int)(long)arg, cmd);                                                    \
		if (cmd == F_SETSIG && fd_device(fd)) /* no device sends one; and the mark stays */                        \
			return 0;                                                                                          \
		return NEXT(name)(fd, cmd, arg);                                                                           \
	}
FCNTL_(fcntl, FCNTL)
/* libc before 2.28 has no fcntl64, and its programs do not call it. */
FCNTL_(fcntl64, FCNTL64)
