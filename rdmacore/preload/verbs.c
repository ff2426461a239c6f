/* The extended verbs: completion queues and queue pairs with functions of their own, windows, parent domains. The provider that
   libibverbs drives the device with has none of them. What libibverbs publishes is enough to add them: programs call most verbs
   through pointers in the context, so those are set when a device is opened, and each object is one as a provider would make it,
   by a command of the device, in memory that the provider frees. Nothing else of a program changes. */
#include "verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

int v_command(const struct v_context *context, const void *command, size_t n)
{
	int e = errno, r = 0;
	if (write(context->cmd_fd, command, n) != (ssize_t)n)
		r = errno;
	errno = e;
	return r;
}

/* As write does, for what it knows to be a poll or a post. */
int v_ring(const struct v_context *context)
{
	struct open *o = fd_open(context->cmd_fd);
	return o && is_uverbs(o->kind) && !o->stale ? o->handle : -1;
}

/* Where a libibverbs of a wheel is: its name is like libibverbs-1a2b3c4d.so.1. */
static int is_libibverbs(struct dl_phdr_info *i, size_t size, void *to)
{
	(void)size;
	const char *base = i->dlpi_name ? strrchr(i->dlpi_name, '/') : NULL;
	if (!base || strncmp(base, "/libibverbs", strlen("/libibverbs")) != 0)
		return 0;
	*(const char **)to = i->dlpi_name;
	return 1;
}

#pragma weak dladdr1 /* of glibc: see engine.c */

/* The libibverbs that who calls was linked with, or NULL. */
static const char *needed_by(const void *caller)
{
	Dl_info info;
	struct link_map *map = NULL;
	if (!caller || !dladdr1 || !dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return NULL;
	const char *names = NULL;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			names = (const char *)d->d_un.d_ptr;
	for (const ElfW(Dyn) *d = map->l_ld; names && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && strncmp(names + d->d_un.d_val, "libibverbs", strlen("libibverbs")) == 0)
			return names + d->d_un.d_val;
	return NULL;
}

static void *of(const char *path, const char *name)
{
	void *lib = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL, *f = lib ? v_dlsym(lib, name) : NULL;
	if (lib)
		dlclose(lib); /* there is who has it open */
	return f;
}

void *v_next(const char *name, const void *caller)
{
	void *f = of(needed_by(caller), name);
	if (!f)
		f = v_dlsym(RTLD_NEXT, name);
	if (!f)
		f = of("libibverbs.so.1", name);
	if (!f) {
		const char *path = NULL;
		dl_iterate_phdr(is_libibverbs, &path);
		f = of(path, name);
	}
	return f;
}

bool v_ours(const struct v_context *context)
{
	struct open *o = fd_device(context->cmd_fd);
	return o && is_uverbs(o->kind);
}

static void extend(struct v_context *context)
{
	if (!v_ours(context) || context->abi_compat != V_EXTENDED)
		return;
	struct v_extended *e = (struct v_extended *)((char *)context - offsetof(struct v_extended, context));
	if (e->sz < sizeof *e)
		return;
	e->create_cq_ex = v_create_cq_ex;
	e->create_qp_ex = v_create_qp_ex;
	v_domains(e);
	v_windows(context);
}

EXPORT struct v_context *ibv_open_device(void *device)
{
	struct v_context *(*next_open)(void *) = (struct v_context * (*)(void *)) v_next("ibv_open_device", __builtin_return_address(0));
	if (!next_open) {
		errno = ENOSYS;
		return NULL;
	}
	struct v_context *context = next_open(device);
	int e = errno;
	if (context)
		extend(context);
	errno = e;
	return context;
}
