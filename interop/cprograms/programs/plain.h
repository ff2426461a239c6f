/* Queue pairs with the plain verbs, brought up by hand, and their NIC broken by `rnic nic`. */
#ifndef PLAIN_H
#define PLAIN_H

#include "states.h"

#include <time.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;

/* One end of a connection, with memory for a message. */
struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* or NULL */
	struct ibv_mr *mr;
	char text[64];
};

static inline void open_device(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	MUST(list && n > 0);
	MUST(context = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	MUST(pd = ibv_alloc_pd(context));
	MUST(ibv_query_gid(context, 1, 0, &gid) == 0);
}

static inline void close_device(void) { MUST(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0); }

static void create_with(struct end *e, struct ibv_srq *srq)
{
	memset(e, 0, sizeof *e);
	MUST(e->cq = ibv_create_cq(context, 64, NULL, NULL, 0));
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq, .recv_cq = e->cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	e->srq = srq;
	MUST(e->qp = ibv_create_qp(pd, &attr));
	MUST(e->mr = ibv_reg_mr(pd, e->text, sizeof e->text, IBV_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS));
}

static inline void create(struct end *e) { create_with(e, NULL); }

static inline void destroy(struct end *e) { MUST(ibv_destroy_qp(e->qp) == 0 && ibv_destroy_cq(e->cq) == 0 && ibv_dereg_mr(e->mr) == 0); }

static void up_to(struct end *e, const union ibv_gid *to, uint32_t qpn, struct patience p)
{
	bring_to_init(e->qp);
	bring_to_rtr(e->qp, to, qpn, p);
	bring_to_rts(e->qp, p);
}

static inline void up(struct end *e, struct end *peer, struct patience p) { up_to(e, &gid, peer->qp->qp_num, p); }

/* From ERR to RESET. */
static inline void again(struct end *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
	MUST((errno = ibv_modify_qp(e->qp, &a, IBV_QP_STATE)) == 0);
}

static inline enum ibv_qp_state state(struct end *e)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr init;
	MUST((errno = ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init)) == 0);
	return a.qp_state;
}

static inline void post_recv(struct end *e, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)e->text, sizeof e->text, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
	MUST((errno = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad)) == 0);
}

static inline void post_send(struct end *e, uint64_t id, unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)e->text, 8, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags}, *bad;
	MUST((errno = ibv_post_send(e->qp, &wr, &bad)) == 0);
}

/* A message goes from one end to the other. */
static inline void talk(struct end *from, struct end *to)
{
	post_recv(to, 7);
	memcpy(from->text, "message", 8);
	memset(to->text, 0, 8);
	post_send(from, 8, IBV_SEND_SIGNALED);
	struct ibv_wc wc = completion(to->cq);
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 7 && wc.byte_len == 8 && memcmp(to->text, "message", 8) == 0);
	wc = completion(from->cq);
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 8);
}

/* Has `rnic nic` do that to this process. */
static inline void nic(const char *rnic, const char *command, const char *what)
{
	char line[512];
	snprintf(line, sizeof line, "env -u LD_PRELOAD %s nic %s %d %s >&2", rnic, command, getpid(), what);
	MUST(system(line) == 0);
}

static inline double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
