#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static char tree[PATH_MAX]; /* "": none */
static char *real_tree;     /* without links in it; NULL: there is none */
static bool template;       /* the tree is of a device without an address: the engine knows the texts */
static bool functions;      /* its devices are functions of PCI */

/* Keeps the folder: `rnic run` removes it when nobody has its marker locked. The mapping holds the lock, so that nothing of it is
   left for a program that closes all descriptors, and a daemon has it from the process that it was forked from. */
static void hold_tree(void)
{
	char marker[PATH_MAX + sizeof "/.rnic-run"];
	snprintf(marker, sizeof marker, "%s/.rnic-run", tree);
	int fd = NEXT(open)(marker, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		(void)!mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
	NEXT(close)(fd);
}

static const char *behind(const char *prefix, const char *path)
{
	size_t n = strlen(prefix);
	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

/* Whether the tree has a file. */
static bool there(const char *name)
{
	char path[2 * PATH_MAX];
	struct stat st;
	int e = errno;
	snprintf(path, sizeof path, "%s%s", tree, name);
	bool is = syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
	errno = e;
	return is;
}

/* The environment is read once: a program may clear it. */
void path_setup(void)
{
	const char *p = getenv("SYSFS_PATH");
	bool shared = !p || !p[0];
	if (shared)
		p = getenv("SOFTRNIC_TREE");
	if (p && strlen(p) < sizeof tree && !tree[0]) {
		memcpy(tree, p, strlen(p) + 1);
		template = shared;
		real_tree = NEXT(realpath)(tree, NULL);
		functions = there("/bus/pci/devices");
		hold_tree();
	}
}

/* What rdma-core cannot look into is to it a system without devices, and it says no more. */
static void look_at_tree(void)
{
	static _Atomic bool looked;
	if (atomic_exchange(&looked, true))
		return;
	int e = errno, fd = NEXT(open)(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		NEXT(close)(fd);
	else if (errno == EACCES)
		say(tree, "the device's files are there, and this user may not read them", "set TMPDIR to a folder that both this user and the one before may read");
	else if (errno == ENOENT)
		say(tree, "the device's files are not there",
		    "behind a chroot, start `rnic run` within; else somebody has removed the folder while the program ran");
	errno = e;
}

enum kind device_of(const char *path)
{
	static const char dir[] = "/dev/infiniband/", uverbs[] = "uverbs";
	if (!path || strncmp(path, dir, sizeof dir - 1) != 0)
		return NO_DEVICE;
	path += sizeof dir - 1;
	if (strcmp(path, "uverbs0") == 0)
		return UVERBS;
	if (strcmp(path, "rdma_cm") == 0)
		return RDMA_CM;
	const char *digits = behind(uverbs, path);
	char *end, name[64];
	if (!digits || digits[0] < '1' || digits[0] > '9' || strlen(digits) > 3)
		return NO_DEVICE;
	long n = strtol(digits, &end, 10);
	snprintf(name, sizeof name, "/class/infiniband_verbs/uverbs%ld", n);
	return !*end && there(name) ? (enum kind)(UVERBS | n << KIND_BITS) : NO_DEVICE;
}

/* What is in the tree beside what the system has: PCI functions. */
static bool is_function(const char *what)
{
	return (behind("devices/pci", what) || behind("bus/pci/devices", what) || behind("class/pci_bus/", what)) && there(what - 1);
}

const char *in_tree(const char *path, char buf[PATH_MAX])
{
	if (path && tree[0] && behind(tree, path))
		look_at_tree();
	const char *what = path && tree[0] ? behind("/sys/", path) : NULL;
	if (!what)
		return path;
	if (!behind("class/infiniband", what) && !behind("class/misc/rdma_cm", what) && !(functions && is_function(what)))
		return path;
	look_at_tree();
	int n = snprintf(buf, PATH_MAX, "%s/%s", tree, what);
	return n < PATH_MAX ? buf : path;
}

const char *in_tree_at(int dir, const char *path, char buf[PATH_MAX])
{
	struct stat of, root;
	char whole[PATH_MAX];
	if (LIKELY(!path || !tree[0] || strncmp(path, "sys/", 4) != 0))
		return in_tree(path, buf);
	int n = snprintf(whole, sizeof whole, "/%s", path), e = errno;
	bool at_root = n < PATH_MAX && syscall(SYS_newfstatat, dir, dir == AT_FDCWD ? "." : "", &of, AT_EMPTY_PATH) == 0 &&
		       syscall(SYS_newfstatat, AT_FDCWD, "/", &root, 0) == 0 && of.st_dev == root.st_dev && of.st_ino == root.st_ino;
	errno = e;
	return at_root && in_tree(whole, buf) == buf ? buf : path;
}

const char *behind_tree(const char *path)
{
	const char *what = real_tree && strlen(real_tree) >= sizeof "/sys" - 1 ? behind(real_tree, path) : NULL;
	return what && what[0] == '/' ? what : NULL;
}

int open_text(const char *path, int flags)
{
	enum { TEXT = 256 };
	static const char device[] = "class/infiniband/";
	char text[TEXT];
	if (!(template || engine.open) || !path || (flags & (O_ACCMODE | O_PATH | O_DIRECTORY)) != O_RDONLY)
		return NO_TEXT;
	const char *name = behind("/sys/", path);
	if (!name && (name = behind(tree, path)) && *name++ != '/')
		return NO_TEXT;
	if (!name || !behind(device, name))
		return NO_TEXT;
	int e = engine_load();
	if (e != 0) {
		errno = e;
		return -1;
	}
	e = errno;
	long n = engine.file(name, text, sizeof text);
	if (n == -ENOENT) {
		errno = e;
		return NO_TEXT;
	}
	int fd = n < 0 ? (errno = (int)-n, -1) : memfd_create("softrnic-text", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd >= 0 && (NEXT(write)(fd, text, (size_t)n) != n || lseek(fd, 0, SEEK_SET) != 0)) {
		NEXT(close)(fd);
		errno = EIO;
		return -1;
	}
	return fd;
}
