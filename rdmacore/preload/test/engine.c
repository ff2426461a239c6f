/* An engine that only counts, for test.c. What a command does is its number: see test.c. */
#include "../../clib/ring.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static _Atomic int opened, closed, forked, dropped;
static int event[1 << 14], kinds[1 << 14];

static char told[1 << 16];
static unsigned long told_size;
EXPORT void srn_begin(const char *text, unsigned long n)
{
	told_size = n < sizeof told ? n : sizeof told;
	memcpy(told, text, told_size);
}

EXPORT int srn_open(int kind, int fd)
{
	if ((kind & 0xff) != 1 && kind != 2)
		return -EINVAL;
	int handle = opened++;
	event[handle] = fd;
	kinds[handle] = kind;
	return handle;
}

EXPORT void srn_close(int handle)
{
	close(event[handle]);
	closed++;
}

EXPORT struct ring srn_rings[RINGS];
EXPORT struct post_ring srn_post_rings[POST_RINGS];
static _Atomic int polls, posts;

EXPORT _Atomic ino_t srn_channels[1 << 16];
static _Atomic int at_socket, to_channel, watches, to_raise;

/* What comes at the socket goes to the channel, but for a Write, which completes nothing. */
EXPORT int srn_watch(int fd, int *fds, int n)
{
	char c;
	(void)fd;
	watches++;
	if (to_raise)
		pthread_kill(pthread_self(), to_raise);
	to_raise = 0;
	if (n < 1 || at_socket == 0)
		return 0;
	if (recv(at_socket, &c, 1, MSG_DONTWAIT) == 1)
		return c == 'w' || write(to_channel, &c, 1) == 1 ? -1 : 0;
	fds[0] = at_socket;
	return 1;
}

EXPORT _Atomic int srn_foreign;
static _Atomic int inside, leave;

EXPORT long srn_file(const char *name, void *buf, unsigned long n)
{
	static const char text[] = "1: CA\n";
	if (strcmp(name, "class/infiniband/x/failing") == 0)
		return -EIO;
	if (strcmp(name, "class/infiniband/x/node_type") != 0 || n < sizeof text)
		return -ENOENT;
	memcpy(buf, text, sizeof text);
	return sizeof text - 1;
}

EXPORT void srn_forked(void) { forked++; }

/* The last command that makes or posts something, and the errno of the next of them. */
static unsigned char last[1 << 16];
static _Atomic int next_errno;
static _Atomic uint32_t made = 0x100;

/* An object: its handle, and what more its answer has. */
static long makes(const void *buf, unsigned long n)
{
	static const uint32_t qp[] = {0x1234, 8, 8, 2, 2, 64};
	struct { uint32_t cmd; uint16_t in, out; uint32_t *answer; } c;
	memcpy(last, buf, n < sizeof last ? n : sizeof last);
	memcpy(&c, buf, sizeof c.cmd + 4);
	int e = atomic_exchange(&next_errno, 0);
	if (e != 0)
		return -e;
	if (c.out == 0)
		return (long)n;
	memcpy(&c, buf, sizeof c);
	if (c.cmd != 28)
		c.answer[0] = ++made;
	switch (c.cmd) {
	case 11: c.answer[1] = 0x2ff; break;
	case 14: c.answer[1] = 0x1ff; break;
	case 18: c.answer[1] = 7; break;
	case 24: memcpy(c.answer + 1, qp, sizeof qp); break;
	}
	return (long)n;
}

EXPORT long srn_write(int handle, const void *buf, unsigned long n)
{
	struct { uint32_t cmd, arg; } c;
	if (n < sizeof c)
		return -EINVAL;
	memcpy(&c, buf, sizeof c);
	switch (c.cmd) {
	case 12: /* GET_EVENT, and the next that were dropped; or another thread closes the descriptor meanwhile, and drops it so */
		if (c.arg != 0)
			return close((int)c.arg) == 0 ? -EAGAIN : -errno;
		return dropped-- > 0 ? -EAGAIN : (long)n;
	case 100: return 1000 + opened;
	case 101: return 1000 + closed;
	case 102: return 1000 + handle;
	case 103: return -(long)c.arg;
	case 104: /* arg events are queued, of which all but one are dropped */
		dropped = (int)c.arg - 1;
		return eventfd_write(event[handle], c.arg) == 0 ? (long)n : -errno;
	case 105: return 1000 + forked;
	case 106: {
		struct stat st;
		return fstat((int)c.arg, &st) == 0 && (srn_channels[c.arg] = st.st_ino) != 0;
	}
	case 107: return at_socket = (int)c.arg;
	case 108: return to_channel = (int)c.arg;
	case 109: return 1000 + (srn_channels[c.arg] != 0);
	case 110: return 1000 + watches;
	case 21: polls++; break; /* POLL_CQ */
	case 111: return 1000 + polls;
	case 28: case 29: /* POST_SEND, POST_RECV */
		posts++;
		if (c.cmd == 29 || n < 32)
			break;
		/* fallthrough */
	case 3: case 11: case 14: case 16: case 18: case 24: case 27: return makes(buf, n);
	case 125: return (long)last;
	case 200: return 1000 + kinds[handle];
	case 126: return 1000 + (next_errno = (int)c.arg);
	case 114: return (long)srn_post_rings;
	case 115: return 1000 + posts;
	case 113: return to_raise = (int)c.arg;
	case 112: return (long)srn_rings;
	case 116: /* a signal while the thread is in the engine */
		inside = 1;
		pthread_kill(pthread_self(), (int)c.arg);
		inside = 0;
		break;
	case 117: return 1000 + inside;
	case 118: { /* as Go's runtime does with a thread that it has not seen before */
		sigset_t all;
		sigfillset(&all);
		pthread_sigmask(SIG_UNBLOCK, &all, NULL);
		break;
	}
	case 119: { /* the stack for faults, as the system has it */
		stack_t s;
		syscall(SYS_sigaltstack, NULL, &s);
		return s.ss_flags & SS_DISABLE ? 0 : (long)s.ss_sp;
	}
	case 120: { /* a write that nobody can read */
		int p[2];
		if (pipe(p) != 0 || close(p[0]) != 0 || write(p[1], "", 1) != -1 || close(p[1]) != 0)
			return -EINVAL;
		break;
	}
	case 121: return 1000 + srn_foreign;
	case 122: /* stays within until it is told to leave */
		for (inside = 1; !leave;)
			usleep(100);
		inside = 0;
		break;
	case 123: leave = 1; break;
	case 124: /* what srn_begin was told, by its octets */
		return c.arg < told_size ? 1000 + (unsigned char)told[c.arg] : 0;
	}
	errno = EPERM; /* as a library call within the engine might */
	return (long)n;
}
