/* Tests of the extended verbs, on the engine of engine.c and the libibverbs of ibverbs.c. */
#include "../verbs.h"
#include "check.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern struct fake {
	const char *path;
	size_t less;
	bool old;
	unsigned lists, wrs;
	int fails;
	void *kept, *shared;
	int refuses;
} fake;
void fake_close(struct v_context *context);
void *fake_next(const char *name);

#ifdef __SANITIZE_ADDRESS__ /* else it is the library's own */
#define IN_TABLE v_qps
#else
#define IN_TABLE 0
#endif

/* What engine.c has of the last command, and how many there were. */
enum { POLLS = 111, RINGS_AT = 112, POSTS = 115, LAST_AT = 125, NEXT_ERRNO = 126, HANDLE = 102 };
static struct v_context *context;
static const unsigned char *last;

static long tell(uint32_t cmd, uint32_t arg)
{
	uint32_t c[2] = {cmd, arg};
	return write(context->cmd_fd, c, sizeof c);
}
static long count(uint32_t cmd) { return tell(cmd, 0) - 1000; }

#define LAST(at, type) (*(const type *)(last + (at)))

static struct v_extended *extended(struct v_context *c) { return (struct v_extended *)((char *)c - offsetof(struct v_extended, context)); }

/* Only a context of the device, and of a libibverbs that has as much, is touched. */
static void test_open(void)
{
	struct v_context *c;
	CHECK((c = ibv_open_device(NULL)) && extended(c)->create_cq_ex && extended(c)->create_qp_ex && extended(c)->alloc_td && c->ops.alloc_mw);
	fake_close(c);
	fake.path = "/dev/null";
	CHECK((c = ibv_open_device(NULL)) && !extended(c)->create_cq_ex && !c->ops.alloc_mw);
	struct v_qp theirs = {.context = c};
	CHECK((char *)ibv_qp_to_qp_ex(&theirs) == (char *)&theirs + 1);
	struct v_mr their_mr = {.context = c};
	CHECK(ibv_rereg_mr(&their_mr, 99, NULL, NULL, 0, 0) == 1099);
	fake_close(c);
	fake.path = NULL;
	fake.less = 256 + 1;
	CHECK((c = ibv_open_device(NULL)) && !extended(c)->create_cq_ex && !c->ops.alloc_mw);
	fake_close(c);
	fake.less = 0;
	fake.old = true;
	CHECK((c = ibv_open_device(NULL)) && !extended(c)->create_cq_ex && !c->ops.alloc_mw);
	fake_close(c);
	fake.old = false;
	fake.path = "/dev/infiniband/nothing";
	errno = 0;
	CHECK(!ibv_open_device(NULL) && errno == ENOENT);
	fake.path = NULL;
}

static struct ring *ring_of(uint32_t queue)
{
	struct ring *rings = (struct ring *)tell(RINGS_AT, 0), *r;
	uint32_t open = (uint32_t)count(HANDLE);
	r = &rings[ring_place(open, queue)];
	r->taken = r->put = r->more = 0;
	r->key = (uint64_t)open << 32 | queue;
	return r;
}

static void put(struct ring *r, uint64_t id)
{
	struct v_wc w = {.wr_id = id, .status = (uint32_t)id % 5, .opcode = 128, .vendor_err = 3, .byte_len = 4, .imm = 5, .qp_num = 6, .src_qp = 7, .wc_flags = 2,
			 .slid = 8, .sl = 9, .dlid_path_bits = 10};
	memcpy(r->wcs[r->put % RING_WCS], &w, sizeof w);
	r->put++;
}

static void test_cq(void)
{
	struct v_channel channel = {.context = context, .fd = 77};
	struct v_pd parent = {.handle = 55};
	struct v_cq_init_attr_ex attr = {.cqe = 99, .cq_context = &attr, .channel = &channel, .wc_flags = 0x7f, .comp_mask = 2, .flags = 99, .parent_domain = &parent};
	struct v_cq_ex *cq = extended(context)->create_cq_ex(context, &attr);
	CHECK(cq && cq->context == context && cq->cq_context == &attr && cq->channel == &channel && channel.refcnt == 1 && cq->cqe == 7);
	CHECK(LAST(0, uint32_t) == CREATE_CQ && LAST(4, uint16_t) == 16 && LAST(16, uint64_t) == (uintptr_t)cq && LAST(24, uint32_t) == 99);
	CHECK(LAST(32, int32_t) == 77 && LAST(40, uint64_t) == 0x7f && LAST(48, uint32_t) == 0 /* the mask has no flags */ && LAST(52, uint32_t) == 2 && LAST(56, uint32_t) == 55);
	tell(NEXT_ERRNO, EOPNOTSUPP);
	errno = 0;
	CHECK(!extended(context)->create_cq_ex(context, &attr) && errno == EOPNOTSUPP && channel.refcnt == 1);

	struct v_poll_cq_attr poll = {0}, unknown = {1};
	struct ring *r = ring_of(cq->handle);
	long polls = count(POLLS);
	CHECK(cq->start_poll(cq, &unknown) == EINVAL && count(POLLS) == polls);
	CHECK(cq->start_poll(cq, &poll) == ENOENT && count(POLLS) == polls + 1);
	for (uint64_t id = 1; id <= 3; id++)
		put(r, id);
	CHECK(cq->start_poll(cq, &poll) == 0 && cq->wr_id == 1 && cq->status == 1);
	CHECK(cq->read_opcode(cq) == 128 && cq->read_vendor_err(cq) == 3 && cq->read_byte_len(cq) == 4 && cq->read_imm_data(cq) == 5 && cq->read_qp_num(cq) == 6);
	CHECK(cq->read_src_qp(cq) == 7 && cq->read_wc_flags(cq) == 2 && cq->read_slid(cq) == 8 && cq->read_sl(cq) == 9 && cq->read_dlid_path_bits(cq) == 10);
	CHECK((uint32_t)r->taken == 1); /* those that are not asked for stay */
	CHECK(cq->next_poll(cq) == 0 && cq->wr_id == 2 && cq->status == 2);
	cq->end_poll(cq);
	CHECK((uint32_t)r->taken == 2 && r->taken >> 32 == 0); /* also what was taken with those */
	CHECK(cq->start_poll(cq, &poll) == 0 && cq->wr_id == 3 && cq->next_poll(cq) == ENOENT && count(POLLS) == polls + 1);
	CHECK(cq->next_poll(cq) == ENOENT && count(POLLS) == polls + 2); /* who goes on has the engine look */
	cq->end_poll(cq);
	/* All that there are, in order, however many are taken together. */
	for (uint64_t id = 4; id <= 3 + 2 * RING_SPARE; id++)
		put(r, id);
	CHECK(cq->start_poll(cq, &poll) == 0 && cq->wr_id == 4);
	for (uint64_t id = 5; id <= 3 + 2 * RING_SPARE; id++)
		CHECK(cq->next_poll(cq) == 0 && cq->wr_id == id && cq->status == (int)(id % 5) && cq->read_byte_len(cq) == 4);
	CHECK(cq->next_poll(cq) == ENOENT && (uint32_t)r->taken == 3 + 2 * RING_SPARE);
	cq->end_poll(cq);
	/* A poll in between takes what comes behind them: then they are kept, and come first. So they are when the ring is another's. */
	for (int times = 0; times < 2; times++) {
		uint64_t first = r->put + 1;
		for (uint64_t id = first; id < first + 4; id++)
			put(r, id);
		CHECK(cq->start_poll(cq, &poll) == 0 && cq->next_poll(cq) == 0 && cq->wr_id == first + 1);
		if (times == 0) {
			put(r, 99);
			r->taken++;
		} else {
			r->key = 1;
		}
		uint64_t since = r->taken;
		cq->end_poll(cq);
		CHECK(r->taken == since && cq->start_poll(cq, &poll) == 0 && cq->wr_id == first + 2);
		cq->end_poll(cq); /* and again */
		CHECK(r->taken == since && cq->start_poll(cq, &poll) == 0 && cq->wr_id == first + 3);
		CHECK(cq->next_poll(cq) == ENOENT);
		cq->end_poll(cq);
	}
	r->key = 0;
	free(cq); /* as the provider does */
}

/* Two threads poll, each completion comes to one of them, and what it reads belongs together. */
enum { ALL = 20000 };
static struct v_cq_ex *shared;
static _Atomic unsigned char seen[ALL];
static _Atomic unsigned taken;

static void *taker(void *arg)
{
	struct v_poll_cq_attr poll = {0};
	(void)arg;
	while (taken < ALL) {
		int r = shared->start_poll(shared, &poll);
		if (r != 0) {
			CHECK(r == ENOENT);
			continue;
		}
		do {
			uint64_t id = shared->wr_id;
			if (id % 64 == 0)
				usleep(50); /* the other must not come in between */
			CHECK(shared->status == (int)(id % 5) && shared->wr_id == id && seen[id]++ == 0);
			taken++;
		} while (shared->next_poll(shared) == 0);
		shared->end_poll(shared);
	}
	return NULL;
}

static void test_cq_threads(void)
{
	struct v_cq_init_attr_ex attr = {.cqe = 99};
	CHECK((shared = extended(context)->create_cq_ex(context, &attr)));
	struct ring *r = ring_of(shared->handle);
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&t[i], NULL, taker, NULL) == 0);
	for (uint64_t id = 0; id < ALL; id++) {
		while (r->put - (uint32_t)r->taken >= RING_WCS - RING_SPARE)
			;
		put(r, id);
	}
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	r->key = 0;
	free(shared);
}

enum { WRS = 8, SGES = 2, INLINES = 64 }; /* what engine.c gives a queue pair */

static struct v_qp *create(uint32_t mask)
{
	static struct v_pd pd = {.handle = 41};
	static struct v_cq send = {.handle = 42}, recv = {.handle = 43};
	struct v_qp_init_attr_ex attr = {
		.send_cq = &send, .recv_cq = &recv, .qp_context = &pd, .qp_type = V_RC, .sq_sig_all = 2, .comp_mask = mask, .pd = &pd, .create_flags = 9,
		.cap = {1, 2, 1, 2, 3}, .send_ops_flags = 0x3ff,
	};
	struct v_qp *qp = extended(context)->create_qp_ex(context, &attr);
	if (qp) {
		CHECK(LAST(0, uint32_t) == CREATE_QP && LAST(4, uint16_t) == 20 && LAST(16, uint64_t) == (uintptr_t)qp && LAST(24, uint32_t) == 41 && LAST(28, uint32_t) == 42);
		CHECK(LAST(32, uint32_t) == 43 && LAST(60, uint8_t) == 1 && LAST(61, uint8_t) == V_RC && LAST(62, uint8_t) == 0 && LAST(72, uint32_t) == mask && LAST(76, uint32_t) == 0);
		CHECK(LAST(64, uint64_t) == (mask & V_QP_SEND_OPS ? 0x3ff : 0));
		CHECK(qp->context == context && qp->qp_context == &pd && qp->pd == &pd && qp->send_cq == &send && qp->recv_cq == &recv && qp->qp_type == V_RC && qp->qp_num != 0);
		CHECK(attr.cap.max_send_wr == WRS && attr.cap.max_send_sge == SGES && attr.cap.max_inline_data == INLINES);
	}
	return qp;
}

/* As ibv_destroy_qp does. */
static void destroy(struct v_qp *qp)
{
	uint32_t answer;
	struct {
		struct v_header header;
		uint32_t qp, reserved;
	} c = {V_HEADER(DESTROY_QP, c, answer), qp->handle, 0};
	CHECK(write(context->cmd_fd, &c, sizeof c) == sizeof c);
	free(qp);
}

static void test_qp_table(void)
{
	enum { MANY = 700 };
	static struct v_qp *qps[MANY];
	struct v_qp *plain = create(V_QP_PD);
	CHECK(!ibv_qp_to_qp_ex(plain));
	destroy(plain);
	for (int i = 0; i < MANY; i++) {
		CHECK((qps[i] = create(V_QP_PD | V_QP_SEND_OPS)));
		CHECK((struct v_qp *)ibv_qp_to_qp_ex(qps[i]) == qps[i]);
	}
	pid_t child = fork();
	if (child == 0) /* its table is whole; the device is its parent's */
		_exit((struct v_qp *)ibv_qp_to_qp_ex(qps[MANY / 2]) == qps[MANY / 2] ? 0 : 1);
	int status;
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	/* A number that names another: nothing is found by it, nor taken out. */
	struct v_qp copy = *qps[3];
	CHECK(!ibv_qp_to_qp_ex(&copy));
	tell(NEXT_ERRNO, EBUSY);
	uint32_t c[6] = {DESTROY_QP, 0, 0, 0, qps[3]->handle};
	CHECK(write(context->cmd_fd, c, sizeof c) == -1 && errno == EBUSY && ibv_qp_to_qp_ex(qps[3]));
	for (int i = 0; i < MANY; i++) { /* in some order */
		struct v_qp *qp = qps[(i * 37) % MANY];
		copy = *qp;
		destroy(qp);
		CHECK(!ibv_qp_to_qp_ex(&copy));
	}
	CHECK(IN_TABLE == 0);
	tell(NEXT_ERRNO, EOPNOTSUPP);
	errno = 0;
	CHECK(!create(V_QP_PD | V_QP_SEND_OPS) && errno == EOPNOTSUPP && IN_TABLE == 0);
}

static void *churn(void *arg)
{
	for (int i = 0; i < 300; i++) {
		struct v_qp *qp = extended(context)->create_qp_ex(context, arg);
		CHECK(qp && (struct v_qp *)ibv_qp_to_qp_ex(qp) == qp);
		destroy(qp);
	}
	return NULL;
}

static void test_qp_threads(void)
{
	struct v_pd pd = {0};
	struct v_qp_init_attr_ex attr[4];
	pthread_t t[4];
	for (int i = 0; i < 4; i++) {
		attr[i] = (struct v_qp_init_attr_ex){.comp_mask = V_QP_PD | V_QP_SEND_OPS, .pd = &pd};
		CHECK(pthread_create(&t[i], NULL, churn, &attr[i]) == 0);
	}
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(IN_TABLE == 0);
}

/* The request at i of the last post, and its element at j of all. */
static const struct v_wqe *wqe(uint32_t i) { return (const struct v_wqe *)(last + sizeof(struct v_post)) + i; }
static const struct v_sge *sge(uint32_t i) { return (const struct v_sge *)wqe(LAST(20, uint32_t)) + i; }

static void test_builders(void)
{
	struct v_qp *qp = create(V_QP_PD | V_QP_SEND_OPS);
	struct v_qp_ex *x = ibv_qp_to_qp_ex(qp);
	struct v_sge list[3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
	struct v_ah ah = {.handle = 0x11};
	struct v_mr mr = {.lkey = 0x22};
	struct v_mw mw = {.handle = 0x33};
	char text[INLINES + 1] = "inline data";
	struct v_data_buf bufs[3] = {{text, 6}, {NULL, 0}, {text + 7, 4}};
	long posts = count(POSTS);

	x->wr_start(x); /* aborted: nothing */
	x->wr_send(x);
	x->wr_set_sge(x, 1, 2, 3);
	x->wr_abort(x);
	x->wr_start(x); /* empty: nothing */
	CHECK(x->wr_complete(x) == 0 && count(POSTS) == posts);

	x->wr_start(x);
	x->wr_id = 1;
	x->wr_flags = 2;
	x->wr_rdma_write(x, 0xa, 0xb);
	x->wr_set_sge_list(x, 2, list);
	x->wr_set_sge(x, 30, 10, 20); /* in place of those */
	x->wr_id = 2;
	x->wr_flags = 0;
	x->wr_rdma_write_imm(x, 0xc, 0xd, 0xe);
	x->wr_set_inline_data(x, text, 11);
	x->wr_id = 3;
	x->wr_atomic_cmp_swp(x, 1, 2, 3, 4);
	x->wr_set_sge_list(x, 2, list);
	x->wr_atomic_fetch_add(x, 5, 6, 7);
	x->wr_local_inv(x, 0xf);
	x->wr_bind_mw(x, &mw, 0x10, &(struct v_mw_bind_info){&mr, 100, 1ull << 40, 6});
	x->wr_send_inv(x, 0x12);
	x->wr_set_inline_data_list(x, 3, bufs);
	x->wr_send(x);
	x->wr_set_ud_addr(x, &ah, 0x21, 0x31);
	x->wr_set_inline_data(x, NULL, 0);
	memset(text, 'x', sizeof text - 1); /* the program's again */
	CHECK(count(POSTS) == posts && x->wr_complete(x) == 0 && count(POSTS) == posts + 1);
	CHECK(LAST(0, uint32_t) == POST_SEND && LAST(4, uint16_t) * 4 == 32 + 8 * 56 + 5 * 16 && LAST(16, uint32_t) == qp->handle && LAST(20, uint32_t) == 8 && LAST(24, uint32_t) == 5 && LAST(28, uint32_t) == 56);
	CHECK(wqe(0)->wr_id == 1 && wqe(0)->opcode == V_WRITE && wqe(0)->flags == (2 | 1u << 31) && wqe(0)->remote[0] == 0xb && wqe(0)->remote[1] == 0xa && wqe(0)->num_sge == 1);
	CHECK(sge(0)->addr == 10 && sge(0)->length == 20 && sge(0)->lkey == 30);
	CHECK(wqe(1)->wr_id == 2 && wqe(1)->opcode == V_WRITE_IMM && wqe(1)->flags == V_INLINE && wqe(1)->imm == 0xe && wqe(1)->num_sge == 1);
	CHECK(sge(1)->length == 11 && memcmp((char *)(uintptr_t)sge(1)->addr, "inline data", 11) == 0);
	CHECK(wqe(2)->opcode == V_CMP_SWP && wqe(2)->remote[0] == 2 && wqe(2)->remote[1] == 3 && wqe(2)->remote[2] == 4 && wqe(2)->remote[3] == 1 && wqe(2)->num_sge == 2 && sge(3)->lkey == 6);
	CHECK(wqe(3)->opcode == V_FETCH_ADD && wqe(3)->remote[0] == 6 && wqe(3)->remote[1] == 7 && wqe(3)->remote[3] == 5);
	CHECK(wqe(4)->opcode == V_LOCAL_INV && wqe(4)->imm == 0xf);
	CHECK(wqe(5)->opcode == V_BIND_MW && wqe(5)->imm == 0x10 && wqe(5)->remote[0] == 100 && wqe(5)->remote[1] == 1ull << 40 && wqe(5)->remote[2] == (6ull << 32 | 0x33) && wqe(5)->remote[3] == (2ull << 32 | 0x22));
	CHECK(wqe(6)->opcode == V_SEND_INV && wqe(6)->imm == 0x12 && sge(4)->length == 10 && memcmp((char *)(uintptr_t)sge(4)->addr, "inlinedata", 10) == 0);
	CHECK(wqe(7)->opcode == V_SEND && wqe(7)->remote[0] == (0x21ull << 32 | 0x11) && wqe(7)->remote[1] == 0x31 && wqe(7)->flags == V_INLINE && wqe(7)->num_sge == 0);

	/* One alone is as libibverbs writes it, which may wait in a ring. */
	x->wr_start(x);
	x->wr_rdma_read(x, 1, 2);
	x->wr_set_sge(x, 3, 4, 5);
	CHECK(x->wr_complete(x) == 0 && LAST(4, uint16_t) * 4 == 32 + 56 + 16 && wqe(0)->opcode == V_READ && wqe(0)->flags == 0 && sge(0)->addr == 4);
	x->wr_start(x);
	x->wr_send_imm(x, 9);
	CHECK(x->wr_complete(x) == 0 && LAST(4, uint16_t) * 4 == 32 + 56 && LAST(24, uint32_t) == 0 && wqe(0)->imm == 9);
	x->wr_start(x);
	x->wr_send(x);
	tell(NEXT_ERRNO, ENOMEM);
	CHECK(x->wr_complete(x) == ENOMEM);
	destroy(qp);
}

/* What a builder cannot take is told at the end, the first of several, and nothing is posted. */
static void test_builder_errors(void)
{
	struct v_qp *qp = create(V_QP_PD | V_QP_SEND_OPS);
	struct v_qp_ex *x = ibv_qp_to_qp_ex(qp);
	struct v_sge list[SGES + 1] = {{0, 0, 0}};
	char text[INLINES + 1] = "";
	struct v_data_buf bufs[2] = {{text, INLINES}, {text, 1}}, huge[2] = {{text, 1}, {text, SIZE_MAX}};
	long posts = count(POSTS);
	x->wr_start(x);
	for (int i = 0; i < WRS + 1; i++)
		x->wr_send(x);
	x->wr_set_sge_list(x, SGES + 1, list);
	CHECK(x->wr_complete(x) == ENOMEM);
	x->wr_start(x);
	x->wr_set_sge(x, 1, 2, 3);
	x->wr_send(x);
	CHECK(x->wr_complete(x) == EINVAL);
	x->wr_start(x);
	x->wr_send(x);
	x->wr_set_sge_list(x, SGES + 1, list);
	x->wr_set_inline_data(x, text, INLINES + 1);
	CHECK(x->wr_complete(x) == EINVAL);
	x->wr_start(x);
	x->wr_send(x);
	x->wr_set_inline_data(x, text, INLINES + 1);
	CHECK(x->wr_complete(x) == ENOMEM);
	x->wr_start(x);
	x->wr_send(x);
	x->wr_set_inline_data_list(x, 2, bufs);
	CHECK(x->wr_complete(x) == ENOMEM);
	x->wr_start(x);
	x->wr_send(x);
	x->wr_set_inline_data_list(x, 2, huge);
	CHECK(x->wr_complete(x) == ENOMEM && count(POSTS) == posts);
	x->wr_start(x);
	for (int i = 0; i < WRS; i++)
		x->wr_send(x);
	x->wr_set_sge_list(x, SGES + 1, list);
	x->wr_send(x); /* beyond the last, too */
	CHECK(x->wr_complete(x) == EINVAL && count(POSTS) == posts);
	x->wr_start(x); /* and then it is forgotten */
	x->wr_send(x);
	CHECK(x->wr_complete(x) == 0 && count(POSTS) == posts + 1);
	destroy(qp);
}

static void test_windows(void)
{
	struct v_pd pd = {.context = context, .handle = 51};
	struct v_qp qp = {.context = context, .handle = 52};
	struct v_mr mr = {.lkey = 53};
	CHECK(context->ops.alloc_mw);
	void *before = (void *)context->ops.post_send;
	struct v_mw *mw = context->ops.alloc_mw(&pd, 1);
	CHECK(mw && mw->context == context && mw->pd == &pd && mw->type == 1 && mw->rkey == 0x1ff && (void *)context->ops.post_send != before);
	CHECK(LAST(0, uint32_t) == ALLOC_MW && LAST(4, uint16_t) == 6 && LAST(16, uint32_t) == 51 && LAST(20, uint8_t) == 1);
	tell(NEXT_ERRNO, EINVAL);
	errno = 0;
	CHECK(!context->ops.alloc_mw(&pd, 1 << 8 | 1) && errno == EINVAL && LAST(20, uint8_t) == 0);

	struct v_mw_bind bind = {.wr_id = 1, .send_flags = 2, .info = {&mr, 3, 4, 5}};
	CHECK(context->ops.bind_mw(&qp, mw, &bind) == 0 && mw->rkey == 0x100 && LAST(0, uint32_t) == POST_SEND && LAST(16, uint32_t) == 52);
	CHECK(wqe(0)->wr_id == 1 && wqe(0)->flags == 2 && wqe(0)->opcode == V_BIND_MW && wqe(0)->imm == 0x100 && wqe(0)->remote[3] == (1ull << 32 | 53));
	tell(NEXT_ERRNO, ENOMEM);
	CHECK(context->ops.bind_mw(&qp, mw, &bind) == ENOMEM && mw->rkey == 0x100);
	bind.info = (struct v_mw_bind_info){0};
	CHECK(context->ops.bind_mw(&qp, mw, &bind) == 0 && mw->rkey == 0x101 && wqe(0)->remote[3] == 1ull << 32);

	/* A list of both: the runs between the binds go to the provider. */
	struct v_send_wr w[6] = {{.opcode = V_SEND}, {.opcode = V_WRITE}, {.opcode = V_BIND_MW, .wr_id = 7, .flags = 2}, {.opcode = V_SEND}, {.opcode = V_BIND_MW, .wr_id = 8}, {.opcode = V_BIND_MW, .wr_id = 9}}, *bad = NULL;
	for (int i = 0; i < 6; i++) {
		w[i].next = i < 5 ? &w[i + 1] : NULL;
		w[i].bind.mw = mw;
		w[i].bind.rkey = 0x102;
		w[i].bind.info.mr = &mr;
	}
	long posts = count(POSTS);
	fake.lists = fake.wrs = 0;
	CHECK(context->ops.post_send(&qp, w, &bad) == 0 && fake.lists == 2 && fake.wrs == 3 && count(POSTS) == posts + 3 && w[1].next == &w[2] && w[3].next == &w[4]);
	CHECK(wqe(0)->wr_id == 9 && wqe(0)->remote[3] == (2ull << 32 | 53));
	fake.fails = EINVAL;
	CHECK(context->ops.post_send(&qp, &w[2], &bad) == EINVAL && bad == &w[3] && w[3].next == &w[4]);
	fake.fails = 0;
	tell(NEXT_ERRNO, EPERM);
	CHECK(context->ops.post_send(&qp, w, &bad) == EPERM && bad == &w[2] && fake.lists == 3 && fake.wrs == 5);

	tell(NEXT_ERRNO, EBUSY);
	CHECK(context->ops.dealloc_mw(mw) == EBUSY);
	CHECK(context->ops.dealloc_mw(mw) == 0 && LAST(0, uint32_t) == DEALLOC_MW && LAST(4, uint16_t) == 3);
}

static void test_rereg_mr(void)
{
	enum { TRANSLATION = 1, PD = 2, ACCESS = 4, INPUT = -1, DONT_FORK_NEW = -2, COMMAND = -4 };
	char old[8], new[16];
	struct v_pd pd = {.handle = 71}, other = {.handle = 72};
	struct v_mr mr = {.context = context, .pd = &pd, .addr = old, .length = sizeof old, .handle = 73, .lkey = 1, .rkey = 2};
	CHECK(ibv_rereg_mr(&mr, TRANSLATION | PD | ACCESS, &other, new, sizeof new, 5) == 0);
	CHECK(LAST(0, uint32_t) == REREG_MR && LAST(4, uint16_t) == 14 && LAST(6, uint16_t) == 2 && LAST(16, uint32_t) == 73 && LAST(20, uint32_t) == 7);
	CHECK(LAST(24, uint64_t) == (uintptr_t)new && LAST(32, uint64_t) == sizeof new && LAST(40, uint64_t) == (uintptr_t)new && LAST(48, uint32_t) == 72 && LAST(52, uint32_t) == 5);
	CHECK(mr.pd == &other && mr.addr == new && mr.length == sizeof new && mr.lkey > 1 && mr.rkey == 0x2ff && fake.kept == new && fake.shared == old);

	fake.kept = fake.shared = NULL;
	CHECK(ibv_rereg_mr(&mr, ACCESS, &pd, old, sizeof old, 1) == 0 && LAST(48, uint32_t) == 0);
	CHECK(mr.pd == &other && mr.addr == new && mr.length == sizeof new && !fake.kept && !fake.shared);
	for (int i = 0; i < 4; i++) {
		int flags[] = {8, TRANSLATION, TRANSLATION, PD};
		memset((void *)last, 0, 4);
		errno = 0;
		CHECK(ibv_rereg_mr(&mr, flags[i], &pd, i == 1 ? NULL : old, i == 2 ? 0 : sizeof old, i == 3) == INPUT && errno == EINVAL && LAST(0, uint32_t) == 0);
	}
	tell(NEXT_ERRNO, EACCES);
	uint32_t lkey = mr.lkey;
	errno = 0;
	CHECK(ibv_rereg_mr(&mr, TRANSLATION | PD, &pd, old, sizeof old, 0) == COMMAND && errno == EACCES && fake.kept == old && fake.shared == old);
	CHECK(mr.pd == &other && mr.addr == new && mr.length == sizeof new && mr.lkey == lkey);

	fake.refuses = 1;
	CHECK(ibv_rereg_mr(&mr, TRANSLATION, NULL, old, sizeof old, 0) == DONT_FORK_NEW && mr.addr == new);
	tell(NEXT_ERRNO, EACCES);
	fake.refuses = 0;
	CHECK(ibv_rereg_mr(&mr, ACCESS, NULL, NULL, 0, 1) == COMMAND);
	CHECK(ibv_rereg_mr(&mr, TRANSLATION, NULL, old, sizeof old, 0) == 0 && mr.addr == old && fake.shared == new);
}

static void test_domains(void)
{
	struct v_td_init_attr none = {0}, unknown = {1};
	struct v_td *td = extended(context)->alloc_td(context, &none);
	CHECK(td && td->context == context);
	errno = 0;
	CHECK(!extended(context)->alloc_td(context, &unknown) && errno == EINVAL);
	struct v_pd pd = {.context = context, .handle = 61};
	struct v_parent_domain_init_attr attr = {.pd = &pd, .td = td, .comp_mask = 3};
	struct v_pd *parent = extended(context)->alloc_parent_domain(context, &attr);
	CHECK(parent && parent->context == context && parent->handle != 61 && LAST(0, uint32_t) == ALLOC_PD && LAST(4, uint16_t) == 6 && LAST(16, uint32_t) == 61 && LAST(20, uint32_t) == 3);
	free(parent);
	attr.pd = NULL;
	errno = 0;
	CHECK(!extended(context)->alloc_parent_domain(context, &attr) && errno == EINVAL);
	attr.pd = &pd;
	tell(NEXT_ERRNO, EOPNOTSUPP);
	errno = 0;
	CHECK(!extended(context)->alloc_parent_domain(context, &attr) && errno == EOPNOTSUPP && extended(context)->dealloc_td(td) == 0);
}

/* A program that looks libibverbs' functions up gets ours, of a library that has them; and its own look-ups are its own. */
static void test_look_up(void)
{
#ifndef __SANITIZE_ADDRESS__
	void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD), *self = dlopen(NULL, RTLD_LAZY), *libc = dlopen("libc.so.6", RTLD_LAZY);
	CHECK(lib && self && libc);
	CHECK(dlsym(lib, "ibv_open_device") == (void *)ibv_open_device && dlsym(lib, "ibv_qp_to_qp_ex") == (void *)ibv_qp_to_qp_ex && dlsym(lib, "ibv_rereg_mr") == (void *)ibv_rereg_mr);
	CHECK(dlsym(lib, "fake_close") == (void *)fake_close && dlsym(lib, "ibv_close_device") == NULL && dlerror() != NULL);
	CHECK(dlsym(libc, "ibv_open_device") == NULL && dlvsym(lib, "ibv_open_device", "IBVERBS_1.0") != (void *)ibv_open_device);
	CHECK(dlvsym(lib, "ibv_open_device", "IBVERBS_1.1") == (void *)ibv_open_device);
	CHECK(fake_next("ibv_open_device") == NULL && fake_next("getpid") == dlsym(libc, "getpid")); /* of a library behind ours */
	void *theirs = dlsym(RTLD_NEXT, "ibv_open_device"); /* of who calls: the test, behind which the preload library is */
	CHECK(theirs == (void *)ibv_open_device && dlsym(RTLD_DEFAULT, "fake") == &fake);
#endif
}

int main(void)
{
	static const struct test tests[] = {
		T(test_cq), T(test_cq_threads), T(test_qp_table), T(test_qp_threads), T(test_builders), T(test_builder_errors), T(test_windows), T(test_rereg_mr), T(test_domains), T(test_look_up),
	};
	alarm(300); /* to what hangs */
	test_open();
	puts("ok test_open");
	CHECK((context = ibv_open_device(NULL)));
	last = (const unsigned char *)tell(LAST_AT, 0);
	run_all(tests, sizeof tests / sizeof tests[0]);
	fake_close(context);
	return 0;
}
