/* An engine that only counts, for test.c. What a command does is its number: see test.c. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
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

EXPORT void srn_forked(void) { forked++; }

EXPORT long srn_write(int handle, const void *buf, unsigned long n)
{
	struct { uint32_t cmd, arg; } c;
	if (n < sizeof c)
		return -EINVAL;
	memcpy(&c, buf, sizeof c);
	switch (c.cmd) {
	case 12: /* GET_EVENT, and the next that were dropped */
		return dropped-- > 0 ? -EAGAIN : (long)n;
	case 100: return 1000 + opened;
	case 101: return 1000 + closed;
	case 102: return 1000 + handle;
	case 103: return -(long)c.arg;
	case 104: /* arg events are queued, of which all but one are dropped */
		dropped = (int)c.arg - 1;
		return eventfd_write(event[handle], c.arg) == 0 ? (long)n : -errno;
	case 105: return 1000 + forked;
	}
	errno = EPERM; /* as a library call within the engine might */
	return (long)n;
}
