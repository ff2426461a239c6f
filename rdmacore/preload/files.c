/* The devices and their sysfs files as files with a path. */
#include "preload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct stat");

/* The sysfs file dev of each (rdmacore/internal/sysfs). */
enum { UVERBS_MAJOR = 231, UVERBS_MINOR = 192, CM_MAJOR = 10, CM_MINOR = 58 };

static void device_stat(enum kind kind, struct stat *st)
{
	memset(st, 0, sizeof *st);
	st->st_mode = S_IFCHR | 0666;
	st->st_nlink = 1;
	st->st_blksize = 4096;
	st->st_rdev = is_uverbs(kind) ? makedev(UVERBS_MAJOR, UVERBS_MINOR + number_of(kind)) : makedev(CM_MAJOR, CM_MINOR);
}

static int device_statx(enum kind kind, struct statx *st)
{
	memset(st, 0, sizeof *st);
	st->stx_mask = STATX_BASIC_STATS;
	st->stx_mode = S_IFCHR | 0666;
	st->stx_nlink = 1;
	st->stx_blksize = 4096;
	st->stx_rdev_major = is_uverbs(kind) ? UVERBS_MAJOR : CM_MAJOR;
	st->stx_rdev_minor = is_uverbs(kind) ? UVERBS_MINOR + number_of(kind) : CM_MINOR;
	return 0;
}

/* What the family of open has in common: MODE is the argument that is there for some flags only. */
#define MODE                                                                                                               \
	mode_t mode = 0;                                                                                                   \
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                                       \
		va_list a;                                                                                                 \
		va_start(a, flags);                                                                                        \
		mode = va_arg(a, mode_t);                                                                                  \
		va_end(a);                                                                                                 \
	}
#define OPENED(dir, call)                                                                                                      \
	enum kind kind = device_of(path);                                                                                  \
	if (kind)                                                                                                          \
		return device_open(kind, flags);                                                                           \
	int text = open_text(path, flags);                                                                                 \
	if (text != NO_TEXT)                                                                                               \
		return text;                                                                                               \
	char buf[PATH_MAX];                                                                                                \
	path = in_tree_at(dir, path, buf);                                                                                 \
	return call
#define OPEN(name)                                                                                                         \
	EXPORT int name(const char *path, int flags, ...)                                                                  \
	{                                                                                                                  \
		MODE OPENED(AT_FDCWD, NEXT(name)(path, flags, mode));                                                               \
	}
#define OPENAT(name)                                                                                                       \
	EXPORT int name(int dir, const char *path, int flags, ...)                                                         \
	{                                                                                                                  \
		MODE OPENED(dir, NEXT(name)(dir, path, flags, mode));                                                          \
	}
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
EXPORT int __open_2(const char *path, int flags) { OPENED(AT_FDCWD, NEXT(__open_2)(path, flags)); }
EXPORT int __open64_2(const char *path, int flags) { OPENED(AT_FDCWD, NEXT(__open64_2)(path, flags)); }
EXPORT int __openat_2(int dir, const char *path, int flags) { OPENED(dir, NEXT(__openat_2)(dir, path, flags)); }
EXPORT int __openat64_2(int dir, const char *path, int flags) { OPENED(dir, NEXT(__openat64_2)(dir, path, flags)); }

/* The family of stat. What libc does not have under one name the system has under another. */
#define SYSTEM(dir, path, st, flags) ((int)syscall(SYS_newfstatat, dir, path, st, flags))
#define AT_PATH(call, dir, st, flags, has)                                                                                 \
	enum kind kind = device_of(path);                                                                                  \
	if (kind) {                                                                                                        \
		device_stat(kind, (struct stat *)st);                                                                      \
		return 0;                                                                                                  \
	}                                                                                                                  \
	char buf[PATH_MAX];                                                                                                \
	path = in_tree(path, buf);                                                                                         \
	return NEXT(has) ? call : SYSTEM(dir, path, st, flags)
#define STAT(name, type, flags)                                                                                            \
	EXPORT int name(const char *path, struct type *st) { AT_PATH(next.name(path, st), AT_FDCWD, st, flags, name); }
#define XSTAT(name, type, flags)                                                                                           \
	EXPORT int name(int version, const char *path, struct type *st)                                                    \
	{                                                                                                                  \
		AT_PATH(next.name(version, path, st), AT_FDCWD, st, flags, name);                                          \
	}
STAT(stat, stat, 0)
STAT(stat64, stat64, 0)
STAT(lstat, stat, AT_SYMLINK_NOFOLLOW)
STAT(lstat64, stat64, AT_SYMLINK_NOFOLLOW)
XSTAT(__xstat, stat, 0)
XSTAT(__xstat64, stat64, 0)
XSTAT(__lxstat, stat, AT_SYMLINK_NOFOLLOW)
XSTAT(__lxstat64, stat64, AT_SYMLINK_NOFOLLOW)

#define OF_FD(call, st, has)                                                                                               \
	struct open *o = fd_device(fd);                                                                                    \
	if (o) {                                                                                                           \
		device_stat(o->kind, (struct stat *)st);                                                                   \
		return 0;                                                                                                  \
	}                                                                                                                  \
	return NEXT(has) ? call : SYSTEM(fd, "", st, AT_EMPTY_PATH)
EXPORT int fstat(int fd, struct stat *st) { OF_FD(next.fstat(fd, st), st, fstat); }
EXPORT int fstat64(int fd, struct stat64 *st) { OF_FD(next.fstat64(fd, st), st, fstat64); }
EXPORT int __fxstat(int version, int fd, struct stat *st) { OF_FD(next.__fxstat(version, fd, st), st, __fxstat); }
EXPORT int __fxstat64(int version, int fd, struct stat64 *st) { OF_FD(next.__fxstat64(version, fd, st), st, __fxstat64); }

/* With AT_EMPTY_PATH the descriptor is what is meant. */
static enum kind device_at(int fd, const char *path, int flags)
{
	struct open *o = (flags & AT_EMPTY_PATH) && (!path || !path[0]) ? fd_device(fd) : NULL;
	return o ? o->kind : device_of(path);
}

#define FSTATAT(name, type)                                                                                                \
	EXPORT int name(int dir, const char *path, struct type *st, int flags)                                             \
	{                                                                                                                  \
		enum kind kind = device_at(dir, path, flags);                                                              \
		if (kind) {                                                                                                \
			device_stat(kind, (struct stat *)st);                                                              \
			return 0;                                                                                          \
		}                                                                                                          \
		char buf[PATH_MAX];                                                                                        \
		path = in_tree_at(dir, path, buf);                                                                         \
		return NEXT(name) ? next.name(dir, path, st, flags) : SYSTEM(dir, path, st, flags);                        \
	}
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

EXPORT int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
	enum kind kind = device_at(dir, path, flags);
	if (kind)
		return device_statx(kind, st);
	char buf[PATH_MAX];
	return NEXT(statx)(dir, in_tree_at(dir, path, buf), flags, mask, st);
}

EXPORT int access(const char *path, int mode)
{
	char buf[PATH_MAX];
	return device_of(path) ? 0 : NEXT(access)(in_tree(path, buf), mode);
}

EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	char buf[PATH_MAX];
	return device_of(path) ? 0 : NEXT(faccessat)(dir, in_tree_at(dir, path, buf), mode, flags);
}

EXPORT DIR *opendir(const char *path)
{
	char buf[PATH_MAX];
	return NEXT(opendir)(in_tree(path, buf));
}

#define SCANDIR(name, type)                                                                                                \
	EXPORT int name(const char *restrict path, struct type ***restrict list, int (*select)(const struct type *),       \
			int (*order)(const struct type **, const struct type **))                                          \
	{                                                                                                                  \
		char buf[PATH_MAX];                                                                                        \
		return NEXT(name)(in_tree(path, buf), list, select, order);                                                \
	}
SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
	char buf[PATH_MAX];
	int text = mode[0] == 'r' && !strchr(mode, '+') ? open_text(path, strchr(mode, 'e') ? O_CLOEXEC : O_RDONLY) : NO_TEXT;
	if (text != NO_TEXT)
		return text < 0 ? NULL : fdopen(text, mode);
	return NEXT(fopen)(in_tree(path, buf), mode);
}

EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	char buf[PATH_MAX];
	int text = mode[0] == 'r' && !strchr(mode, '+') ? open_text(path, strchr(mode, 'e') ? O_CLOEXEC : O_RDONLY) : NO_TEXT;
	if (text != NO_TEXT)
		return text < 0 ? NULL : fdopen(text, mode);
	return NEXT(fopen64)(in_tree(path, buf), mode);
}

#define READLINK(name, ...)                                                                                                \
	{                                                                                                                  \
		char buf[PATH_MAX];                                                                                        \
		path = in_tree_at(dir, path, buf);                                                                         \
		return NEXT(name)(__VA_ARGS__);                                                                            \
	}
EXPORT ssize_t readlink(const char *restrict path, char *restrict to, size_t n)
{
	int dir = AT_FDCWD;
	READLINK(readlink, path, to, n)
}
EXPORT ssize_t readlinkat(int dir, const char *restrict path, char *restrict to, size_t n) READLINK(readlinkat, dir, path, to, n)
EXPORT ssize_t __readlink_chk(const char *restrict path, char *restrict to, size_t n, size_t room)
{
	int dir = AT_FDCWD;
	READLINK(__readlink_chk, path, to, n, room)
}
EXPORT ssize_t __readlinkat_chk(int dir, const char *restrict path, char *restrict to, size_t n, size_t room)
	READLINK(__readlinkat_chk, dir, path, to, n, room)

/* A path of /sys has a real path there: programs look for the PCI function in it, and go on from it. */
static char *real(const char *restrict path, char *restrict to)
{
	char buf[PATH_MAX], *found;
	if (device_of(path))
		return to ? strcpy(to, path) : strdup(path);
	const char *led = in_tree(path, buf), *behind;
	if (led == path || !(found = NEXT(realpath)(led, to)))
		return led == path ? NEXT(realpath)(path, to) : NULL;
	if ((behind = behind_tree(found))) {
		memmove(found + sizeof "/sys" - 1, behind, strlen(behind) + 1);
		memcpy(found, "/sys", sizeof "/sys" - 1);
	}
	return found;
}

EXPORT char *realpath(const char *restrict path, char *restrict to) { return real(path, to); }
EXPORT char *canonicalize_file_name(const char *path) { return real(path, NULL); }
EXPORT char *__realpath_chk(const char *restrict path, char *restrict to, size_t room)
{
	if (room < PATH_MAX)
		return NEXT(__realpath_chk)(path, to, room); /* it ends the program */
	return real(path, to);
}
