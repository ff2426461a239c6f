/* Thread domains and parent domains. A parent domain is a protection domain of the device's whose objects are those of another: so
   what is made in it, and ibv_dealloc_pd, are as ever. The device has a lock for what a thread domain promises to need none for,
   and none of its queues is in the program's memory: there is nothing to leave out, nor to allocate. */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>

static struct v_td *alloc_td(struct v_context *context, struct v_td_init_attr *attr)
{
	if (attr->comp_mask != 0) {
		errno = EINVAL;
		return NULL;
	}
	struct v_td *td = malloc(sizeof *td);
	if (td)
		td->context = context;
	return td;
}

static int dealloc_td(struct v_td *td)
{
	free(td);
	return 0;
}

static struct v_pd *alloc_parent_domain(struct v_context *context, struct v_parent_domain_init_attr *attr)
{
	if (!attr->pd) {
		errno = EINVAL;
		return NULL;
	}
	struct v_pd *pd = malloc(sizeof *pd); /* freed by the provider */
	if (!pd)
		return NULL;
	uint32_t answer = 0;
	struct {
		struct v_header header;
		/* driver_data: the device says what it has not */
		uint32_t parent, comp_mask;
	} command = {V_HEADER(ALLOC_PD, command, answer), attr->pd->handle, attr->comp_mask};
	int r = v_command(context, &command, sizeof command);
	if (r != 0) {
		free(pd);
		errno = r;
		return NULL;
	}
	*pd = (struct v_pd){context, answer};
	return pd;
}

void v_domains(struct v_extended *e)
{
	e->alloc_td = alloc_td;
	e->dealloc_td = dealloc_td;
	e->alloc_parent_domain = alloc_parent_domain;
}
