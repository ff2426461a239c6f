/* The parts of libsoftrnic-preload.so, which makes two devices exist inside a process: /dev/infiniband/uverbs0 and
   /dev/infiniband/rdma_cm. A descriptor of theirs is an eventfd, and what is written to it goes to the engine, a library
   of its own (c/engine) that is loaded when the first device is opened. calls.h lists what is interposed, and why. */
#ifndef SOFTRNIC_PRELOAD_H
#define SOFTRNIC_PRELOAD_H

#include "../engine/ring.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* next.c: the functions that ours stand before, of libc or of another preloaded library. */
struct next {
#define CALL(name, result, params, why) result(*name) params;
#include "calls.h"
#undef CALL
};
extern struct next next;
void next_resolve(void);
/* NEXT(f)(...) calls the f behind ours; others' constructors may call before ours has run. */
#define NEXT(name) (LIKELY(next.name != NULL) ? next.name : (next_resolve(), next.name))

/* path.c */
enum kind { NO_DEVICE, UVERBS = 1, RDMA_CM = 2 }; /* as srn_open takes them */
enum kind device_of(const char *path);
/* The path to use instead of one below /sys/class/infiniband* or /sys/class/misc/rdma_cm, in buf; others as they are. */
const char *in_tree(const char *path, char buf[PATH_MAX]);
void path_setup(void);

/* fd.c: which descriptors are devices. */
struct open { /* what one open() made; never freed, but used again, so that a late reader reads one */
	enum kind kind;
	_Atomic int handle; /* the engine's */
	_Atomic bool stale; /* of the process that forked this one */
	unsigned refs;      /* descriptors; under the lock */
	struct open *free;  /* the next unused one */
};
enum { FD_MAX = 1 << 16 };
extern struct open *_Atomic fd_table[FD_MAX];
static inline struct open *fd_open(int fd)
{
	return LIKELY((unsigned)fd < FD_MAX) ? atomic_load_explicit(&fd_table[fd], memory_order_acquire) : NULL;
}
int fd_new(int fd, enum kind kind, int handle); /* 0, or ENOMEM */
void fd_forget_range(unsigned first, unsigned last);
void fd_made(int fd); /* the system has just made fd: it is none of ours, whatever we knew */
void fd_lock(void);
void fd_unlock(void);
void fd_forked(void); /* in the child: every device is stale */

/* engine.c */
struct engine {
	int (*open)(int kind, int fd);
	void (*close)(int handle);
	long (*write)(int handle, const void *buf, unsigned long n);
	void (*forked)(void); /* closes the engine's descriptors, in the child of a fork */
	int (*watch)(int fd, int *fds, int n); /* receives; what to sleep on beside fd */
	_Atomic char *channels; /* completion channels, of FD_MAX descriptors */
	struct ring *rings;     /* RINGS of them */
	struct post_ring *post_rings; /* POST_RINGS of them */
};
extern struct engine engine;
static inline bool is_channel(int fd)
{
	return (unsigned)fd < FD_MAX && engine.channels && atomic_load_explicit(&engine.channels[fd], memory_order_relaxed);
}
/* Whether a signal that has ended a sleep is to end the call. */
bool interrupts(void);
static inline void no_channel(int fd)
{
	if (is_channel(fd))
		engine.channels[fd] = 0;
}
int engine_load(void); /* 0, or ENODEV, and the reason is on standard error */
void engine_loaded(void); /* after the first call of the engine: its signal handlers are there now */
void engine_setup(void);
/* Is this the process of the table, and not the child of a vfork that shares its memory? */
bool own_process(void);

/* ring.c */
/* The write of n octets at buf, if it is a poll that finds completions in a ring: n; else 0, and the engine is to do it. */
long ring_poll(int open, const void *buf, size_t n);
/* The write, if it is a post that may wait in a ring: n; else 0. */
long ring_post(int open, const void *buf, size_t n);

/* device.c */
int device_open(enum kind kind, int flags);

#endif
