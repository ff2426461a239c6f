/* Tests of the preload library with an engine that only counts: `make c-unit`. The library's objects are linked in, so
   that sanitizers see them. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define UVERBS "/dev/infiniband/uverbs0"
#define CM "/dev/infiniband/rdma_cm"

#define CHECK(what)                                                                                                        \
	do {                                                                                                               \
		if (!(what)) {                                                                                             \
			fprintf(stderr, "%s:%d: %s (errno %s)\n", __FILE__, __LINE__, #what, strerror(errno));             \
			_exit(1);                                                                                          \
		}                                                                                                          \
	} while (0)
#define FAILS(what, no) CHECK((errno = 0, (long)(what) == -1 && errno == (no)))

int __xstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __lxstat(int, const char *, struct stat *);

enum { GET_EVENT = 12, OPENED = 100, CLOSED, HANDLE, ERRNO, QUEUE, FORKED };

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

/* Another thread's event wakes who waits. */
static void test_event_wakes(void)
{
	int fd = device(CM);
	pthread_t t;
	void *r;
	CHECK(pthread_create(&t, NULL, wait_event, (void *)(intptr_t)fd) == 0);
	CHECK(tell(fd, QUEUE, 1) == 8 && pthread_join(t, &r) == 0 && (long)r == 8);
	close(fd);
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

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
#define T(name) {#name, name}
		T(test_no_engine), T(test_lists_without_engine), T(test_tree), T(test_files_are_files), T(test_device),
		T(test_duplicates), T(test_events), T(test_event_wakes), T(test_vfork), T(test_threads),
	};
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
		tests[i].run();
		printf("ok %s\n", tests[i].name);
		fflush(stdout);
	}
	generation(3);
	puts("ok generation");
	return 0;
}
