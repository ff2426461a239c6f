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

/* A libibverbs of a wheel has a name like libibverbs-1a2b3c4d.so.1. */
static int is_libibverbs(struct dl_phdr_info *i, size_t size, void *to)
{
	(void)size;
	const char *base = i->dlpi_name ? strrchr(i->dlpi_name, '/') : NULL;
	if (!base || strncmp(base, "/libibverbs", strlen("/libibverbs")) != 0)
		return 0;
	*(const char **)to = i->dlpi_name;
	return 1;
}

/* Behind us in the global scope; or in a library that only one that was opened by dlopen is linked with. */
void *v_next(const char *name)
{
	void *f = v_dlsym(RTLD_NEXT, name), *lib;
	if (f)
		return f;
	const char *path = "libibverbs.so.1";
	if (!(lib = dlopen(path, RTLD_LAZY | RTLD_NOLOAD))) {
		path = NULL;
		dl_iterate_phdr(is_libibverbs, &path);
		lib = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	}
	if (!lib)
		return NULL;
	f = v_dlsym(lib, name);
	dlclose(lib); /* there is who has it open */
	return f;
}

/* Of our device alone: a program may have hardware, too. */
static void extend(struct v_context *context)
{
	struct open *o = fd_device(context->cmd_fd);
	if (!o || o->kind != UVERBS || context->abi_compat != V_EXTENDED)
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
	static struct v_context *(*_Atomic next_open)(void *);
	if (!next_open)
		next_open = (struct v_context * (*)(void *)) v_next("ibv_open_device");
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
