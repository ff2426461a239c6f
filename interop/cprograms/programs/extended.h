/* Queue pairs with the extended verbs, on libibverbs alone, whose two ends are in one process and are brought up by hand: for
   extended.c and windows.c. */
#ifndef EXTENDED_H
#define EXTENDED_H

#include "states.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <unistd.h>

#define REFUSED(x, no) MUST((errno = 0, !(x)) && errno == (no))

enum { SIZE = 4096, DEPTH = 64, QKEY = 0x1234 };

static struct ibv_context *device;

struct end {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *x;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char *memory;
};

static inline void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	MUST(list && list[0] && (device = ibv_open_device(list[0])));
	ibv_free_device_list(list);
}

static inline struct ibv_qp *queue_pair(struct end *e, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(e->cq), .recv_cq = ibv_cq_ex_to_cq(e->cq), .srq = e->srq, .qp_type = type, .qp_context = e,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 128},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = e->pd, .send_ops_flags = ops,
	};
	return ibv_create_qp_ex(device, &attr);
}

enum { RC_OPS = (1 << 10) - 1, UD_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM };

static inline void make(struct end *e, enum ibv_qp_type type)
{
	if (!e->pd)
		MUST(e->pd = ibv_alloc_pd(device));
	MUST(e->channel = ibv_create_comp_channel(device));
	struct ibv_cq_init_attr_ex attr = {.cqe = 4 * DEPTH, .cq_context = e, .channel = e->channel, .wc_flags = IBV_WC_STANDARD_FLAGS};
	if (!e->cq)
		MUST(e->cq = ibv_create_cq_ex(device, &attr));
	MUST(e->qp = queue_pair(e, type, type == IBV_QPT_RC ? RC_OPS : UD_OPS));
	MUST(e->x = ibv_qp_to_qp_ex(e->qp));
	MUST(posix_memalign((void **)&e->memory, 4096, SIZE) == 0);
	memset(e->memory, 0, SIZE);
	MUST(e->mr = ibv_reg_mr(e->pd, e->memory, SIZE, IBV_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS | IBV_ACCESS_MW_BIND));
	if (type == IBV_QPT_RC) {
		bring_to_init(e->qp);
		return;
	}
	struct ibv_qp_attr init = to_init();
	init.qkey = QKEY;
	bring(e->qp, init, (INIT_MASK & ~IBV_QP_ACCESS_FLAGS) | IBV_QP_QKEY);
}

static inline struct ibv_ah_attr to_self(void)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
	MUST(ibv_query_gid(device, 1, 0, &a.grh.dgid) == 0);
	return a;
}

/* Both are changed to RTR, and then to RTS. */
static inline void up(struct end *a, struct end *b)
{
	union ibv_gid gid = to_self().grh.dgid;
	bring_to_rtr(a->qp, &gid, b->qp->qp_num, retries);
	bring_to_rtr(b->qp, &gid, a->qp->qp_num, retries);
	bring_to_rts(a->qp, retries);
	bring_to_rts(b->qp, retries);
}

static inline void destroy(struct end *e)
{
	if (e->qp)
		MUST(ibv_destroy_qp(e->qp) == 0);
	if (e->srq)
		MUST(ibv_destroy_srq(e->srq) == 0);
	MUST(ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq)) == 0 && ibv_destroy_comp_channel(e->channel) == 0);
	MUST(ibv_dereg_mr(e->mr) == 0 && ibv_dealloc_pd(e->pd) == 0);
	free(e->memory);
}

/* The next completion of e, read in the extended way, as an ibv_wc. */
static inline struct ibv_wc next(struct end *e)
{
	struct ibv_poll_cq_attr attr = {0};
	int r;
	while ((r = ibv_start_poll(e->cq, &attr)) == ENOENT)
		;
	MUST(r == 0);
	struct ibv_wc w = {.wr_id = e->cq->wr_id, .status = e->cq->status, .vendor_err = ibv_wc_read_vendor_err(e->cq)};
	w.opcode = ibv_wc_read_opcode(e->cq);
	w.byte_len = ibv_wc_read_byte_len(e->cq);
	w.imm_data = ibv_wc_read_imm_data(e->cq);
	w.qp_num = ibv_wc_read_qp_num(e->cq);
	w.src_qp = ibv_wc_read_src_qp(e->cq);
	w.wc_flags = ibv_wc_read_wc_flags(e->cq);
	MUST(ibv_wc_read_slid(e->cq) == 0 && ibv_wc_read_sl(e->cq) == 0 && ibv_wc_read_dlid_path_bits(e->cq) == 0);
	ibv_end_poll(e->cq);
	return w;
}

static inline struct ibv_wc good(struct end *e, uint64_t id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc w = next(e);
	if (w.status != IBV_WC_SUCCESS || w.wr_id != id || w.opcode != opcode || w.qp_num != e->qp->qp_num)
		fprintf(stderr, "wr_id %lu, %s, opcode %d\n", (unsigned long)w.wr_id, ibv_wc_status_str(w.status), w.opcode);
	MUST(w.status == IBV_WC_SUCCESS && w.wr_id == id && w.opcode == opcode && w.qp_num == e->qp->qp_num);
	return w;
}

static inline void receive(struct end *e, uint64_t id, size_t at, uint32_t n)
{
	struct ibv_sge sge = {(uintptr_t)e->memory + at, n, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	MUST((e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad)) == 0);
}

static inline struct ibv_qp_ex *begin(struct end *e, uint64_t id)
{
	ibv_wr_start(e->x);
	e->x->wr_id = id;
	e->x->wr_flags = IBV_SEND_SIGNALED;
	return e->x;
}

static inline void set(struct end *e, size_t at, uint32_t n) { ibv_wr_set_sge(e->x, e->mr->lkey, (uintptr_t)e->memory + at, n); }

static inline void a_send(struct end *a, struct end *b, uint64_t id)
{
	receive(b, id, 0, 64);
	ibv_wr_send(begin(a, id));
	set(a, 0, 16);
	MUST(ibv_wr_complete(a->x) == 0);
}

struct mode {
	const char *name;
	void (*run)(void);
};

/* What main does: the mode of the command line, on a device that is open. */
static inline int run(int argc, char **argv, const struct mode *modes)
{
	for (; argc > 1 && modes->name; modes++)
		if (strcmp(argv[1], modes->name) == 0) {
			open_device();
			modes->run();
			MUST(ibv_close_device(device) == 0);
			printf("%s: ok\n", argv[1]);
			return 0;
		}
	return 2;
}

#endif
