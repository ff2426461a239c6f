/* ibv_create_cq_ex. The queue is one of the device like any other, so ibv_poll_cq, events, resizing and destroying are what
   they are. A completion is taken when the program asks for it, one at a time, from the ring (ring.c) if it is there: those that the
   program leaves stay where a change to RESET, a resize and ibv_poll_cq find them. */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cq_ex { /* made by malloc, and freed by the provider */
	struct v_cq_ex v;
	pthread_mutex_t polls; /* from start_poll to end_poll, unless one thread polls alone */
	bool single;
	struct v_wc wc;
};

static inline struct cq_ex *of(struct v_cq_ex *v) { return (struct cq_ex *)v; }

/* The next completion: 0, ENOENT or another errno. */
static int take(struct cq_ex *c)
{
	struct {
		uint32_t count, reserved;
		struct v_wc wc;
	} answer = {0};
	struct {
		struct v_header header;
		uint32_t cq, most;
	} command = {V_HEADER(POLL_CQ, command, answer), c->v.handle, 1};
	int r = v_command(c->v.context, &command, sizeof command);
	if (r != 0 || answer.count == 0)
		return r != 0 ? r : ENOENT;
	c->wc = answer.wc;
	c->v.status = (int)answer.wc.status;
	c->v.wr_id = answer.wc.wr_id;
	return 0;
}

static void unlock(struct cq_ex *c)
{
	if (!c->single)
		pthread_mutex_unlock(&c->polls);
}

static int start_poll(struct v_cq_ex *v, struct v_poll_cq_attr *attr)
{
	struct cq_ex *c = of(v);
	if (attr->comp_mask)
		return EINVAL;
	if (!c->single)
		pthread_mutex_lock(&c->polls);
	int r = take(c);
	if (r != 0)
		unlock(c);
	return r;
}

static int next_poll(struct v_cq_ex *v) { return take(of(v)); }
static void end_poll(struct v_cq_ex *v) { unlock(of(v)); }
static int read_opcode(struct v_cq_ex *v) { return (int)of(v)->wc.opcode; }
static uint32_t read_vendor_err(struct v_cq_ex *v) { return of(v)->wc.vendor_err; }
static uint32_t read_byte_len(struct v_cq_ex *v) { return of(v)->wc.byte_len; }
static uint32_t read_imm_data(struct v_cq_ex *v) { return of(v)->wc.imm; }
static uint32_t read_qp_num(struct v_cq_ex *v) { return of(v)->wc.qp_num; }
static uint32_t read_src_qp(struct v_cq_ex *v) { return of(v)->wc.src_qp; }
static unsigned read_wc_flags(struct v_cq_ex *v) { return of(v)->wc.wc_flags; }
static uint32_t read_slid(struct v_cq_ex *v) { return of(v)->wc.slid; }
static uint8_t read_sl(struct v_cq_ex *v) { return of(v)->wc.sl; }
static uint8_t read_dlid_path_bits(struct v_cq_ex *v) { return of(v)->wc.dlid_path_bits; }

/* As libibverbs does for a queue that a provider has made. */
static void begin(struct cq_ex *c, struct v_context *context, const struct v_cq_init_attr_ex *attr)
{
	c->v = (struct v_cq_ex){
		.context = context, .channel = attr->channel, .cq_context = attr->cq_context,
		.start_poll = start_poll, .next_poll = next_poll, .end_poll = end_poll, .read_opcode = read_opcode,
		.read_vendor_err = read_vendor_err, .read_byte_len = read_byte_len, .read_imm_data = read_imm_data,
		.read_qp_num = read_qp_num, .read_src_qp = read_src_qp, .read_wc_flags = read_wc_flags, .read_slid = read_slid,
		.read_sl = read_sl, .read_dlid_path_bits = read_dlid_path_bits,
	};
	pthread_mutex_init(&c->v.mutex, NULL);
	pthread_cond_init(&c->v.cond, NULL);
	pthread_mutex_init(&c->polls, NULL);
	c->single = (attr->comp_mask & V_CQ_FLAGS) && (attr->flags & V_CQ_SINGLE_THREADED);
}

struct v_cq_ex *v_create_cq_ex(struct v_context *context, struct v_cq_init_attr_ex *attr)
{
	struct cq_ex *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	struct {
		uint32_t handle, cqe;
	} answer = {0};
	struct {
		struct v_header header;
		uint64_t user_handle; /* what an event names */
		uint32_t cqe, comp_vector;
		int32_t comp_channel;
		uint32_t reserved;
		/* driver_data: the device says what it has not */
		uint64_t wc_flags;
		uint32_t flags, comp_mask, parent, reserved2;
	} command = {
		.header = V_HEADER(CREATE_CQ, command, answer), .user_handle = (uintptr_t)c, .cqe = attr->cqe,
		.comp_vector = attr->comp_vector, .comp_channel = attr->channel ? attr->channel->fd : -1,
		.wc_flags = attr->wc_flags, .comp_mask = attr->comp_mask,
	};
	if (attr->comp_mask & V_CQ_FLAGS)
		command.flags = attr->flags;
	if ((attr->comp_mask & V_CQ_PD) && attr->parent_domain)
		command.parent = attr->parent_domain->handle;
	begin(c, context, attr); /* before an event of it may come */
	int r = v_command(context, &command, sizeof command);
	if (r != 0) {
		free(c);
		errno = r;
		return NULL;
	}
	c->v.handle = answer.handle;
	c->v.cqe = (int)answer.cqe;
	if (attr->channel) {
		pthread_mutex_lock(&context->mutex);
		attr->channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}
	return &c->v;
}
