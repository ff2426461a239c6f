#include "preload.h"

#include <stdlib.h>
#include <string.h>

static char tree[PATH_MAX]; /* "": none */

/* The environment is read once: a program may clear it. */
void path_setup(void)
{
	const char *p = getenv("SYSFS_PATH");
	if (p && strlen(p) < sizeof tree && !tree[0])
		memcpy(tree, p, strlen(p) + 1);
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
	if (!path || !tree[0] || strncmp(path, class, sizeof class - 1) != 0)
		return path;
	const char *what = path + sizeof class - 1;
	if (strncmp(what, infiniband, sizeof infiniband - 1) != 0 && strncmp(what, cm, sizeof cm - 1) != 0)
		return path;
	int n = snprintf(buf, PATH_MAX, "%s%s", tree, path + sizeof "/sys" - 1);
	return n < PATH_MAX ? buf : path;
}
