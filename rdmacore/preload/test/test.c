/* Tests of the preload library with an engine that only counts: `make c-unit`. The library's objects are linked in, so
   that sanitizers see them. */
#include "../../clib/ring.h"
#include "check.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define UVERBS "/dev/infiniband/uverbs0"
#define CM "/dev/infiniband/rdma_cm"

#define FAILS(what, no) CHECK((errno = 0, (long)(what) == -1 && errno == (no)))

int __xstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __lxstat(int, const char *, struct stat *);

enum { GET_EVENT = 12, OPENED = 100, CLOSED, HANDLE, ERRNO, QUEUE, FORKED, CHANNEL, SOCKET, WRITER, IS_CHANNEL, WATCHES, POLLS, RINGS_AT, RAISE, POST_RINGS_AT, POSTS, TOLD = 124 };

static long tell(int fd, uint32_t cmd, uint32_t arg)
{
	uint32_t c[2] = {cmd, arg};
	return write(fd, c, sizeof c);
}
static long count(int fd, uint32_t cmd) { return tell(fd, cmd, 0) - 1000; }

static int device(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static bool engine_is_loaded(void)
{
	char line[4096];
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f);
	while (fgets(line, sizeof line, f))
		found |= strstr(line, getenv("SOFTRNIC_ENGINE")) != NULL;
	fclose(f);
	return found;
}

/* Looking for devices loads no engine. This is first. */
static void test_lists_without_engine(void)
{
	struct stat st;
	struct stat64 st64;
	struct statx sx;
	CHECK(stat(UVERBS, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(231, 192));
	CHECK(stat64(CM, &st64) == 0 && S_ISCHR(st64.st_mode) && st64.st_rdev == makedev(10, 58));
	CHECK(lstat(UVERBS, &st) == 0 && fstatat(AT_FDCWD, UVERBS, &st, 0) == 0 && st.st_rdev == makedev(231, 192));
	CHECK(__xstat(1, UVERBS, &st) == 0 && __lxstat(1, CM, &st) == 0 && st.st_rdev == makedev(10, 58));
	CHECK(statx(AT_FDCWD, UVERBS, 0, STATX_BASIC_STATS, &sx) == 0 && sx.stx_rdev_major == 231 && sx.stx_rdev_minor == 192);
	CHECK(access(UVERBS, R_OK | W_OK) == 0 && faccessat(AT_FDCWD, CM, R_OK, 0) == 0);
	FAILS(stat("/dev/infiniband/uverbs1", &st), ENOENT);
	FAILS(socket(AF_NETLINK, SOCK_RAW, 20), EPROTONOSUPPORT);
	char *path = realpath(UVERBS, NULL);
	CHECK(path && strcmp(path, UVERBS) == 0);
	free(path);
	CHECK(!engine_is_loaded());
}

/* SYSFS_PATH has class/infiniband/x/node_type, "4: RNIC", and a link beside it. */
static void test_tree(void)
{
	char text[64] = "";
	static const char file[] = "/sys/class/infiniband/x/node_type";
	struct stat st;
	FILE *f = fopen(file, "r");
	CHECK(f && fgets(text, sizeof text, f) && strcmp(text, "4: RNIC\n") == 0);
	fclose(f);
	int fd = open(file, O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, 7) == 7);
	close(fd);
	DIR *d = opendir("/sys/class/infiniband");
	CHECK(d);
	bool found = false;
	for (struct dirent *e; (e = readdir(d));)
		found |= strcmp(e->d_name, "x") == 0;
	int dir = openat(dirfd(d), "x", O_RDONLY | O_DIRECTORY);
	CHECK(found && dir >= 0 && fstatat(dir, "node_type", &st, 0) == 0 && S_ISREG(st.st_mode));
	close(dir);
	closedir(d);
	CHECK(stat(file, &st) == 0 && access(file, R_OK) == 0 && __xstat(1, file, &st) == 0 && S_ISREG(st.st_mode));
	CHECK(readlink("/sys/class/infiniband/x/link", text, sizeof text) == 9 && memcmp(text, "node_type", 9) == 0);
	FAILS(access("/sys/class/infiniband_verbs/none", R_OK), ENOENT);
	CHECK(opendir("/sys/class/infinitely") == NULL);
	CHECK(stat("/sys/class", &st) == 0);
}

static void test_files_are_files(void)
{
	char name[] = "/tmp/softrnic-test-XXXXXX", text[3];
	struct stat st;
	int fd = mkstemp(name);
	CHECK(fd >= 0 && write(fd, "abc", 3) == 3 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 3);
	CHECK(__fxstat(1, fd, &st) == 0 && st.st_size == 3);
	CHECK(unlink(name) == 0);
	int made = open(name, O_CREAT | O_RDWR | O_EXCL, 0640);
	CHECK(made >= 0 && fstat(made, &st) == 0 && (st.st_mode & 0777 & ~0640) == 0 && (st.st_mode & 0600) == 0600);
	CHECK(unlink(name) == 0 && dup2(fd, made) == made && lseek(made, 0, SEEK_SET) == 0 && read(fd, text, 3) == 3);
	CHECK(close(made) == 0 && close(fd) == 0);
	FAILS(close(fd), EBADF);
	FAILS(dup(fd), EBADF);
	FAILS(write(fd, "", 1), EBADF);
	/* A program's own descriptors beyond the table's end. */
	FAILS(write(1 << 20, "", 1), EBADF);
	FAILS(close(-1), EBADF);
}

static void test_device(void)
{
	struct stat st;
	struct statx sx;
	int n;
	int fd = device(UVERBS);
	CHECK(engine_is_loaded());
	CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) && !(fcntl(fd, F_GETFL) & O_NONBLOCK));
	CHECK(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(231, 192));
	CHECK(__fxstat(1, fd, &st) == 0 && fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && st.st_rdev == makedev(231, 192));
	CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &sx) == 0 && sx.stx_rdev_minor == 192);
	FAILS(ioctl(fd, FIONREAD, &n), ENOTTY);
	errno = 77;
	CHECK(tell(fd, 1, 0) == 8 && errno == 77); /* success leaves errno alone */
	FAILS(tell(fd, ERRNO, ENOSPC), ENOSPC);
	FAILS(tell(fd, ERRNO, EAGAIN), EAGAIN); /* only GET_EVENT asks again */
	FAILS(write(fd, "", 1), EINVAL);
	long closed = count(fd, CLOSED);
	int other = openat(AT_FDCWD, CM, O_RDWR | O_NONBLOCK);
	CHECK(other >= 0 && (fcntl(other, F_GETFL) & O_NONBLOCK) && !(fcntl(other, F_GETFD) & FD_CLOEXEC));
	CHECK(count(fd, HANDLE) != count(other, HANDLE));
	CHECK(fstat(other, &st) == 0 && st.st_rdev == makedev(10, 58));
	CHECK(close(fd) == 0 && count(other, CLOSED) == closed + 1);
	FAILS(close(fd), EBADF);
	CHECK(close(other) == 0);
}

/* The last close of an open ends it, whichever descriptor that is, and however it was made and closed. */
static void test_duplicates(void)
{
	int watch = device(UVERBS);
	long closed = count(watch, CLOSED);
	int fd = device(CM), d[6];
	long handle = count(fd, HANDLE);
	d[0] = dup(fd);
	d[1] = dup2(fd, 200);
	d[2] = dup3(fd, 201, O_CLOEXEC);
	d[3] = fcntl(fd, F_DUPFD, 210);
	d[4] = fcntl(fd, F_DUPFD_CLOEXEC, 210);
	CHECK(d[1] == 200 && d[2] == 201 && d[3] == 210 && d[4] == 211 && (fcntl(d[4], F_GETFD) & FD_CLOEXEC));
	CHECK(dup2(fd, fd) == fd);
	FAILS(dup3(fd, fd, 0), EINVAL);
	FAILS(dup2(fd, -1), EBADF);
	d[5] = fd;
	for (int i = 0; i < 6; i++) {
		CHECK(count(d[i], HANDLE) == handle && count(watch, CLOSED) == closed);
		if (i < 5)
			CHECK(close(d[i]) == 0);
	}
	CHECK(close(fd) == 0 && count(watch, CLOSED) == closed + 1);

	/* Over a device, and a device over another. */
	int null = open("/dev/null", O_RDWR);
	fd = device(CM);
	CHECK(dup2(null, fd) == fd && count(watch, CLOSED) == closed + 2 && tell(fd, HANDLE, 0) == 8);
	int a = device(CM), b = device(UVERBS);
	handle = count(a, HANDLE);
	CHECK(dup3(a, b, 0) == b && count(watch, CLOSED) == closed + 3 && count(b, HANDLE) == handle);
	CHECK(close(a) == 0 && count(watch, CLOSED) == closed + 3 && close(b) == 0 && count(watch, CLOSED) == closed + 4);

	/* Ranges. */
	for (int i = 300; i < 310; i++)
		CHECK(dup2(watch, i) == i);
	fd = device(CM);
	CHECK(dup2(fd, 305) == 305 && close(fd) == 0);
	CHECK(close_range(300, 304, 0) == 0 && count(watch, CLOSED) == closed + 4 && count(305, HANDLE) > 0);
	CHECK(close_range(305, 305, 4 /* CLOEXEC */) == 0 && count(305, HANDLE) > 0);
	CHECK(close_range(305, ~0U, 0) == 0 && count(watch, CLOSED) == closed + 5);
	FAILS(count(307, HANDLE) + 1000, EBADF);
	fd = device(CM);
	CHECK(dup2(fd, 400) == 400 && close(fd) == 0);
	closefrom(350);
	CHECK(count(watch, CLOSED) == closed + 6);

	/* Closed where the library does not see it, as fclose does; the number is a file's now. */
	fd = device(CM);
	CHECK(syscall(SYS_close, fd) == 0);
	int file = open("/dev/null", O_RDWR);
	CHECK(file == fd && tell(file, HANDLE, 0) == 8 && count(watch, CLOSED) == closed + 7);
	close(file);
	close(null);
	close(watch);
}

/* Descriptors come to a number that a device had in many ways that the library does not stand before. Whatever has
   it now is no device, and the device is closed then, if it had no other. */
enum { WAYS = 12 };
static int become(int way, int fd)
{
	int p[2] = {-1, -1};
	struct sockaddr_un none = {.sun_family = AF_UNIX};
	sigset_t no_signals;
	sigemptyset(&no_signals);
	switch (way) {
	case 0: return eventfd(0, EFD_SEMAPHORE);
	case 1: return epoll_create1(0);
	case 2: return timerfd_create(CLOCK_MONOTONIC, 0);
	case 3: return signalfd(-1, &no_signals, 0);
	case 4: return memfd_create("x", 0);
	case 5: return pipe(p) == 0 && close(p[p[0] == fd]) == 0 ? fd : -1;
	case 6: return pipe2(p, O_CLOEXEC) == 0 && close(p[p[0] == fd]) == 0 ? fd : -1;
	case 7: return socketpair(AF_UNIX, SOCK_STREAM, 0, p) == 0 && close(p[p[0] == fd]) == 0 ? fd : -1;
	case 8: return inotify_init1(0);
	case 9: return fileno(tmpfile());
	case 10: /* a connection that is accepted */
		p[0] = socket(AF_UNIX, SOCK_STREAM, 0);
		p[1] = socket(AF_UNIX, SOCK_STREAM, 0);
		{
			socklen_t n = sizeof none;
			/* The lowest number is for what accept makes. */
			int high[2] = {fcntl(p[0], F_DUPFD, 500), fcntl(p[1], F_DUPFD, 500)};
			CHECK(close(p[0]) == 0 && close(p[1]) == 0);
			CHECK(bind(high[0], (struct sockaddr *)&none, sizeof none.sun_family) == 0 && listen(high[0], 1) == 0);
			CHECK(getsockname(high[0], (struct sockaddr *)&none, &n) == 0);
			CHECK(connect(high[1], (struct sockaddr *)&none, n) == 0);
			int made = accept(high[0], NULL, NULL);
			CHECK(close(high[0]) == 0 && close(high[1]) == 0);
			return made;
		}
	default: /* of a file that the system opens */
		return (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
	}
}

static bool is_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && (st->st_rdev == makedev(231, 192) || st->st_rdev == makedev(10, 58));
}

static void test_numbers(void)
{
	int watch = device(UVERBS);
	long closed = count(watch, CLOSED);
	struct stat st;
	int n;
	signal(SIGPIPE, SIG_IGN);
	for (int way = 0; way < WAYS; way++) {
		/* fclose tells at once. */
		int fd = device(way % 2 ? UVERBS : CM);
		FILE *f = fdopen(fd, "r+");
		CHECK(f && fclose(f) == 0 && count(watch, CLOSED) == ++closed);
		CHECK(become(way, fd) == fd && fstat(fd, &st) == 0 && !S_ISCHR(st.st_mode) == (way != 11));
		CHECK(close(fd) == 0 && count(watch, CLOSED) == closed);
		/* What is closed unseen is found out by each use. */
		for (int use = 0; use < 7; use++) {
			fd = device(way % 2 ? UVERBS : CM);
			CHECK(syscall(SYS_close, fd) == 0 && become(way, fd) == fd);
			closed++;
			switch (use) {
			case 0:
				CHECK(fstat(fd, &st) == 0 && !is_device(&st));
				break;
			case 1:
				CHECK(fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && !is_device(&st));
				break;
			case 2:
				n = tell(fd, ERRNO, 4711); /* of a device it is that */
				CHECK(n != -1 || errno != 4711);
				break;
			case 3:
				CHECK(ioctl(fd, FIOCLEX) == 0);
				break;
			case 4:
				n = dup(fd);
				CHECK(n >= 0 && ioctl(n, FIOCLEX) == 0 && close(n) == 0);
				break;
			case 5:
				CHECK(dup2(fd, 600) == 600 && ioctl(600, FIOCLEX) == 0 && close(600) == 0);
				break;
			case 6: /* the next that is opened */
				CHECK(close(device(CM)) == 0);
				closed++;
				break;
			}
			CHECK(count(watch, CLOSED) == closed && close(fd) == 0 && count(watch, CLOSED) == closed);
		}
	}
	/* A device is one still after all that a program may do with its descriptor. */
	int fd = device(CM);
	if ((count(fd, HANDLE) - count(watch, HANDLE)) % 64 == 0) { /* of the same mark */
		CHECK(close(fd) == 0 && count(watch, CLOSED) == ++closed);
		fd = device(CM);
	}
	int high = fcntl(fd, F_DUPFD, 300);
	CHECK(fcntl(fd, F_SETSIG, SIGRTMIN) == 0 && fcntl(fd, F_SETOWN, getpid()) == 0);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0);
	FAILS(tell(fd, ERRNO, 4711), 4711);
	FAILS(tell(high, ERRNO, 4711), 4711);
	/* One that takes another's number unseen is that other's no more. */
	CHECK(syscall(SYS_dup3, watch, fd, 0) == fd);
	CHECK(tell(fd, ERRNO, 4711) != -1 || errno != 4711);
	CHECK(count(watch, CLOSED) == closed && close(fd) == 0 && close(high) == 0 && count(watch, CLOSED) == closed + 1);
	signal(SIGPIPE, SIG_DFL);
	close(watch);
}

static void test_events(void)
{
	int fd = device(CM);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	CHECK(poll(&p, 1, 0) == 0);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	FAILS(tell(fd, GET_EVENT, 0), EAGAIN);
	CHECK(tell(fd, QUEUE, 1) == 8 && poll(&p, 1, 0) == 1);
	CHECK(tell(fd, GET_EVENT, 0) == 8 && poll(&p, 1, 0) == 0);
	CHECK(tell(fd, QUEUE, 3) == 8); /* two are dropped: their tokens are read and lead nowhere */
	CHECK(tell(fd, GET_EVENT, 0) == 8);
	FAILS(tell(fd, GET_EVENT, 0), EAGAIN);
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(gone != MAP_FAILED && (intptr_t)gone != 0);
	CHECK(fcntl(fd, F_SETFL, 0) == 0);
	close(fd);
	munmap(gone, 4096);
}

static void *wait_event(void *fd) { return (void *)tell((int)(intptr_t)fd, GET_EVENT, 0); }

/* Another thread's event wakes the waiter. */
static void test_event_wakes(void)
{
	int fd = device(CM);
	pthread_t t;
	void *r;
	CHECK(pthread_create(&t, NULL, wait_event, (void *)(intptr_t)fd) == 0);
	CHECK(tell(fd, QUEUE, 1) == 8 && pthread_join(t, &r) == 0 && (long)r == 8);
	close(fd);
}

static void handle(int);

static _Atomic bool told;
static void *close_under(void *fd)
{
	long r = tell((int)(intptr_t)fd, GET_EVENT, (uint32_t)(intptr_t)fd);
	r = r < 0 ? errno : 0;
	told = true;
	return (void *)r;
}

/* Who waits for an event of a device that another thread closes is not told, but by a signal; who does not wait is. */
static void test_event_of_closed(void)
{
	struct sigaction a = {.sa_handler = handle}, before;
	CHECK(sigaction(SIGUSR1, &a, &before) == 0);
	int fd = device(CM);
	pthread_t t;
	void *r;
	CHECK(tell(fd, QUEUE, 1) == 8 && pthread_create(&t, NULL, close_under, (void *)(intptr_t)fd) == 0);
	while (!told) {
		pthread_kill(t, SIGUSR1);
		sched_yield();
	}
	CHECK(pthread_join(t, &r) == 0 && (long)r == EINTR);
	fd = device(CM);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && tell(fd, QUEUE, 1) == 8);
	FAILS(tell(fd, GET_EVENT, (uint32_t)fd), EAGAIN);
	CHECK(sigaction(SIGUSR1, &before, NULL) == 0);
}

static int exit_of(pid_t child)
{
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A child's devices of the parent are of no use, and its own are those of an engine of its own, three deep. */
static void generation(int depth)
{
	int fd = device(UVERBS), copy = dup(fd);
	struct stat st;
	long opened = count(fd, OPENED);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child > 0) {
		CHECK(exit_of(child) == 0 && count(fd, OPENED) == opened && count(copy, FORKED) == 0);
		close(fd);
		close(copy);
		return;
	}
	FAILS(tell(fd, HANDLE, 0), EIO);
	FAILS(tell(copy, HANDLE, 0), EIO);
	CHECK(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
	int own = device(CM);
	CHECK(count(own, OPENED) == 1 && count(own, FORKED) == 0 && count(own, HANDLE) == 0);
	CHECK(close(fd) == 0 && close(copy) == 0 && count(own, CLOSED) == 0);
	if (depth > 0)
		generation(depth - 1);
	CHECK(close(own) == 0);
	_exit(0);
}

/* vfork's child shares the memory, but not the descriptors: what it closes stays open here. */
static void test_vfork(void)
{
	int fd = device(UVERBS), null = open("/dev/null", O_RDWR);
	long closed = count(fd, CLOSED);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	pid_t child = vfork();
#pragma GCC diagnostic pop
	if (child == 0) {
		close(fd);
		dup2(null, fd);
		close_range(3, ~0U, 0);
		_exit(0);
	}
	CHECK(child > 0 && exit_of(child) == 0);
	CHECK(count(fd, CLOSED) == closed);
	char *argv[] = {"true", NULL};
	CHECK(posix_spawnp(&child, "true", NULL, NULL, argv, argv + 1) == 0 && exit_of(child) == 0);
	CHECK(system("exit 3") >> 8 == 3 && count(fd, CLOSED) == closed);
	close(fd);
	close(null);
}

static _Atomic int handled;
static void handle(int s)
{
	(void)s;
	handled++;
}

static int channel_end;
static _Atomic bool reading, has_read;
static char was_read;
static void *read_channel(void *arg)
{
	reading = true;
	ssize_t r = read(channel_end, &was_read, 1);
	long no = r < 0 ? errno : 0;
	has_read = true;
	(void)arg;
	return (void *)no;
}

static pthread_t reader(void)
{
	pthread_t t;
	reading = has_read = false;
	was_read = 0;
	CHECK(pthread_create(&t, NULL, read_channel, NULL) == 0);
	while (!reading)
		sched_yield();
	return t;
}

static long result(pthread_t t)
{
	void *r;
	CHECK(pthread_join(t, &r) == 0);
	return (long)r;
}

/* Who reads a completion channel wakes for what arrives at the sockets, and receives for itself. */
static void test_channel(void)
{
	int dev = device(UVERBS), pipes[2], sockets[2];
	char c;
	CHECK(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	channel_end = pipes[0];
	CHECK(tell(dev, CHANNEL, (uint32_t)pipes[0]) == 1 && tell(dev, SOCKET, (uint32_t)sockets[0]) > 0 && tell(dev, WRITER, (uint32_t)pipes[1]) > 0);
	CHECK(write(pipes[1], "x", 1) == 1 && read(pipes[0], &c, 1) == 1 && c == 'x' && count(dev, WATCHES) == 0);
	pthread_t t = reader();
	CHECK(write(sockets[1], "s", 1) == 1 && result(t) == 0 && was_read == 's' && count(dev, WATCHES) > 0);
	for (int i = 0; i < 100; i++) { /* it goes on to look at the sockets behind a Write, whenever that comes */
		t = reader();
		CHECK(write(sockets[1], "w", 1) == 1);
		for (int n = 0; n < i; n++)
			sched_yield();
		CHECK(write(sockets[1], "ws", 2) == 2 && result(t) == 0 && was_read == 's');
	}
	t = reader();
	CHECK(write(pipes[1], "p", 1) == 1 && result(t) == 0 && was_read == 'p');
	/* A signal ends it if its handler would end a read, and else not. */
	struct sigaction a = {.sa_handler = handle}, before;
	CHECK(sigaction(SIGUSR1, &a, &before) == 0);
	for (t = reader(); !has_read; sched_yield())
		pthread_kill(t, SIGUSR1);
	CHECK(result(t) == EINTR);
	/* One that comes before the sleep ends it too, and none is kept back. */
	sigset_t were, are; /* of which the system fills a part */
	memset(&were, 0, sizeof were);
	memset(&are, 0, sizeof are);
	handled = 0;
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &were) == 0 && tell(dev, RAISE, SIGUSR1) == SIGUSR1);
	FAILS(read(pipes[0], &c, 1), EINTR);
	CHECK(tell(dev, RAISE, SIGUSR1) == SIGUSR1 && write(sockets[1], "w", 1) == 1);
	FAILS(read(pipes[0], &c, 1), EINTR); /* nor while something comes */
	CHECK(handled == 2 && pthread_sigmask(SIG_SETMASK, NULL, &are) == 0 && memcmp(&were, &are, sizeof were) == 0);
	/* One behind the two that the C library keeps for itself is no other. */
	int real = SIGRTMIN + 1;
	struct sigaction timer;
	CHECK(sigaction(SIGUSR1, &before, NULL) == 0 && sigaction(real, &a, &timer) == 0 && tell(dev, RAISE, (uint32_t)real) == real);
	FAILS(read(pipes[0], &c, 1), EINTR);
	CHECK(sigaction(real, &timer, NULL) == 0 && sigaction(SIGUSR1, &a, NULL) == 0);
	/* Go's runtimes use SIGURG; but this one leaves it to the program. */
	struct sigaction urgent;
	CHECK(sigaction(SIGURG, &a, &urgent) == 0 && sigaction(SIGUSR1, &before, NULL) == 0);
	for (t = reader(); !has_read; sched_yield())
		pthread_kill(t, SIGURG);
	CHECK(result(t) == EINTR && sigaction(SIGURG, &urgent, NULL) == 0);
	a.sa_flags = SA_RESTART;
	handled = 0;
	CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
	t = reader();
	for (int i = 0; i < 100; i++, sched_yield())
		pthread_kill(t, SIGUSR1);
	CHECK(!has_read && write(sockets[1], "r", 1) == 1 && result(t) == 0 && was_read == 'r' && handled > 0);
	CHECK(sigaction(SIGUSR1, &before, NULL) == 0);
	CHECK(fcntl(pipes[0], F_SETFL, O_NONBLOCK) == 0);
	FAILS(read(pipes[0], &c, 1), EAGAIN);
	CHECK(fcntl(pipes[0], F_SETFL, 0) == 0 && close(pipes[1]) == 0 && read(pipes[0], &c, 1) == 0);
	/* One that was closed unseen, and whose number is a socket's now, is read as a socket is. */
	int other[2];
	struct timeval soon = {.tv_usec = 10000};
	c = 0;
	CHECK(pipe(other) == 0 && tell(dev, CHANNEL, (uint32_t)other[0]) == 1 && syscall(SYS_close, other[0]) == 0);
	int number = other[0];
	CHECK(close(other[1]) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0 && other[0] == number);
	CHECK(setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0 && write(other[1], "o", 1) == 1);
	CHECK(read(number, &c, 1) == 1 && c == 'o');
	FAILS(read(number, &c, 1), EAGAIN);
	CHECK(tell(dev, IS_CHANNEL, (uint32_t)number) == 1000 && close(number) == 0 && close(other[1]) == 0);
	CHECK(tell(dev, IS_CHANNEL, (uint32_t)pipes[0]) == 1001 && close(pipes[0]) == 0 && tell(dev, IS_CHANNEL, (uint32_t)pipes[0]) == 1000);
	close(sockets[0]);
	close(sockets[1]);
	close(dev);
}

/* A poll as libibverbs writes it, and room for its answer. */
struct poll {
	struct { uint32_t command; uint16_t in_words, out_words; uint64_t response; uint32_t cq, most; } c;
	struct { uint32_t count, reserved; uint64_t wcs[32][WC_SIZE / 8]; } r;
};
enum { CQ = 7, POLL_CQ = 21 };
static struct poll poll_for(uint32_t most) { return (struct poll){.c = {POLL_CQ, 6, (8 + 32 * WC_SIZE) / 4, 0, CQ, most}}; }
static __attribute__((noinline)) long polled(int fd, struct poll *p)
{
	__typeof__(p->c) c = p->c;
	c.response = (uintptr_t)&p->r;
	return write(fd, &c, sizeof c);
}

static __attribute__((noinline)) long polled_at(int fd, uint32_t most, uintptr_t answer)
{
	__typeof__(((struct poll *)0)->c) c = {POLL_CQ, 6, (8 + 32 * WC_SIZE) / 4, answer, CQ, most};
	return write(fd, &c, sizeof c);
}

static size_t page;
/* Four pages: to be read, to be written, to be written, and none. */
static char *answer_pages(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && mprotect(p, page, PROT_READ) == 0 && mprotect(p + 3 * page, page, PROT_NONE) == 0);
	return p;
}

/* The engine's half: the ring of CQ, of this open, begins with the completion after first. */
static struct ring *ring_of(int fd, uint32_t first)
{
	struct ring *rings = (struct ring *)tell(fd, RINGS_AT, 0), *r;
	uint32_t open = (uint32_t)count(fd, HANDLE);
	r = &rings[ring_place(open, CQ)];
	r->taken = 9ULL << 32 | first;
	r->put = first;
	r->more = 0;
	r->key = (uint64_t)open << 32 | CQ;
	return r;
}
static void put(struct ring *r, uint64_t id)
{
	uint32_t n = r->put;
	for (int i = 0; i < WC_SIZE / 8; i++)
		r->wcs[n % RING_WCS][i] = id;
	r->put = n + 1;
}
static bool is(const struct poll *p, uint32_t i, uint64_t id)
{
	for (int k = 0; k < WC_SIZE / 8; k++)
		if (p->r.wcs[i][k] != id)
			return false;
	return true;
}

/* Polls take what is in the ring, and go to the engine for all else. */
static void test_ring(void)
{
	int fd = device(UVERBS);
	struct ring *r = ring_of(fd, 0xffffffff - 100); /* the numbers wrap */
	struct poll p = poll_for(16);
	long asked = count(fd, POLLS);
	CHECK(polled(fd, &p) == sizeof p.c && count(fd, POLLS) == asked + 1); /* empty */
	for (uint64_t id = 1; id <= RING_WCS; id++)
		put(r, id);
	for (uint64_t id = 1; id <= RING_WCS; id += 16) {
		p = poll_for(16);
		errno = 77;
		CHECK(polled(fd, &p) == sizeof p.c && errno == 77 && p.r.count == 16 && p.r.reserved == 0);
		for (uint32_t i = 0; i < 16; i++)
			CHECK(is(&p, i, id + i));
	}
	CHECK(count(fd, POLLS) == asked + 1 && r->taken >> 32 == 9);
	CHECK(polled(fd, &p) == sizeof p.c && count(fd, POLLS) == asked + 2);
	/* Fewer than asked for: all that there are, unless the engine has more. */
	put(r, 1000);
	put(r, 1001);
	p = poll_for(16);
	CHECK(polled(fd, &p) > 0 && p.r.count == 2 && is(&p, 1, 1001) && !is(&p, 2, 1001));
	put(r, 1002);
	put(r, 1003);
	r->more = 1;
	p = poll_for(16);
	CHECK(polled(fd, &p) > 0 && p.r.count == 0 && count(fd, POLLS) == asked + 3);
	p = poll_for(2);
	CHECK(polled(fd, &p) > 0 && p.r.count == 2 && is(&p, 0, 1002));
	/* Another's queue, and commands of which the engine says what is wrong. */
	for (int i = 0; i < 20; i++)
		put(r, 2000);
	r->more = 0;
	asked = count(fd, POLLS);
	struct poll bad[] = {poll_for(1), poll_for(1), poll_for(1), poll_for(0), poll_for(1)};
	bad[0].c.cq = CQ + RINGS;
	bad[1].c.in_words = 5;
	bad[2].c.out_words = 1;
	bad[4].c.cq = 0;
	for (int i = 0; i < 5; i++)
		CHECK(polled(fd, &bad[i]) > 0 && bad[i].r.count == 0 && count(fd, POLLS) == asked + 1 + i);
	static struct poll far;
	far = poll_for(1);
	far.c.response = (uintptr_t)&far.r;
	CHECK(write(fd, &far.c, sizeof far.c) > 0 && far.r.count == 0); /* the engine looks whether that is mapped */
	CHECK(polled(fd, &far) > 0 && far.r.count == 1);
	p = poll_for(1);
	r->key = 0;
	CHECK(polled(fd, &p) > 0 && p.r.count == 0);
	int other = device(UVERBS);
	ring_of(fd, 0);
	put(r, 1);
	CHECK(polled(other, &p) > 0 && p.r.count == 0);
	/* An answer that cannot be written is the engine's affair, which says EFAULT. Nothing is taken. */
	r->key = 0;
	r = ring_of(fd, 0);
	for (uint64_t id = 1; id <= 3; id++)
		put(r, id);
	char *pages = answer_pages();
	uintptr_t first = (uintptr_t)pages, end_of_all = first + 3 * page;
	uintptr_t bad_answers[] = {0, 1, ~0UL, ~0UL << 12, 1UL << 63, first, first + page - 8, end_of_all - 8 - WC_SIZE,
		end_of_all, end_of_all - 1};
	for (size_t i = 0; i < sizeof bad_answers / sizeof bad_answers[0]; i++) {
		asked = count(fd, POLLS);
		CHECK(polled_at(fd, 2, bad_answers[i]) > 0 && count(fd, POLLS) == asked + 1 && (uint32_t)r->taken == 0);
	}
	/* One that can be is written to its last octet, and not beyond, wherever it begins. */
	for (size_t end = 0; end < 9; end++) {
		char *at = pages + 3 * page - 8 - 2 * WC_SIZE - end;
		memset(pages + page, 0x5a, 2 * page);
		r->taken = 9ULL << 32;
		CHECK(polled_at(fd, 2, (uintptr_t)at) > 0 && (uint32_t)r->taken == 2);
		memcpy(&p.r, at, 8 + 2 * WC_SIZE);
		CHECK(p.r.count == 2 && is(&p, 0, 1) && is(&p, 1, 2) && at[-1] == 0x5a);
		for (size_t i = 0; i < end; i++)
			CHECK(at[8 + 2 * WC_SIZE + i] == 0x5a);
	}
	/* It may have been there a moment ago. */
	r->taken = 9ULL << 32;
	CHECK(munmap(pages + 2 * page, page) == 0);
	asked = count(fd, POLLS);
	CHECK(polled_at(fd, 2, end_of_all - 8 - 2 * WC_SIZE) > 0);
	CHECK(count(fd, POLLS) == asked + 1 && (uint32_t)r->taken == 0);
	munmap(pages, 4 * page);
	/* A child has an engine of its own, and the parent's completions stay the parent's. */
	r = ring_of(fd, 0);
	put(r, 1);
	p = poll_for(1);
	pid_t child = fork();
	if (child == 0) {
		int own = device(UVERBS);
		FAILS(polled(fd, &p), EIO);
		_exit(polled(own, &p) > 0 && p.r.count == 0 ? 0 : 1);
	}
	CHECK(exit_of(child) == 0 && polled(fd, &p) > 0 && p.r.count == 1 && is(&p, 0, 1));
	r->key = 0;
	close(fd);
	close(other);
}

/* A post as libibverbs writes it. */
struct post {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
	uint32_t qp, wrs, sges, wr_size;
	uint64_t id;
	uint32_t elements, op, flags, ex;
	uint64_t rest[4], sge[2]; /* of a receive the element is where op and flags are, and the first of rest */
};
enum { POST_SEND = 28, POST_RECV = 29, QP = 5, POSTED = sizeof(struct post), POSTED_RECV = 32 + 16 + 16 };
static struct post post_of(uint64_t id)
{
	return (struct post){POST_SEND, POSTED / 4, 1, 0, QP, 1, 1, 56, id, 1, 2, 2, 7, {1, 2, 3, id}, {id, id << 32 | 8}};
}
/* Writes a copy, on the stack, with room for an answer: 0 comes there. */
static __attribute__((noinline)) long posted(int fd, const struct post *p, size_t n)
{
	struct post c = *p;
	uint64_t answer = ~0ULL;
	c.response = (uintptr_t)&answer;
	long r = write(fd, &c, n);
	CHECK(answer == (~0ULL ^ 0xffffffff) || answer == ~0ULL);
	return answer == ~0ULL ? -r : r; /* negative: it went to the engine, which answers nothing here */
}

static __attribute__((noinline)) long posted_at(int fd, uintptr_t answer)
{
	struct post c = post_of(1);
	c.response = answer;
	return write(fd, &c, POSTED);
}

static struct post_ring *post_ring_of(int fd, unsigned recv)
{
	struct post_ring *rings = (struct post_ring *)tell(fd, POST_RINGS_AT, 0);
	uint32_t open = (uint32_t)count(fd, HANDLE);
	struct post_ring *r = &rings[post_ring_place(open, QP, recv)];
	r->key = (uint64_t)open << 32 | QP;
	r->put = 0;
	r->limit = RING_POSTS;
	return r;
}

/* Posts wait in the ring while it is open and has room, and are the engine's else. */
static void test_posts(void)
{
	int fd = device(UVERBS);
	struct post_ring *r = post_ring_of(fd, 0), *other = post_ring_of(fd, 1);
	struct post p;
	r->limit = 0;
	long asked = count(fd, POSTS);
	p = post_of(1);
	CHECK(posted(fd, &p, POSTED) == -POSTED && count(fd, POSTS) == asked + 1 && r->put == 0); /* closed */
	r->limit = RING_POSTS - 1;
	for (uint64_t id = 1; id < RING_POSTS; id++) {
		p = post_of(id);
		errno = 77;
		CHECK(posted(fd, &p, POSTED) == POSTED && errno == 77 && r->put == id && r->busy == 0);
		CHECK(memcmp(r->wrs[id - 1], &p.id, 56) == 0 && memcmp(r->sges[id - 1], p.sge, 16) == 0);
	}
	CHECK(count(fd, POSTS) == asked + 1);
	CHECK(posted(fd, &p, POSTED) == -POSTED && count(fd, POSTS) == asked + 2); /* full */
	/* Receives have a ring of their own. */
	p.command = POST_RECV, p.in_words = POSTED_RECV / 4, p.wr_size = 16, p.id = 99;
	CHECK(posted(fd, &p, POSTED_RECV) == POSTED_RECV && other->put == 1);
	CHECK(memcmp(other->wrs[0], &p.id, 16) == 0 && memcmp(other->sges[0], &p.flags, 16) == 0);
	/* Who finds another in the middle does not wait. */
	r->put = 0;
	r->busy = 1;
	p = post_of(2);
	CHECK(posted(fd, &p, POSTED) == -POSTED && r->put == 0 && r->busy == 1);
	r->busy = 0;
	/* What the engine has to see itself. */
	char *pages = answer_pages();
	uintptr_t end = (uintptr_t)pages + 3 * page;
	uintptr_t bad_answers[] = {0, 1, ~0UL, 1UL << 63, (uintptr_t)pages, end, end - 2};
	for (size_t i = 0; i < sizeof bad_answers / sizeof bad_answers[0]; i++) {
		asked = count(fd, POSTS);
		CHECK(posted_at(fd, bad_answers[i]) == POSTED && count(fd, POSTS) == asked + 1 && r->put == 0 && r->busy == 0);
	}
	memset(pages + page, 0x5a, 2 * page);
	CHECK(posted_at(fd, (uintptr_t)pages + 3 * page - 8) == POSTED && r->put == 1);
	CHECK(memcmp(pages + 3 * page - 12, "\x5a\x5a\x5a\x5a\0\0\0\0\x5a\x5a\x5a\x5a", 12) == 0);
	munmap(pages, 4 * page);
	r->put = 0;
	struct post bad[11];
	for (int i = 0; i < 11; i++)
		bad[i] = post_of(3);
	bad[0].qp = QP + POST_RINGS / 2;
	bad[1].in_words--;
	bad[2].out_words = 0;
	bad[3].wrs = 2;
	bad[4].sges = 2;
	bad[5].wr_size = 64;
	bad[6].elements = 2;
	bad[7].op = 3;     /* SEND_WITH_IMM */
	bad[8].flags |= 8; /* INLINE */
	bad[9].op = 5;     /* an Atomic */
	bad[10].elements = 0;
	for (int i = 0; i < 11; i++)
		CHECK(posted(fd, &bad[i], POSTED) == -POSTED && r->put == 0);
	static struct post far;
	far = post_of(4);
	far.response = (uintptr_t)&far.rest[0];
	CHECK(write(fd, &far, POSTED) == POSTED && r->put == 0);
	uint64_t answer = 0;
	far.response = (uintptr_t)&answer;
	r->key++;
	CHECK(posted(fd, &far, POSTED) == -POSTED && r->put == 0);
	r->key = other->key = 0;
	r->limit = other->limit = 0;
	close(fd);
}

enum { POSTERS = 4, EACH = 100000 };
static int post_fd;
static void *poster(void *arg)
{
	for (uint64_t i = 1; i <= EACH; i++) {
		struct post p = post_of((uintptr_t)arg << 32 | i);
		while (posted(post_fd, &p, POSTED) != POSTED)
			sched_yield();
	}
	return arg;
}

/* Threads post to one queue while the engine opens and closes the ring: what has been put in is there, whole, and of each thread in order. */
static void test_posts_threads(void)
{
	pthread_t t[POSTERS];
	uint64_t last[POSTERS] = {0}, all = 0;
	post_fd = device(UVERBS);
	struct post_ring *r = post_ring_of(post_fd, 0);
	for (uintptr_t i = 0; i < POSTERS; i++)
		CHECK(pthread_create(&t[i], NULL, poster, (void *)i) == 0);
	while (all < POSTERS * EACH) {
		r->limit = 0;
		while (r->busy)
			sched_yield();
		for (uint32_t i = 0, n = r->put; i < n; i++, all++) {
			uint64_t id = r->wrs[i][0], thread = id >> 32;
			CHECK(thread < POSTERS && (uint32_t)id == ++last[thread]);
			CHECK(r->wrs[i][6] == id && r->sges[i][0] == id && r->sges[i][1] == (id << 32 | 8));
		}
		r->put = 0;
		r->limit = RING_POSTS;
		sched_yield();
	}
	for (int i = 0; i < POSTERS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	r->key = 0;
	r->limit = 0;
	close(post_fd);
}

enum { TAKERS = 4, TAKEN = 200000 };
static _Atomic char seen[TAKEN + 1];
static _Atomic int seen_all;
static int ring_fd;
static void *taker(void *arg)
{
	while (seen_all < TAKEN) {
		struct poll p = poll_for(1 + (uint32_t)(seen_all % 32));
		CHECK(polled(ring_fd, &p) > 0);
		for (uint32_t i = 0; i < p.r.count; i++) {
			uint64_t id = p.r.wcs[i][0];
			CHECK(id >= 1 && id <= TAKEN && is(&p, i, id) && seen[id]++ == 0);
			seen_all++;
		}
	}
	return arg;
}

/* Threads that poll one queue take each completion once, and whole. */
static void test_ring_threads(void)
{
	pthread_t t[TAKERS];
	ring_fd = device(UVERBS);
	struct ring *r = ring_of(ring_fd, 0xffffffff - TAKEN / 2);
	for (int i = 0; i < TAKERS; i++)
		CHECK(pthread_create(&t[i], NULL, taker, NULL) == 0);
	for (uint64_t id = 1; id <= TAKEN; id++) {
		while (r->put - (uint32_t)r->taken == RING_WCS)
			sched_yield();
		put(r, id);
	}
	for (int i = 0; i < TAKERS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	r->key = 0;
	close(ring_fd);
}

static void *churn(void *arg)
{
	for (int i = 0; i < 500; i++) {
		int fd = device(i % 2 ? UVERBS : CM), copy = dup(fd);
		CHECK(copy >= 0 && count(fd, HANDLE) == count(copy, HANDLE));
		int pipes[2];
		CHECK(pipe(pipes) == 0 && write(pipes[1], "x", 1) == 1);
		CHECK(close(fd) == 0 && count(copy, HANDLE) >= 0 && close(pipes[0]) == 0 && close(copy) == 0);
		CHECK(close(pipes[1]) == 0);
	}
	return arg;
}

/* Threads open and close while one forks. */
static void test_threads(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, churn, NULL) == 0);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		if (child == 0) {
			int fd = device(UVERBS);
			_exit(count(fd, HANDLE) == 0 && close(fd) == 0 ? 0 : 1);
		}
		CHECK(exit_of(child) == 0);
	}
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	int fd = device(UVERBS);
	CHECK(count(fd, OPENED) == count(fd, CLOSED) + 1);
	close(fd);
}

static void reads(int fd, const char *want)
{
	char text[64];
	struct stat st;
	CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)strlen(want));
	CHECK(read(fd, text, sizeof text) == st.st_size && memcmp(text, want, (size_t)st.st_size) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && pread(fd, text, 3, 1) == 3 && memcmp(text, want + 1, 3) == 0);
	close(fd);
}

/* The files of a tree without an address: the engine says what it knows of them, the others are as they are there. */
static void template_child(void)
{
	const char *tree = getenv("SOFTRNIC_TREE");
	char path[4096], text[64];
	CHECK(!engine_is_loaded() && access("/sys/class/infiniband/x/node_type", R_OK) == 0 && !engine_is_loaded());
	reads(open("/sys/class/infiniband/x/node_type", O_RDONLY), "1: CA\n");
	CHECK(engine_is_loaded());
	snprintf(path, sizeof path, "%s/class/infiniband/x/node_type", tree);
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	reads(fd, "1: CA\n");
	FILE *f = fopen(path, "r");
	CHECK(f && fgets(text, sizeof text, f) && strcmp(text, "1: CA\n") == 0 && fclose(f) == 0);
	snprintf(path, sizeof path, "%s/class/infiniband/x/other", tree);
	reads(open(path, O_RDONLY), "as it is\n");
	reads(open("/sys/class/infiniband/x/other", O_RDONLY), "as it is\n");
	FAILS(open("/sys/class/infiniband/x/failing", O_RDONLY), EIO);
	FAILS(open("/sys/class/infiniband/x/none", O_RDONLY), ENOENT);
	snprintf(path, sizeof path, "%sclass/infiniband/x/node_type", tree);
	FAILS(open(path, O_RDONLY), ENOENT);
	fd = open("/sys/class/infiniband/x", O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0 && faccessat(fd, "other", R_OK, 0) == 0 && close(fd) == 0);
	CHECK(fopen("/sys/class/infiniband/x/failing", "r") == NULL && errno == EIO);
	fd = device(UVERBS);
	CHECK(count(fd, OPENED) == 1 && close(fd) == 0);
	exit(0);
}

static void test_template(void)
{
	char command[4096];
	if (getenv("SOFTRNIC_TREE"))
		template_child();
	snprintf(command, sizeof command, "SOFTRNIC_TREE=\"$SYSFS_PATH\" SYSFS_PATH= /proc/%d/exe", getpid());
	CHECK(system(command) == 0);
}

/* The engine is told what the program began with, whatever the program has done to its environment since. */
static void beginnings_child(void)
{
	extern char **environ;
	for (char **v = environ; *v; v++)
		memset(*v, 'x', strlen(*v)); /* as a title would be */
	CHECK(clearenv() == 0);
	char said[1 << 16];
	unsigned n = 0;
	int fd = device(UVERBS);
	for (long c; (c = tell(fd, TOLD, n)) != 0 && n < sizeof said; n++)
		said[n] = (char)(c - 1000);
	bool addr = false, path = false;
	for (char *s = said; s < said + n; s += strlen(s) + 1) {
		addr |= strcmp(s, "SOFTRNIC_ADDR=192.0.2.7") == 0;
		path |= strncmp(s, "SYSFS_PATH=/", 12) == 0;
		CHECK(strncmp(s, "SOFTRNIC_", 9) == 0 || strncmp(s, "SYSFS_PATH=", 11) == 0);
	}
	CHECK(addr && path && close(fd) == 0);
	exit(0);
}

static void test_beginnings(void)
{
	char command[4096];
	if (getenv("SOFTRNIC_ADDR"))
		beginnings_child();
	snprintf(command, sizeof command, "SOFTRNIC_ADDR=192.0.2.7 /proc/%d/exe", getpid());
	CHECK(system(command) == 0);
}

/* Without an engine a device cannot be opened, and a sentence says why, once. */
static void test_no_engine(void)
{
	if (getenv("SOFTRNIC_TEST_BROKEN")) {
		FAILS(open(UVERBS, O_RDWR), ENODEV);
		FAILS(open(CM, O_RDWR), ENODEV);
		exit(0);
	}
	char command[4096], line[256];
	snprintf(command, sizeof command, "SOFTRNIC_TEST_BROKEN=1 SOFTRNIC_ENGINE=/none /proc/%d/exe 2>&1", getpid());
	FILE *f = popen(command, "r");
	CHECK(f && fgets(line, sizeof line, f) && strstr(line, "/none") && strstr(line, "make c"));
	CHECK(!fgets(line, sizeof line, f) && pclose(f) == 0);
}

/* Where the engine could not start it is not loaded, and a sentence says what is missing. */
static void test_no_room(void)
{
	if (getenv("SOFTRNIC_TEST_LIMIT")) {
		CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){12, 12}) == 0);
		FAILS(open(UVERBS, O_RDWR), ENODEV);
		CHECK(!engine_is_loaded());
		exit(0);
	}
	char command[4096], line[256];
	snprintf(command, sizeof command, "SOFTRNIC_TEST_LIMIT=1 /proc/%d/exe 2>&1", getpid());
	FILE *f = popen(command, "r");
	CHECK(f && fgets(line, sizeof line, f) && strstr(line, "ulimit -n"));
	CHECK(!fgets(line, sizeof line, f) && pclose(f) == 0);
}

/* A folder of the device's files that is gone is told of, once. */
static void test_no_tree(void)
{
	if (getenv("SOFTRNIC_TEST_GONE")) {
		FAILS(open("/sys/class/infiniband/x/node_type", O_RDONLY), ENOENT);
		FAILS(open("/none/class/infiniband/x/node_type", O_RDONLY), ENOENT);
		exit(0);
	}
	char command[4096], line[256];
	snprintf(command, sizeof command, "SOFTRNIC_TEST_GONE=1 SYSFS_PATH=/none /proc/%d/exe 2>&1", getpid());
	FILE *f = popen(command, "r");
	CHECK(f && fgets(line, sizeof line, f) && strstr(line, "/none") && strstr(line, "chroot"));
	CHECK(!fgets(line, sizeof line, f) && pclose(f) == 0);
}

/* Once the engine is there, it is asked for a device's files before the tree is: what it says has changed. */
static void test_changed(void)
{
	char text[64] = "";
	static const char changed[] = "/sys/class/infiniband/x/node_type", same[] = "/sys/class/infiniband/x/other";
	CHECK(engine_is_loaded());
	FILE *f = fopen(changed, "r");
	CHECK(f && fgets(text, sizeof text, f) && strcmp(text, "1: CA\n") == 0);
	fclose(f);
	int fd = open(changed, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && read(fd, text, sizeof text) == 6 && memcmp(text, "1: CA\n", 6) == 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
	close(fd);
	FAILS(open(changed, O_WRONLY | O_DIRECTORY), ENOTDIR);
	f = fopen(same, "r");
	CHECK(f && fgets(text, sizeof text, f) && strcmp(text, "as it is\n") == 0);
	fclose(f);
	FAILS(open("/sys/class/infiniband/x/failing", O_RDONLY), EIO);
}

int main(void)
{
	static const struct test tests[] = {
		T(test_no_tree), T(test_no_engine), T(test_no_room), T(test_template), T(test_beginnings), T(test_lists_without_engine), T(test_tree), T(test_files_are_files), T(test_device),
		T(test_changed), T(test_duplicates), T(test_numbers), T(test_events), T(test_event_wakes), T(test_event_of_closed),
		T(test_channel), T(test_ring), T(test_ring_threads), T(test_posts), T(test_posts_threads),
		T(test_vfork), T(test_threads),
	};
	/* A child of one test has that alone to do. */
	static const struct {
		const char *variable;
		void (*run)(void);
	} children[] = {
		{"SOFTRNIC_TEST_BROKEN", test_no_engine}, {"SOFTRNIC_TEST_LIMIT", test_no_room}, {"SOFTRNIC_TEST_GONE", test_no_tree},
		{"SOFTRNIC_TREE", test_template},	  {"SOFTRNIC_ADDR", test_beginnings},
	};
	for (size_t i = 0; i < sizeof children / sizeof children[0]; i++)
		if (getenv(children[i].variable))
			children[i].run();
	run_all(tests, sizeof tests / sizeof tests[0]);
	generation(3);
	puts("ok generation");
	return 0;
}
