/* As much of libibverbs.so.1 as verbs.c needs: a device that is opened, and a provider's post_send, which counts. */
#include "../verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* What the test looks at, and sets. */
EXPORT struct fake {
	const char *path;    /* what is opened; NULL: the device */
	size_t less;         /* how much less of struct verbs_context there is */
	bool old;            /* there is none */
	unsigned lists, wrs; /* posted */
	int fails;           /* the errno of the next post_send */
	void *kept, *shared; /* the last memory that a child does not have, and that it has again */
	int refuses;         /* how many of the next of these are refused */
} fake;

static int post_send(struct v_qp *qp, struct v_send_wr *wr, struct v_send_wr **bad)
{
	(void)qp;
	if (fake.fails) {
		*bad = wr;
		return fake.fails;
	}
	fake.lists++;
	for (; wr; wr = wr->next)
		fake.wrs++;
	return 0;
}

enum { FRONT = 256 }; /* of newer releases */

EXPORT struct v_context *ibv_open_device(void *device)
{
	(void)device;
	int fd = open(fake.path ? fake.path : "/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	char *p = fd < 0 ? NULL : calloc(1, FRONT + sizeof(struct v_extended));
	if (!p)
		return NULL;
	struct v_extended *e = (struct v_extended *)(p + FRONT);
	e->sz = FRONT + sizeof *e - fake.less;
	e->context.abi_compat = fake.old ? NULL : V_EXTENDED;
	e->context.cmd_fd = fd;
	e->context.ops.post_send = post_send;
	pthread_mutex_init(&e->context.mutex, NULL);
	return &e->context;
}

EXPORT void *fake_next(const char *name)
{
	void *volatile f = dlsym(RTLD_NEXT, name); /* no jump: dlsym looks who calls */
	return f;
}

EXPORT void fake_close(struct v_context *context)
{
	close(context->cmd_fd);
	free((char *)context - offsetof(struct v_extended, context) - FRONT);
}

EXPORT struct v_qp_ex *ibv_qp_to_qp_ex(struct v_qp *qp) { return (struct v_qp_ex *)((char *)qp + 1); }

/* Of a device that is not ours. */
EXPORT int ibv_rereg_mr(struct v_mr *mr, int flags, struct v_pd *pd, void *addr, size_t length, int access)
{
	(void)mr, (void)pd, (void)addr, (void)length, (void)access;
	return 1000 + flags;
}

static int range(void **to, void *addr)
{
	if (fake.refuses > 0 && fake.refuses-- > 0)
		return ENOMEM;
	*to = addr;
	return 0;
}
EXPORT int ibv_dontfork_range(void *addr, size_t length) { return length ? range(&fake.kept, addr) : EINVAL; }
EXPORT int ibv_dofork_range(void *addr, size_t length) { return length ? range(&fake.shared, addr) : EINVAL; }
