/* ibv_create_qp_ex, and which queue pairs it has made: ibv_qp_to_qp_ex of libibverbs looks into a struct of the provider's
   that those of this device do not have. */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>

enum { PLACES = 256 };
static struct qp_ex *table[PLACES]; /* under fd_lock, which a fork waits for, too */
_Atomic unsigned v_qps;

static struct qp_ex **place(int open, uint32_t handle) { return &table[(handle + (uint32_t)open * 37) % PLACES]; }

static void add(struct qp_ex *x)
{
	fd_lock();
	struct qp_ex **at = place(x->open, x->v.base.handle);
	x->next = *at;
	*at = x;
	v_qps++;
	fd_unlock();
}

/* Handles are not used again soon, but objects of programs that have closed the device stay in the table: so the address counts, too. */
static struct qp_ex *find(int open, const struct v_qp *qp)
{
	fd_lock();
	struct qp_ex *x = *place(open, qp->handle);
	while (x && (x->open != open || &x->v.base != qp))
		x = x->next;
	fd_unlock();
	return x;
}

/* Before the provider frees it. */
void v_qp_gone(int open, uint32_t handle)
{
	fd_lock();
	struct qp_ex **at = place(open, handle), *x = NULL;
	while (*at && ((*at)->open != open || (*at)->v.base.handle != handle))
		at = &(*at)->next;
	if ((x = *at)) {
		*at = x->next;
		v_qps--;
	}
	fd_unlock();
	if (x)
		free(x->post);
}

EXPORT struct v_qp_ex *ibv_qp_to_qp_ex(struct v_qp *qp)
{
	struct open *o = fd_device(qp->context->cmd_fd);
	if (o && is_uverbs(o->kind)) {
		struct qp_ex *x = find(o->handle, qp);
		return x ? &x->v : NULL;
	}
	struct v_qp_ex *(*next_to_ex)(struct v_qp *) = (struct v_qp_ex * (*)(struct v_qp *)) v_next("ibv_qp_to_qp_ex", __builtin_return_address(0));
	return next_to_ex ? next_to_ex(qp) : NULL;
}

/* One allocation of what the builders fill, for as much as the queue pair takes. */
static bool begin_builders(struct qp_ex *x)
{
	size_t wqes = (size_t)x->max_wr * sizeof(struct v_wqe), sges = (size_t)x->max_wr * x->max_sge * sizeof(struct v_sge);
	if (!(x->post = malloc(sizeof(struct v_post) + wqes + sges + (size_t)x->max_wr * x->max_inline)))
		return false;
	x->sge = (struct v_sge *)((char *)(x->post + 1) + wqes);
	x->inlined = (char *)x->sge + sges;
	pthread_mutex_init(&x->building, NULL);
	v_set_builders(&x->v);
	return true;
}

static int destroy(const struct v_context *context, uint32_t handle)
{
	uint32_t answer;
	struct {
		struct v_header header;
		uint32_t qp, reserved;
	} command = {V_HEADER(DESTROY_QP, command, answer), handle, 0};
	return v_command(context, &command, sizeof command);
}

static int create(struct qp_ex *x, const struct v_context *context, struct v_qp_init_attr_ex *attr)
{
	struct {
		uint32_t handle, qp_num, max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data, reserved;
	} answer = {0};
	struct {
		struct v_header header;
		uint64_t user_handle; /* what an event names */
		uint32_t pd, send_cq, recv_cq, srq, max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
		uint8_t sq_sig_all, qp_type, is_srq, reserved;
		/* driver_data: the device says what it has not */
		uint64_t send_ops;
		uint32_t comp_mask, create_flags;
	} command = {
		V_HEADER(CREATE_QP, command, answer), (uintptr_t)x,
		0, attr->send_cq ? attr->send_cq->handle : 0, attr->recv_cq ? attr->recv_cq->handle : 0, attr->srq ? attr->srq->handle : 0,
		attr->cap.max_send_wr, attr->cap.max_recv_wr, attr->cap.max_send_sge, attr->cap.max_recv_sge, attr->cap.max_inline_data,
		attr->sq_sig_all != 0, (uint8_t)attr->qp_type, attr->srq != NULL, 0, 0, attr->comp_mask, 0,
	};
	if ((attr->comp_mask & V_QP_PD) && attr->pd)
		command.pd = attr->pd->handle;
	if (attr->comp_mask & V_QP_SEND_OPS)
		command.send_ops = attr->send_ops_flags;
	if (attr->comp_mask & V_QP_CREATE_FLAGS)
		command.create_flags = attr->create_flags;
	int r = v_command(context, &command, sizeof command);
	if (r != 0)
		return r;
	x->v.base.handle = answer.handle;
	x->v.base.qp_num = answer.qp_num;
	attr->cap.max_send_wr = x->max_wr = answer.max_send_wr;
	attr->cap.max_recv_wr = answer.max_recv_wr;
	attr->cap.max_send_sge = x->max_sge = answer.max_send_sge;
	attr->cap.max_recv_sge = answer.max_recv_sge;
	attr->cap.max_inline_data = x->max_inline = answer.max_inline_data;
	return 0;
}

struct v_qp *v_create_qp_ex(struct v_context *context, struct v_qp_init_attr_ex *attr)
{
	struct open *o = fd_device(context->cmd_fd);
	struct qp_ex *x = o ? calloc(1, sizeof *x) : (errno = EBADF, NULL);
	if (!x)
		return NULL;
	x->open = o->handle;
	x->v.base = (struct v_qp){
		.context = context, .qp_context = attr->qp_context, .pd = attr->comp_mask & V_QP_PD ? attr->pd : NULL,
		.send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq, .qp_type = attr->qp_type,
	};
	pthread_mutex_init(&x->v.base.mutex, NULL);
	pthread_cond_init(&x->v.base.cond, NULL);
	int r = create(x, context, attr);
	if (r == 0 && (attr->comp_mask & V_QP_SEND_OPS)) {
		if (begin_builders(x)) {
			add(x);
		} else {
			destroy(context, x->v.base.handle);
			r = ENOMEM;
		}
	}
	if (r != 0) {
		free(x);
		errno = r;
		return NULL;
	}
	return &x->v.base;
}
