/* Unreliable connections: `uc MODE HOST` prints "MODE: ok" and ends with 0, or says which line did not hold. */
#define _GNU_SOURCE
#include "plain.h"

enum {
	UC_RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	UC_RTS_MASK = IBV_QP_STATE | IBV_QP_SQ_PSN,
};

/* Makes a queue pair of UC of e's, whose own one goes. */
static void make(struct end *e)
{
	create(e);
	MUST(ibv_destroy_qp(e->qp) == 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_UC, .sq_sig_all = 1,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 16},
	};
	MUST(e->qp = ibv_create_qp(pd, &attr));
}

static void raise_(struct end *e, struct end *peer)
{
	bring_to_init(e->qp);
	bring(e->qp, to_rtr(&gid, peer->qp->qp_num, retries), UC_RTR_MASK);
	bring(e->qp, to_rts(retries), UC_RTS_MASK);
}

static void pair(struct end *a, struct end *b)
{
	make(a);
	make(b);
	raise_(a, b);
	raise_(b, a);
}

static int post(struct end *e, enum ibv_wr_opcode op, unsigned n, struct end *to, uint32_t rkey, unsigned flags)
{
	struct ibv_sge sge = {(uintptr_t)e->text, n, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = op, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = flags, .imm_data = 0x01020304}, *bad;
	wr.wr.rdma.remote_addr = (uintptr_t)to->text + 32;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(e->qp, &wr, &bad);
}

/* Posts, and has the request complete as sent, whatever becomes of it. */
static void sent(struct end *e, enum ibv_wr_opcode op, unsigned n, struct end *to, uint32_t rkey, unsigned flags)
{
	MUST((errno = post(e, op, n, to, rkey, flags)) == 0);
	struct ibv_wc wc = completion(e->cq);
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == op);
}

static struct ibv_wc got(struct end *e, unsigned n)
{
	struct ibv_wc wc = completion(e->cq);
	MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 7 && wc.byte_len == n);
	return wc;
}

static void requests(void)
{
	struct end a, b;
	pair(&a, &b);
	for (unsigned inline_ = 0; inline_ < 2; inline_++) {
		unsigned flags = inline_ ? IBV_SEND_INLINE : 0;
		strcpy(a.text, "message");
		for (int i = 0; i < 4; i++)
			post_recv(&b, 7);
		sent(&a, IBV_WR_RDMA_WRITE, 8, &b, b.mr->rkey, flags);
		sent(&a, IBV_WR_SEND, 8, &b, 0, flags);
		got(&b, 8);
		MUST(strcmp(b.text, "message") == 0 && strcmp(b.text + 32, "message") == 0);
		sent(&a, IBV_WR_SEND_WITH_IMM, 8, &b, 0, flags);
		struct ibv_wc wc = got(&b, 8);
		MUST(wc.opcode == IBV_WC_RECV && (wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == 0x01020304);
		sent(&a, IBV_WR_SEND_WITH_IMM, 0, &b, 0, flags);
		wc = got(&b, 0);
		MUST(wc.opcode == IBV_WC_RECV && (wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == 0x01020304);
		sent(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 8, &b, b.mr->rkey, flags);
		wc = got(&b, 8);
		MUST(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == 0x01020304);
	}
	MUST(post(&a, IBV_WR_RDMA_READ, 8, &b, b.mr->rkey, 0) == EINVAL);
	MUST(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, &b, b.mr->rkey, 0) == EINVAL);
	destroy(&a);
	destroy(&b);
}

/* What has no place at the peer completes all the same, and what follows arrives. */
static void drops(void)
{
	struct end a, b;
	pair(&a, &b);
	struct ibv_sge small = {(uintptr_t)b.text, 4, b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &small, .num_sge = 1}, *bad;
	for (int i = 0; i < 3; i++) {
		for (int n = 0; n < 20; n++)
			sent(&a, IBV_WR_SEND, 8, &b, 0, 0);
		/* The last of them may be on its way: a receive that is posted now may be theirs, if it is large enough. */
		MUST((errno = ibv_post_recv(b.qp, &wr, &bad)) == 0);
		sent(&a, IBV_WR_SEND, 64, &b, 0, 0);
		sent(&a, IBV_WR_RDMA_WRITE, 8, &b, b.mr->rkey + 1, 0);
		sent(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 8, &b, b.mr->rkey + 1, 0);
		sent(&a, IBV_WR_RDMA_WRITE, 64, &b, b.mr->rkey, 0); /* beyond its end */
		sent(&a, IBV_WR_SEND, 4, &b, 0, 0);
		got(&b, 4);
		MUST(state(&a) == IBV_QPS_RTS && state(&b) == IBV_QPS_RTS);
	}
	destroy(&a);
	destroy(&b);
}

/* A sender does not hear of the peer's end; an error of its own ends it. */
static void gone(void)
{
	struct end a, b;
	pair(&a, &b);
	post_recv(&b, 7);
	sent(&a, IBV_WR_SEND, 8, &b, 0, 0);
	got(&b, 8);
	post_recv(&a, 9);
	uint32_t rkey = b.mr->rkey;
	destroy(&b);
	for (int i = 0; i < 1000; i++)
		sent(&a, IBV_WR_RDMA_WRITE, 32, &b, rkey, 0);
	struct ibv_wc wc;
	MUST(ibv_poll_cq(a.cq, 1, &wc) == 0 && state(&a) == IBV_QPS_RTS);
	a.mr->lkey++;
	MUST(post(&a, IBV_WR_SEND, 8, &b, 0, 0) == 0);
	a.mr->lkey--;
	MUST(completion(a.cq).status == IBV_WC_LOC_PROT_ERR);
	wc = completion(a.cq);
	MUST(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 9 && state(&a) == IBV_QPS_ERR);
	destroy(&a);
}

/* Attributes: RoCE adapters refuse those of retries and of answers, an RNIC takes all. */
static void masks(void)
{
	int strict = context->device->transport_type == IBV_TRANSPORT_IB;
	struct end a, b;
	make(&a);
	make(&b);
	raise_(&b, &a);
	bring_to_init(a.qp);
	struct ibv_qp_attr r = to_rtr(&gid, b.qp->qp_num, retries), s = to_rts(retries);
	if (strict) {
		MUST(ibv_modify_qp(a.qp, &r, RTR_MASK) == EINVAL);
		MUST(ibv_modify_qp(a.qp, &r, UC_RTR_MASK & ~IBV_QP_RQ_PSN) == EINVAL);
	}
	bring(a.qp, r, UC_RTR_MASK);
	if (strict)
		MUST(ibv_modify_qp(a.qp, &s, RTS_MASK) == EINVAL);
	bring(a.qp, s, UC_RTS_MASK);
	talk(&a, &b);
	destroy(&a);
	destroy(&b);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*f)(void);
	} modes[] = {{"requests", requests}, {"drops", drops}, {"gone", gone}, {"masks", masks}};
	MUST(argc >= 2);
	open_device();
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (strcmp(argv[1], modes[i].name) == 0) {
			modes[i].f();
			close_device();
			printf("%s: ok\n", argv[1]);
			return 0;
		}
	fprintf(stderr, "there is no mode %s\n", argv[1]);
	return 1;
}
