/* ibv_create_cq_ex. The queue is one of the device like any other, so ibv_poll_cq, events, resizing and destroying are what
   they are. Completions are taken from the ring (ring.c) if they are there: one, and several if the program asks for another. Those that
   it leaves go back, to where a change to RESET, a resize and ibv_poll_cq find them. */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cq_ex { /* made by malloc, and freed by the provider */
	struct v_cq_ex v;
	pthread_mutex_t polls; /* from start_poll to end_poll, unless one thread polls alone */
	bool single;
	bool found;     /* the last poll has */
	unsigned n, at; /* wcs that were taken, and the one that the program reads */
	uint64_t taken; /* what ring_take has said of them */
	struct v_wc wcs[RING_SPARE];
};

static inline struct cq_ex *of(struct v_cq_ex *v) { return (struct cq_ex *)v; }

/* The next completion, from the engine: 0, ENOENT or another errno. */
static int ask(struct cq_ex *c)
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
	c->wcs[0] = answer.wc;
	return 0;
}

/* The next completion, and up to most from the ring. If that has none, next_poll ends there, as ibv_poll_cq does behind what it
   has found; but the poll that comes then asks the engine, which looks for more. */
static int take(struct cq_ex *c, uint32_t most)
{
	if (++c->at >= c->n) {
		int open = v_ring(c->v.context), n = open < 0 ? RING_ASK : ring_take(open, c->v.handle, most, c->wcs, NULL, &c->taken);
		bool found = c->found;
		c->found = false;
		c->n = c->at = 0;
		if (n == 0 && most > 1 && found)
			return ENOENT;
		int r = n > 0 ? 0 : ask(c);
		if (r != 0)
			return r;
		c->n = n > 0 ? (unsigned)n : 1;
		c->found = true;
	}
	c->v.status = (int)c->wcs[c->at].status;
	c->v.wr_id = c->wcs[c->at].wr_id;
	return 0;
}

/* Gives back what the program has left. If more was taken meanwhile, by another thread or the engine, the next start_poll has it. */
static void leave(struct cq_ex *c)
{
	unsigned left = c->n - c->at - 1;
	int open = v_ring(c->v.context);
	if (open >= 0 && ring_back(open, c->v.handle, left, c->taken))
		c->n -= left;
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
	int r = take(c, 1);
	if (r != 0)
		unlock(c);
	return r;
}

static int next_poll(struct v_cq_ex *v) { return take(of(v), RING_SPARE); }
static void end_poll(struct v_cq_ex *v)
{
	struct cq_ex *c = of(v);
	if (c->at + 1 < c->n)
		leave(c);
	unlock(c);
}
static inline struct v_wc *wc(struct v_cq_ex *v) { return &of(v)->wcs[of(v)->at]; }
static int read_opcode(struct v_cq_ex *v) { return (int)wc(v)->opcode; }
static uint32_t read_vendor_err(struct v_cq_ex *v) { return wc(v)->vendor_err; }
static uint32_t read_byte_len(struct v_cq_ex *v) { return wc(v)->byte_len; }
static uint32_t read_imm_data(struct v_cq_ex *v) { return wc(v)->imm; }
static uint32_t read_qp_num(struct v_cq_ex *v) { return wc(v)->qp_num; }
static uint32_t read_src_qp(struct v_cq_ex *v) { return wc(v)->src_qp; }
static unsigned read_wc_flags(struct v_cq_ex *v) { return wc(v)->wc_flags; }
static uint32_t read_slid(struct v_cq_ex *v) { return wc(v)->slid; }
static uint8_t read_sl(struct v_cq_ex *v) { return wc(v)->sl; }
static uint8_t read_dlid_path_bits(struct v_cq_ex *v) { return wc(v)->dlid_path_bits; }

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
