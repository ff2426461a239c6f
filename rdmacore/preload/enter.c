/* Every entry of the program's threads into the engine, but those that hold signals already (channel.c). Within, the
   thread is on a goroutine's stack: a handler of the program's would run there and write over Go's memory, or leave Go
   in the middle by a longjmp. So signals wait, and come when the thread is back on its own stack. Faults cannot wait:
   the engine's handler takes those of its copies of the program's memory, on a stack of ours. A program without a
   handler has nothing that could run, so nothing is held: the system calls would cost as much as a poll. */
#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* The stack also serves handlers with SA_ONSTACK of a thread that has entered before the program had any, until it
   enters again. spare is for an entry by such a handler. */
enum { GUARD = 64 << 10, SPARE = 64 << 10, STACK = 512 << 10, PLACES = 64 };

struct thread {
	stack_t own, spare;
	unsigned place;
	unsigned engine; /* the last that it has entered: the first time Go opens the thread to signals */
	bool armed;      /* own is left in place, for the next entry */
	bool shut;       /* the program blocks faults in this thread; within the engine they must come */
};
static _Thread_local struct thread *self __attribute__((tls_model("initial-exec")));
static pthread_key_t key;

/* How many threads are in the engine without holding signals. */
static struct {
	_Alignas(64) _Atomic long threads;
} unheld[PLACES];

void entries_settle(void)
{
	for (int i = 0; i < PLACES; i++)
		while (atomic_load(&unheld[i].threads) > 0)
			usleep(100);
}

void entries_forked(void)
{
	for (int i = 0; i < PLACES; i++)
		unheld[i].threads = 0;
}

static const stack_t no_stack = {.ss_flags = SS_DISABLE};

static bool on(const stack_t *s, const void *at) { return (uintptr_t)at - (uintptr_t)s->ss_sp < s->ss_size; }

/* The system changes no stack that the thread is on. But what it is on, a handler's frames, must not be begun at the
   top again for a fault in the engine; so the call is made from the new one. */
static void set_stack_from_new(const stack_t *new, stack_t *was)
{
	char *sp = (char *)new->ss_sp + new->ss_size - 4096;
#if defined(__x86_64__)
	long r;
	__asm__ volatile("xchgq %%rsp, %[sp]\n\tsyscall\n\tmovq %[sp], %%rsp"
			 : "=a"(r), [sp] "+b"(sp)
			 : "0"((long)SYS_sigaltstack), "D"(new), "S"(was)
			 : "rcx", "r11", "memory", "cc");
#elif defined(__aarch64__)
	register long r __asm__("x0") = (long)new;
	register long b __asm__("x1") = (long)was;
	register long n __asm__("x8") = SYS_sigaltstack;
	__asm__ volatile("mov x9, sp\n\tmov sp, %[sp]\n\tsvc #0\n\tmov sp, x9"
			 : "+r"(r)
			 : [sp] "r"(sp), "r"(b), "r"(n)
			 : "x9", "memory", "cc");
#endif
	(void)r;
}

static void set_stack(const stack_t *new, stack_t *was)
{
	int e = errno;
	if (syscall(SYS_sigaltstack, new, was) != 0)
		set_stack_from_new(new, was);
	errno = e;
}

static void thread_ends(void *p)
{
	struct thread *t = p;
	uint64_t were = signals_hold();
	stack_t now;
	syscall(SYS_sigaltstack, NULL, &now);
	if (on(&t->own, now.ss_sp))
		syscall(SYS_sigaltstack, &no_stack, NULL);
	self = NULL;
	munmap((char *)t->spare.ss_sp - GUARD, GUARD + SPARE + STACK + sizeof *t);
	signals_release(were);
}

/* NULL for lack of memory. Signals are held, since a handler may enter, too. */
static struct thread *new_thread(void)
{
	static _Atomic unsigned places;
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
	char *p = mmap(NULL, GUARD + SPARE + STACK + sizeof(struct thread), PROT_READ | PROT_WRITE, how, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	mprotect(p, GUARD, PROT_NONE);
	struct thread *t = (struct thread *)(p + GUARD + SPARE + STACK);
	t->spare = (stack_t){.ss_sp = p + GUARD, .ss_size = SPARE};
	t->own = (stack_t){.ss_sp = p + GUARD + SPARE, .ss_size = STACK};
	t->place = places++ % PLACES;
	pthread_setspecific(key, t);
	return t;
}

static struct thread *this_thread(void)
{
	if (LIKELY(self != NULL))
		return self;
	int e = errno;
	uint64_t were = signals_hold();
	if (!self)
		self = new_thread();
	signals_release(were);
	errno = e;
	return self;
}

struct entry {
	struct thread *thread; /* NULL for lack of memory */
	stack_t was;
	uint64_t were;
	bool held, changed;
};

static void arm(struct entry *e)
{
	struct thread *t = e->thread;
	if (!t || (t->armed && !signals_handled))
		return;
	e->changed = true;
	bool within = on(&t->own, __builtin_frame_address(0));
	set_stack(within ? &t->spare : &t->own, &e->was);
	if (!within && e->was.ss_sp == t->own.ss_sp) /* left there by us */
		e->was = no_stack;
}

static void disarm(struct entry *e)
{
	struct thread *t = e->thread;
	if (!e->changed) {
		if (!t || !signals_handled)
			return;
		e->was = no_stack;
	}
	t->armed = (e->was.ss_flags & SS_DISABLE) && !signals_handled;
	if (!t->armed)
		set_stack(&e->was, NULL);
}

static struct entry enter(void)
{
	struct entry e = {.thread = this_thread()};
	struct thread *t = e.thread;
	ring_interrupted();
	e.held = !t || t->engine != engine.number || t->shut;
	if (!e.held) {
		atomic_fetch_add(&unheld[t->place].threads, 1);
		if (signals_handled) {
			atomic_fetch_sub(&unheld[t->place].threads, 1);
			e.held = true;
		}
	}
	if (e.held) {
		e.were = signals_hold_entry();
		if (t) {
			t->engine = engine.number;
			t->shut = !signals_open_to_faults(e.were);
		}
	}
	arm(&e);
	return e;
}

/* The last thing is to let signals come: their handlers may not return here. */
static void leave(struct entry *e)
{
	disarm(e);
	if (e->held)
		signals_release_entry(e->were);
	else
		atomic_fetch_sub(&unheld[e->thread->place].threads, 1);
}

static struct engine raw;

static void begin_(const char *text, unsigned long n)
{
	struct entry e = enter();
	raw.begin(text, n);
	leave(&e);
}

static int open_(int kind, int fd)
{
	struct entry e = enter();
	int r = raw.open(kind, fd);
	leave(&e);
	return r;
}

static void close_(int handle)
{
	struct entry e = enter();
	raw.close(handle);
	leave(&e);
}

static long write_(int handle, const void *buf, unsigned long n)
{
	struct entry e = enter();
	long r = raw.write(handle, buf, n);
	leave(&e);
	return r;
}

static long file_(const char *name, void *buf, unsigned long n)
{
	struct entry e = enter();
	long r = raw.file(name, buf, n);
	leave(&e);
	return r;
}

static int watch_(int fd, int *fds, int n)
{
	struct entry e = {.thread = this_thread()};
	ring_interrupted();
	arm(&e);
	int r = raw.watch(fd, fds, n);
	disarm(&e);
	return r;
}

struct engine through_entries(struct engine e)
{
	raw = e;
	e.begin = begin_;
	e.open = open_;
	e.close = close_;
	e.write = write_;
	e.file = file_;
	e.watch = watch_;
	return e;
}

/* What we have left in place is not the program's to see. */
EXPORT int sigaltstack(const stack_t *restrict new, stack_t *restrict was)
{
	stack_t before;
	int r = NEXT(sigaltstack)(new, &before);
	if (r != 0)
		return r;
	if (self && on(&self->own, before.ss_sp))
		before = no_stack;
	if (self && new)
		self->armed = false;
	if (was)
		*was = before;
	return 0;
}

__attribute__((constructor)) static void setup(void) { pthread_key_create(&key, thread_ends); }
