/* An engine that only counts, for test.c. What a command does is its number: see test.c. */
#include "../../engine/ring.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static _Atomic int opened, closed, forked, dropped;
static int event[1 << 14];

EXPORT int srn_open(int kind, int fd)
{
	if (kind != 1 && kind != 2)
		return -EINVAL;
	int handle = opened++;
	event[handle] = fd;
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

EXPORT _Atomic char srn_channels[1 << 16];
static _Atomic int at_socket, to_channel, watches, to_raise;

/* What comes at the socket goes to the channel. */
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
	if (recv(at_socket, &c, 1, MSG_DONTWAIT) == 1 && write(to_channel, &c, 1) == 1)
		return 0;
	fds[0] = at_socket;
	return 1;
}

EXPORT void srn_forked(void) { forked++; }

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
	case 106: return srn_channels[c.arg] = 1;
	case 107: return at_socket = (int)c.arg;
	case 108: return to_channel = (int)c.arg;
	case 109: return 1000 + srn_channels[c.arg];
	case 110: return 1000 + watches;
	case 21: polls++; break; /* POLL_CQ */
	case 111: return 1000 + polls;
	case 28: case 29: posts++; break; /* POST_SEND, POST_RECV */
	case 114: return (long)srn_post_rings;
	case 115: return 1000 + posts;
	case 113: return to_raise = (int)c.arg;
	case 112: return (long)srn_rings;
	}
	errno = EPERM; /* as a library call within the engine might */
	return (long)n;
}
