/* Memory windows. The commands that make them are the kernel's. A bind is a request, for which the kernel's ABI has an
   operation and no room: driver.go of rdmacore/internal/uabi says how we write it. libibverbs cannot, so lists with a bind in
   them go through here, in a context that has had a window. */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>

static int (*_Atomic low_post_send)(struct v_qp *, struct v_send_wr *, struct v_send_wr **);

void v_bind(struct v_wqe *w, const struct v_mw *mw, uint32_t rkey, const struct v_mw_bind_info *info, int how)
{
	w->opcode = V_BIND_MW;
	w->imm = rkey;
	w->remote[0] = info->addr;
	w->remote[1] = info->length;
	w->remote[2] = (uint64_t)info->access << 32 | mw->handle;
	w->remote[3] = (uint64_t)how << 32 | (info->mr ? info->mr->lkey : 0);
}

static int post_bind(const struct v_qp *qp, const struct v_wqe *w)
{
	uint32_t answer = 0;
	struct {
		struct v_post post;
		struct v_wqe wqe;
	} command = {{V_HEADER(POST_SEND, command, answer), qp->handle, 1, 0, sizeof *w}, *w};
	return v_command(qp->context, &command, sizeof command);
}

/* ibv_post_send: the runs between the binds as they were. */
static int post_send(struct v_qp *qp, struct v_send_wr *wr, struct v_send_wr **bad)
{
	while (wr) {
		struct v_send_wr *to = wr, *rest;
		int r;
		if (wr->opcode == V_BIND_MW) {
			struct v_wqe w = {.wr_id = wr->wr_id, .flags = wr->flags};
			v_bind(&w, wr->bind.mw, wr->bind.rkey, &wr->bind.info, BY_REQUEST);
			rest = wr->next;
			if ((r = post_bind(qp, &w)) != 0)
				*bad = wr;
		} else {
			while (to->next && to->next->opcode != V_BIND_MW)
				to = to->next;
			rest = to->next;
			to->next = NULL;
			r = low_post_send(qp, wr, bad);
			to->next = rest;
		}
		if (r != 0)
			return r;
		wr = rest;
	}
	return 0;
}

static struct v_mw *alloc_mw(struct v_pd *pd, int type)
{
	struct v_mw *mw = calloc(1, sizeof *mw);
	if (!mw)
		return NULL;
	struct {
		uint32_t handle, rkey;
	} answer = {0};
	struct {
		struct v_header header;
		uint32_t pd;
		uint8_t type, reserved[3];
	} command = {V_HEADER(ALLOC_MW, command, answer), pd->handle, type < 0 || type > UINT8_MAX ? 0 : (uint8_t)type, {0}};
	int r = v_command(pd->context, &command, sizeof command);
	if (r != 0) {
		free(mw);
		errno = r;
		return NULL;
	}
	*mw = (struct v_mw){pd->context, pd, answer.rkey, answer.handle, type};
	pd->context->ops.post_send = post_send;
	return mw;
}

static int dealloc_mw(struct v_mw *mw)
{
	struct {
		uint32_t command;
		uint16_t in_words, out_words;
		uint32_t mw;
	} command = {DEALLOC_MW, sizeof command / 4, 0, mw->handle};
	int r = v_command(mw->context, &command, sizeof command);
	if (r == 0)
		free(mw);
	return r;
}

/* A window of type 1 gets a new key with each bind, of which the program learns here. */
static int bind_mw(struct v_qp *qp, struct v_mw *mw, struct v_mw_bind *bind)
{
	struct v_wqe w = {.wr_id = bind->wr_id, .flags = bind->send_flags};
	uint32_t rkey = (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
	v_bind(&w, mw, rkey, &bind->info, BY_VERB);
	int r = post_bind(qp, &w);
	if (r == 0)
		mw->rkey = rkey;
	return r;
}

/* What is below is one function in a process, but for programs with two libibverbs. */
void v_windows(struct v_context *context)
{
	int (*expected)(struct v_qp *, struct v_send_wr *, struct v_send_wr **) = NULL;
	if (!atomic_compare_exchange_strong(&low_post_send, &expected, context->ops.post_send) && expected != context->ops.post_send)
		return;
	context->ops.alloc_mw = alloc_mw;
	context->ops.bind_mw = bind_mw;
	context->ops.dealloc_mw = dealloc_mw;
}
