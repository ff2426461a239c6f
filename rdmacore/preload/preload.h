/* The parts of libsoftrnic-preload.so, which makes two devices exist inside a process: /dev/infiniband/uverbs0 and
   /dev/infiniband/rdma_cm. A descriptor of theirs is an eventfd, and what is written to it goes to the engine, a library
   of its own (rdmacore/clib) that is loaded when the first device is opened. calls.h lists what is interposed, and why. */
#ifndef SOFTRNIC_PRELOAD_H
#define SOFTRNIC_PRELOAD_H

#include "../clib/ring.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
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

typedef void (*handler_t)(int); /* of a signal */

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
/* As srn_open takes them: of uverbsN, N is in the bits above. */
enum kind { NO_DEVICE, UVERBS = 1, RDMA_CM = 2, KIND_BITS = 8 };
static inline bool is_uverbs(enum kind kind) { return (kind & ((1 << KIND_BITS) - 1)) == UVERBS; }
static inline unsigned number_of(enum kind kind) { return (unsigned)kind >> KIND_BITS; }
enum kind device_of(const char *path);
/* The path to use instead of one of /sys that the tree has, in buf; others as they are. */
const char *in_tree(const char *path, char buf[PATH_MAX]);
/* The same of a path below the folder dir, as openat takes them: hwloc begins at a descriptor of /. */
const char *in_tree_at(int dir, const char *path, char buf[PATH_MAX]);
/* Of a real path in the tree what is behind the tree's own, which is no shorter than /sys: it begins with a slash. Of others NULL. */
const char *behind_tree(const char *path);
void path_setup(void);
/* A new descriptor of what the engine says in place of a file: of a tree without an address, and of what has changed since the engine
   is there. -1 for an error; NO_TEXT for other files. */
enum { NO_TEXT = -2 };
int open_text(const char *path, int flags);

/* fd.c: which descriptors are devices. The table says which were: descriptors are closed, and others get their
   numbers, in more ways than can be stood before (fclose, dup3 of another library, io_uring). What says that a number
   is a device's is the mark of the eventfd itself. */
struct open { /* what one open() made; never freed, but used again, so that a late reader reads one */
	enum kind kind;
	_Atomic int handle; /* the engine's */
	_Atomic bool stale; /* of the process that forked this one */
	unsigned refs;      /* descriptors; under the lock */
	int mark;           /* of the eventfd, and so of all its descriptors */
	struct open *free;  /* the next unused one */
};
enum { FD_MAX = 1 << 16 };
extern struct open *_Atomic fd_table[FD_MAX];
static inline struct open *fd_open(int fd)
{
	return LIKELY((unsigned)fd < FD_MAX) ? atomic_load_explicit(&fd_table[fd], memory_order_acquire) : NULL;
}
/* fd_open, if fd is that open still; else the table forgets it, and NULL. For all but what makes sure itself. */
struct open *fd_device_slow(int fd);
static inline struct open *fd_device(int fd) { return LIKELY(!fd_open(fd)) ? NULL : fd_device_slow(fd); }
int fd_new(int fd, enum kind kind, int handle); /* 0, or an errno */
void fd_forget_range(unsigned first, unsigned last);
void fd_forget_gone(void); /* those that were closed where we do not see it */
void fd_lock(void);
void fd_unlock(void);
void fd_forked(void); /* in the child: every device is stale */

/* engine.c */
struct engine {
	unsigned number; /* of the process's engines, a child of fork having another than its parent; 0: none */
	void (*begin)(const char *text, unsigned long n); /* the first call: variables of the environment */
	int (*open)(int kind, int fd);
	void (*close)(int handle);
	long (*write)(int handle, const void *buf, unsigned long n);
	long (*file)(const char *name, void *buf, unsigned long n); /* the text of a file of the tree */
	void (*forked)(void); /* closes the engine's descriptors, in the child of a fork */
	int (*watch)(int fd, int *fds, int n); /* receives; what to sleep on beside fd, or -1: call again before you sleep; signals are held by who calls */
	_Atomic int *foreign; /* not 0: a fault of the engine's may not come to its handler */
	_Atomic ino_t *channels; /* completion channels, of FD_MAX descriptors: the pipe's inode number, or 0 */
	struct ring *rings;     /* RINGS of them */
	struct post_ring *post_rings; /* POST_RINGS of them */
};
extern struct engine engine;
static inline bool is_channel(int fd)
{
	return (unsigned)fd < FD_MAX && engine.channels && atomic_load_explicit(&engine.channels[fd], memory_order_relaxed);
}
static inline void no_channel(int fd)
{
	if (is_channel(fd))
		engine.channels[fd] = 0;
}
int engine_load(void); /* 0, or ENODEV, and the reason is on standard error */
/* A line on standard error: what is wrong with what, and what helps. */
void say(const char *what, const char *why, const char *help);
bool is_engine_handler(int s, const struct sigaction *a);
void engine_setup(void);
/* Is this the process of the table, and not the child of a vfork that shares its memory? */
bool own_process(void);

/* room.c */
const char *no_room(void); /* what the engine lacks to start, and what to do; NULL: nothing */

/* signals.c */
extern _Atomic bool signals_handled; /* the program has a handler, which may come at any time */
extern _Thread_local bool engine_loads; /* this thread is loading it */
void signals_scan(void);             /* looks for handlers that were installed past us */
/* Whether a signal that has ended a sleep is to end the call. */
bool interrupts(void);
/* Signals other than faults wait from the one to the other, which takes what the first has returned: the mask before. */
uint64_t signals_hold(void);
void signals_release(uint64_t were);
uint64_t signals_hold_entry(void); /* the same around an entry into the engine, which may write to sockets */
void signals_release_entry(uint64_t were);
bool signals_open_to_faults(uint64_t mask);

/* enter.c */
/* The engine whose functions hold what must be held around those of e. */
struct engine through_entries(struct engine e);
void entries_settle(void); /* waits until no thread is in the engine that has entered while no handler was there */
void entries_forked(void);

/* ring.c */
/* A handler of this thread's enters the engine: what it has interrupted may be a post that is half in a ring. */
void ring_interrupted(void);
void ring_setup(void); /* when a device is opened */
/* Whether the write of n octets at buf is a poll or a post as libibverbs writes it. */
bool ring_is_libibverbs(const void *buf, size_t n);
/* Such a write, if it is a poll that finds completions in a ring: n; else 0, and the engine is to do it. */
long ring_poll(int open, const void *buf, size_t n);
/* Such a write, if it is a post that may wait in a ring: n; else 0. */
long ring_post(int open, const void *buf, size_t n);
/* What the extended verbs need no write for. Takes completions of a queue into wcs, or, if that is NULL, behind the count in the program's
   answer: how many. 0: the engine has none more, for now; RING_ASK: it has to be asked. since, unless NULL, is for ring_back. */
enum { RING_ASK = -1 };
int ring_take(int open, uint32_t cq, uint32_t most, void *wcs, char *answer, uint64_t *since);
/* Gives back the last n of what was taken, RING_SPARE at most, unless the ring is another's or something was taken since. */
bool ring_back(int open, uint32_t cq, unsigned n, uint64_t since);
/* Puts a struct ib_uverbs_send_wr and its one element into a ring, or returns false: it is for the engine. */
bool ring_send(int open, uint32_t qp, const void *wr, const void *sge);

/* device.c */
int device_open(enum kind kind, int flags);

#endif
