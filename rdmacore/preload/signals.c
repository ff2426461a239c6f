/* Which handlers the program has. They run where the thread is, and a thread that is in the engine is on a stack of
   Go's, which must not be (enter.c). While the program has no handler, entering costs nothing; so what installs one is
   noticed. */
#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

_Atomic bool signals_handled;
static _Atomic bool pipes_handled; /* SIGPIPE is as the program has set it, not as the engine has */

/* Faults are of who runs, and blocking them ends the process. */
static inline bool is_fault(int s) { return s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGILL || s == SIGTRAP; }

/* Signals in the kernel's form, which reaches those that libc keeps to itself, too. SIGSETXID is libc's: setuid()
   waits for all threads in its handler, with a lock that making a thread needs. engine.c has it run on our stack. */
static uint64_t bit(int s) { return 1ULL << (s - 1); }
enum { SIGSETXID = 33 };
static uint64_t asynchronous(void)
{
	return ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSETXID));
}

static uint64_t set_mask(uint64_t mask)
{
	uint64_t were = 0;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &were, sizeof mask);
	return were;
}

uint64_t signals_hold(void) { return set_mask(asynchronous()); }
void signals_release(uint64_t were) { set_mask(were); }

/* The SIGPIPE of an engine's write to a socket is the engine's: its handler drops it. Held back it would come when we
   leave. */
uint64_t signals_hold_entry(void) { return set_mask(asynchronous() & ~(pipes_handled ? 0 : bit(SIGPIPE))); }
void signals_release_entry(uint64_t were)
{
	if (pipes_handled) {
		static const struct timespec now;
		uint64_t pipe = bit(SIGPIPE);
		int e = errno;
		syscall(SYS_rt_sigtimedwait, &pipe, NULL, &now, sizeof pipe);
		errno = e;
	}
	set_mask(were);
}

bool signals_open_to_faults(uint64_t mask) { return !(mask & (bit(SIGSEGV) | bit(SIGBUS))); }

/* Before a handler is there that may interrupt any thread, each has to hold signals in the engine. */
static void noticed(void)
{
	static _Atomic bool settled;
	if (settled)
		return;
	signals_handled = true;
	entries_settle();
	settled = true;
}

_Thread_local bool engine_loads __attribute__((tls_model("initial-exec")));

static void about_to_handle(int s, void (*f)(int))
{
	if (engine_loads) /* its runtime's handlers, by way of libc */
		return;
	if (s == SIGPIPE && f != SIG_IGN) {
		pipes_handled = true;
		noticed();
	}
	if ((s == SIGSEGV || s == SIGBUS) && engine.foreign)
		atomic_store(engine.foreign, 1);
	if (f != SIG_DFL && f != SIG_IGN)
		noticed();
}

void signals_scan(void)
{
	struct sigaction a;
	for (int s = 1; s < NSIG; s++)
		if (NEXT(sigaction)(s, NULL, &a) == 0 && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN && !is_engine_handler(s, &a))
			noticed();
}

/* Which signal has ended a sleep is not to be known: if a handler of any wants to interrupt, this one does. */
bool interrupts(void)
{
	struct sigaction a;
	bool one = false;
	int e = errno; /* which sigaction sets for the signals that are the system's */
	for (int s = 1; s < NSIG && !one; s++)
		one = !is_fault(s) && NEXT(sigaction)(s, NULL, &a) == 0 && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN && !(a.sa_flags & SA_RESTART);
	errno = e;
	return one;
}

EXPORT int sigaction(int s, const struct sigaction *restrict a, struct sigaction *restrict was)
{
	if (a)
		about_to_handle(s, a->sa_handler);
	return NEXT(sigaction)(s, a, was);
}

#define SIGNAL(name)                                                                                                       \
	EXPORT handler_t name(int s, handler_t f)                                                                          \
	{                                                                                                                  \
		if (f != SIG_ERR)                                                                                          \
			about_to_handle(s, f);                                                                             \
		return NEXT(name)(s, f);                                                                                   \
	}
SIGNAL(signal)
SIGNAL(bsd_signal)
SIGNAL(ssignal)
SIGNAL(sysv_signal)
SIGNAL(__sysv_signal)
SIGNAL(sigset)

/* libc cancels by a signal, whose handler it installs with the first. */
EXPORT int pthread_cancel(pthread_t t)
{
	noticed();
	return NEXT(pthread_cancel)(t);
}
