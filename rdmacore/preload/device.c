/* What a program does with an open device. */
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

int device_open(enum kind kind, int flags)
{
	int e = engine_load();
	if (e != 0) {
		errno = e;
		return -1;
	}
	fd_forget_gone();
	ring_setup();
	int fd = eventfd(0, EFD_SEMAPHORE | (flags & O_CLOEXEC ? EFD_CLOEXEC : 0) | (flags & O_NONBLOCK ? EFD_NONBLOCK : 0));
	if (fd < 0)
		return -1;
	int own = fd < FD_MAX ? NEXT(fcntl)(fd, F_DUPFD_CLOEXEC, 0) : (errno = EMFILE, -1), handle;
	if (own < 0) {
		e = errno;
	} else if ((handle = engine.open(kind, own)) < 0) {
		e = -handle;
		NEXT(close)(own);
	} else if ((e = fd_new(fd, kind, handle)) == 0) {
		return fd;
	} else {
		engine.close(handle);
	}
	NEXT(close)(fd);
	errno = e;
	return -1;
}

/* The command number of a write, or -1. The memory is read as the system reads it: it may not be there. */
static int64_t command(const void *buf, size_t n)
{
	uint32_t cmd;
	if (n < 8)
		return -1;
	struct iovec to = {&cmd, sizeof cmd}, from = {(void *)buf, sizeof cmd};
	ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	if (got < 0 && errno != EFAULT) /* a sandbox without this call */
		cmd = *(const uint32_t *)buf;
	else if (got != sizeof cmd)
		return -1; /* the engine says EFAULT */
	return cmd;
}

/* Who is in the device keeps it open, and when another thread has closed the descriptor, and destroyed what there could be events of,
   waits for a signal. A program that ends so (rping) must not be told EBADF. */
static long get_no_event(bool waits)
{
	while (waits)
		if (poll(NULL, 0, -1) < 0 && interrupts())
			return -EINTR;
	return -EAGAIN;
}

/* GET_EVENT of rdma_cm waits, as the descriptor says: the eventfd counts what is queued, so reading it blocks, is
   interrupted and returns EAGAIN as the device would. A token whose event was dropped meanwhile is none. */
static long get_event(int fd, int handle, const void *buf, size_t n)
{
	bool waits = !(NEXT(fcntl)(fd, F_GETFL) & O_NONBLOCK);
	for (;;) {
		uint64_t token;
		if (NEXT(read)(fd, &token, sizeof token) != sizeof token)
			return -errno;
		long r = engine.write(handle, buf, n);
		struct open *o = fd_open(fd);
		if (!o || o->handle != handle) {
			if (r == -EAGAIN || r == -EBADF)
				return get_no_event(waits);
			return r;
		}
		if (r != -EAGAIN)
			return r;
	}
}

/* After a command that has succeeded, so it can be read: was it DESTROY_QP? */
static void destroyed(int handle, const void *buf, size_t n)
{
	struct {
		struct v_header header;
		uint32_t qp;
	} c;
	if (n < sizeof c)
		return;
	memcpy(&c, buf, sizeof c);
	if (c.header.command == DESTROY_QP)
		v_qp_gone(handle, c.qp);
}

EXPORT ssize_t write(int fd, const void *buf, size_t n)
{
	enum { GET_EVENT = 12 }; /* RDMA_USER_CM_CMD_GET_EVENT */
	struct open *o = fd_open(fd);
	if (LIKELY(!o))
		return NEXT(write)(fd, buf, n);
	/* A poll or a post, as libibverbs has it on its stack, is enough to know the descriptor by, and has no time for more. */
	bool known = is_uverbs(o->kind) && !o->stale && ring_is_libibverbs(buf, n);
	if (known && (ring_post(o->handle, buf, n) > 0 || ring_poll(o->handle, buf, n) > 0))
		return (ssize_t)n;
	if (!known && !(o = fd_device(fd)))
		return NEXT(write)(fd, buf, n);
	if (o->stale) {
		errno = EIO;
		return -1;
	}
	int e = errno, handle = o->handle;
	bool verbs = is_uverbs(o->kind);
	long r = o->kind == RDMA_CM && command(buf, n) == GET_EVENT ? get_event(fd, handle, buf, n) : engine.write(handle, buf, n);
	if (r > 0 && verbs && v_qps > 0)
		destroyed(handle, buf, n);
	errno = r < 0 ? (int)-r : e;
	return r < 0 ? -1 : r;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list a;
	va_start(a, request);
	void *arg = va_arg(a, void *);
	va_end(a);
	if (!fd_device(fd))
		return NEXT(ioctl)(fd, request, arg);
	errno = ENOTTY;
	return -1;
}

EXPORT int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == 20 /* NETLINK_RDMA */) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return NEXT(socket)(domain, type, protocol);
}
