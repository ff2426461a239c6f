#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

static char tree[PATH_MAX]; /* "": none */
static bool template;       /* the tree is of a device without an address: the engine knows the texts */

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
		hold_tree();
	}
}

static const char *behind(const char *prefix, const char *path)
{
	size_t n = strlen(prefix);
	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
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
	static const char dir[] = "/dev/infiniband/";
	if (!path || strncmp(path, dir, sizeof dir - 1) != 0)
		return NO_DEVICE;
	path += sizeof dir - 1;
	if (strcmp(path, "uverbs0") == 0)
		return UVERBS;
	return strcmp(path, "rdma_cm") == 0 ? RDMA_CM : NO_DEVICE;
}

const char *in_tree(const char *path, char buf[PATH_MAX])
{
	static const char class[] = "/sys/class/", infiniband[] = "infiniband", cm[] = "misc/rdma_cm";
	if (path && tree[0] && behind(tree, path))
		look_at_tree();
	if (!path || !tree[0] || strncmp(path, class, sizeof class - 1) != 0)
		return path;
	const char *what = path + sizeof class - 1;
	if (strncmp(what, infiniband, sizeof infiniband - 1) != 0 && strncmp(what, cm, sizeof cm - 1) != 0)
		return path;
	look_at_tree();
	int n = snprintf(buf, PATH_MAX, "%s%s", tree, path + sizeof "/sys" - 1);
	return n < PATH_MAX ? buf : path;
}

int open_text(const char *path, int flags)
{
	enum { TEXT = 256 };
	static const char device[] = "class/infiniband/";
	char text[TEXT];
	if (!template || !path || (flags & (O_ACCMODE | O_PATH | O_DIRECTORY)) != O_RDONLY)
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
