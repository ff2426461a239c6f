/* Tests of several devices, and of devices that are PCI functions: what programs that look where a device is plugged in find. The
   tree of `run` has uverbs7, and a device y that is the function 0000:c0:00.0 beside one of the host's. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FAILS(what, no) CHECK((errno = 0, (long)(what) == -1 && errno == (no)))
#define FUNCTION "/sys/devices/pci0000:c0/0000:c0:00.0"

char *__realpath_chk(const char *, char *, size_t);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);

static long ask(int fd, uint32_t cmd)
{
	uint32_t c[2] = {cmd, 0};
	return write(fd, c, sizeof c) - 1000;
}

/* uverbsN is there if the tree has it, has a number of its own, and is told to the engine. */
static void test_numbers(void)
{
	enum { KIND = 200, UVERBS = 1 };
	struct stat st;
	struct statx sx;
	CHECK(stat("/dev/infiniband/uverbs7", &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(231, 199));
	CHECK(statx(AT_FDCWD, "/dev/infiniband/uverbs7", 0, STATX_BASIC_STATS, &sx) == 0 && sx.stx_rdev_minor == 199);
	static const char *const none[] = {"uverbs1", "uverbs07", "uverbs7x", "uverbs", "uverbs-7", "uverbs+7", "uverbs 7", "uverbs00", "uverbs1000000000000"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		char path[128];
		snprintf(path, sizeof path, "/dev/infiniband/%s", none[i]);
		FAILS(stat(path, &st), ENOENT);
		FAILS(open(path, O_RDWR), ENOENT);
	}
	int zero = open("/dev/infiniband/uverbs0", O_RDWR), fd = open("/dev/infiniband/uverbs7", O_RDWR | O_CLOEXEC);
	CHECK(zero >= 0 && fd >= 0 && fstat(fd, &st) == 0 && st.st_rdev == makedev(231, 199));
	CHECK(ask(fd, KIND) == (UVERBS | 7 << 8));
	CHECK(fstat(zero, &st) == 0 && st.st_rdev == makedev(231, 192));
	CHECK(close(zero) == 0 && close(fd) == 0);
	zero = open("/dev/infiniband/uverbs0", O_RDWR);
	CHECK(zero >= 0 && ask(zero, KIND) == UVERBS && close(zero) == 0);
}

static void reads(int fd, const char *want)
{
	char text[64];
	CHECK(fd >= 0 && read(fd, text, sizeof text) == (ssize_t)strlen(want) && memcmp(text, want, strlen(want)) == 0);
	close(fd);
}

/* By every way that leads to a function its files are there, and the host's own are too. */
static void test_ways(void)
{
	struct stat st;
	char text[PATH_MAX];
	reads(open(FUNCTION "/numa_node", O_RDONLY), "1\n");
	reads(open("/sys/bus/pci/devices/0000:c0:00.0/numa_node", O_RDONLY), "1\n");
	reads(open("/sys/class/infiniband/y/device/numa_node", O_RDONLY), "1\n");
	reads(open("/sys/class/pci_bus/0000:c0/../../0000:c0:00.0/numa_node", O_RDONLY), "1\n");
	CHECK(stat("/sys/bus/pci/devices/0000:00:99.0/fd", &st) == 0 && S_ISDIR(st.st_mode));
	FAILS(access("/sys/bus/pci/devices/0000:c1:00.0", F_OK), ENOENT);
	FAILS(access(FUNCTION "/none", F_OK), ENOENT);
	CHECK(stat("/sys/devices", &st) == 0 && stat("/sys/devices/system/cpu", &st) == 0);
	static const char bus[] = "/sys/devices/pci0000:00"; /* of the host, if it has one */
	CHECK(syscall(SYS_newfstatat, AT_FDCWD, bus, &st, 0) != 0 || stat(bus, &st) == 0);
	ssize_t n = readlink("/sys/class/infiniband/y", text, sizeof text);
	CHECK(n > 0 && strncmp(text, "../../devices/pci0000:c0/0000:c0:00.0/infiniband/y", (size_t)n) == 0);
	CHECK(__readlink_chk("/sys/class/infiniband/y", text, sizeof text, sizeof text) == n);

	/* hwloc begins at a descriptor of the root, and goes by names without a slash before them. */
	int root = open("/", O_RDONLY | O_DIRECTORY), other = open("/etc", O_RDONLY | O_DIRECTORY);
	CHECK(root >= 0 && other >= 0);
	reads(openat(root, "sys/bus/pci/devices/0000:c0:00.0/numa_node", O_RDONLY), "1\n");
	CHECK(readlinkat(root, "sys/class/infiniband/y", text, sizeof text) == n && __readlinkat_chk(root, "sys/class/infiniband/y", text, sizeof text, sizeof text) == n);
	CHECK(faccessat(root, "sys/class/infiniband/y", R_OK, 0) == 0 && fstatat(root, "sys/class/infiniband/y", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
	FAILS(openat(other, "sys/bus/pci/devices/0000:c0:00.0/numa_node", O_RDONLY), ENOENT);
	FAILS(openat(-7, "sys/class/infiniband/y/device/numa_node", O_RDONLY), EBADF);
	close(root);
	close(other);
}

/* A real path is one of /sys, which programs take the function's address from and go on with. */
static void test_real_paths(void)
{
	char text[PATH_MAX];
	static const char *const ways[] = {"/sys/class/infiniband/y/device", "/sys/bus/pci/devices/0000:c0:00.0", "/sys/class/pci_bus/0000:c0/../../0000:c0:00.0", FUNCTION};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		CHECK(realpath(ways[i], text) == text && strcmp(text, FUNCTION) == 0);
		char *allocated = realpath(ways[i], NULL), *again = canonicalize_file_name(ways[i]);
		CHECK(allocated && again && strcmp(allocated, FUNCTION) == 0 && strcmp(again, FUNCTION) == 0);
		free(allocated);
		free(again);
		CHECK(__realpath_chk(ways[i], text, sizeof text) == text && strcmp(text, FUNCTION) == 0);
	}
	CHECK(realpath("/sys/class/infiniband/none", text) == NULL && errno == ENOENT);
	CHECK(realpath("/sys/bus/pci/devices/0000:00:99.0", text) && strncmp(text, "/proc/", 6) == 0);
	CHECK(realpath("/proc/../tmp", text) && strcmp(text, "/tmp") == 0);
}

static int is_ours(const struct dirent *e) { return strcmp(e->d_name, "0000:c0:00.0") == 0; }

/* Who lists the bus sees ours beside the host's. */
static void test_lists(void)
{
	struct dirent **list;
	CHECK(scandir("/sys/bus/pci/devices", &list, is_ours, alphasort) == 1);
	free(list[0]);
	free(list);
	int n = 0;
	DIR *d = opendir("/sys/bus/pci/devices");
	CHECK(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	CHECK(n == 2);
}

int main(void)
{
	static const struct test tests[] = {T(test_ways), T(test_real_paths), T(test_lists), T(test_numbers)};
	run_all(tests, sizeof tests / sizeof tests[0]);
	return 0;
}
