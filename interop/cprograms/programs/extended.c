/* The extended verbs: `extended MODE HOST` prints "MODE: ok" and ends with 0, or says which line did not hold. */
#define _GNU_SOURCE
#include "extended.h"

#include <pthread.h>

/* queues: polls of both kinds, in pieces, with events; what is refused; and the end in any order. */
static void queues(void)
{
	struct end a = {0}, b = {0};
	make(&a, IBV_QPT_RC);
	make(&b, IBV_QPT_RC);
	up(&a, &b);
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	REFUSED(ibv_create_cq_ex(device, &attr), EOPNOTSUPP);
	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	REFUSED(ibv_create_cq_ex(device, &attr), EOPNOTSUPP);
	attr = (struct ibv_cq_init_attr_ex){.cqe = 0};
	REFUSED(ibv_create_cq_ex(device, &attr), EINVAL);

	struct ibv_cq *cq, *plain = ibv_cq_ex_to_cq(b.cq);
	void *cookie;
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_wc wc[4];
	MUST(ibv_req_notify_cq(plain, 0) == 0);
	for (uint64_t id = 1; id <= 6; id++)
		a_send(&a, &b, id);
	MUST(ibv_get_cq_event(b.channel, &cq, &cookie) == 0 && cq == plain && cookie == &b);
	ibv_ack_cq_events(cq, 1);
	for (uint64_t id = 1; id <= 6; id++)
		good(&a, id, IBV_WC_SEND);
	MUST(ibv_start_poll(a.cq, &poll) == ENOENT);
	good(&b, 1, IBV_WC_RECV);
	int r;
	while ((r = ibv_start_poll(b.cq, &poll)) == ENOENT)
		;
	MUST(r == 0 && b.cq->wr_id == 2);
	while ((r = ibv_next_poll(b.cq)) == ENOENT)
		;
	MUST(r == 0 && b.cq->wr_id == 3 && ibv_wc_read_byte_len(b.cq) == 16);
	ibv_end_poll(b.cq); /* in the middle: the rest stays */
	for (int got = 0; got < 2; got += r)
		MUST((r = ibv_poll_cq(plain, 2 - got, wc + got)) >= 0);
	MUST(wc[0].wr_id == 4 && wc[1].wr_id == 5);
	MUST(ibv_resize_cq(plain, 300) == 0 && plain->cqe >= 300);
	good(&b, 6, IBV_WC_RECV);

	/* What was left is gone with a change to RESET, and not told by either kind of poll. */
	for (uint64_t id = 10; id < 15; id++)
		a_send(&a, &b, id);
	for (uint64_t id = 10; id < 15; id++)
		good(&a, id, IBV_WC_SEND);
	while ((r = ibv_start_poll(b.cq, &poll)) == ENOENT)
		;
	MUST(r == 0 && b.cq->wr_id == 10);
	while ((r = ibv_next_poll(b.cq)) == ENOENT)
		;
	MUST(r == 0 && b.cq->wr_id == 11);
	ibv_end_poll(b.cq);
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	MUST(ibv_modify_qp(b.qp, &reset, IBV_QP_STATE) == 0);
	MUST(ibv_start_poll(b.cq, &poll) == ENOENT && ibv_poll_cq(plain, 4, wc) == 0);
	MUST(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE) == 0);
	bring_to_init(a.qp);
	bring_to_init(b.qp);
	up(&a, &b);

	/* What did not come to pass says so. */
	receive(&b, 9, 0, 64);
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	MUST(ibv_modify_qp(b.qp, &err, IBV_QP_STATE) == 0);
	struct ibv_wc w = next(&b);
	MUST(w.wr_id == 9 && w.status == IBV_WC_WR_FLUSH_ERR);
	MUST(ibv_destroy_cq(plain) == EBUSY);
	destroy(&b);
	destroy(&a);
}

/* requests: each builder of a reliable queue pair, all that was built or nothing, and who has none. */
static void requests(void)
{
	struct end a = {0}, b = {0};
	make(&a, IBV_QPT_RC);
	make(&b, IBV_QPT_RC);
	REFUSED(queue_pair(&a, IBV_QPT_RC, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
	REFUSED(queue_pair(&a, IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE), EOPNOTSUPP);
	struct ibv_qp_init_attr attr = {.send_cq = ibv_cq_ex_to_cq(a.cq), .recv_cq = ibv_cq_ex_to_cq(a.cq), .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *plain = ibv_create_qp(a.pd, &attr);
	MUST(plain && !ibv_qp_to_qp_ex(plain) && ibv_destroy_qp(plain) == 0);
	up(&a, &b);

	uint64_t there = (uintptr_t)b.memory;
	strcpy(a.memory, "written");
	ibv_wr_rdma_write(begin(&a, 1), b.mr->rkey, there + 100);
	set(&a, 0, 8);
	a.x->wr_id = 2;
	ibv_wr_rdma_read(a.x, b.mr->rkey, there + 100);
	set(&a, 200, 8);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 1, IBV_WC_RDMA_WRITE);
	good(&a, 2, IBV_WC_RDMA_READ);
	MUST(strcmp(a.memory + 200, "written") == 0 && strcmp(b.memory + 100, "written") == 0);

	receive(&b, 3, 300, 64);
	ibv_wr_rdma_write_imm(begin(&a, 3), b.mr->rkey, there + 400, htonl(77));
	char text[128] = "inline and changed";
	ibv_wr_set_inline_data(a.x, text, sizeof text);
	memset(text, 'x', sizeof text);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 3, IBV_WC_RDMA_WRITE);
	struct ibv_wc w = good(&b, 3, IBV_WC_RECV_RDMA_WITH_IMM);
	MUST((w.wc_flags & IBV_WC_WITH_IMM) && ntohl(w.imm_data) == 77 && w.byte_len == 128 && strcmp(b.memory + 400, "inline and changed") == 0);

	receive(&b, 4, 300, 64);
	receive(&b, 5, 300, 64);
	ibv_wr_send_imm(begin(&a, 4), htonl(78));
	ibv_wr_send_imm(a.x, htonl(79));
	set(&a, 0, 8);
	MUST(ibv_wr_complete(a.x) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		good(&a, 4, IBV_WC_SEND);
		w = good(&b, 4 + i, IBV_WC_RECV);
		MUST(ntohl(w.imm_data) == 78 + i && w.byte_len == 8 * i);
	}
	MUST(strcmp(b.memory + 300, "written") == 0);

	uint64_t *here = (uint64_t *)(a.memory + 600), *word = (uint64_t *)(b.memory + 600);
	*word = 40;
	ibv_wr_atomic_fetch_add(begin(&a, 5), b.mr->rkey, there + 600, 2);
	set(&a, 600, 8);
	a.x->wr_id = 6;
	ibv_wr_atomic_cmp_swp(a.x, b.mr->rkey, there + 600, 42, 99);
	set(&a, 608, 8);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 5, IBV_WC_FETCH_ADD);
	good(&a, 6, IBV_WC_COMP_SWAP);
	MUST(here[0] == 40 && here[1] == 42 && *word == 99);

	receive(&b, 7, 700, 64);
	strcpy(a.memory + 700, "two ");
	strcpy(a.memory + 800, "pieces");
	ibv_wr_send(begin(&a, 7));
	struct ibv_sge list[3] = {{(uintptr_t)a.memory + 700, 4, a.mr->lkey}, {(uintptr_t)a.memory + 800, 7, a.mr->lkey}};
	ibv_wr_set_sge_list(a.x, 2, list);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 7, IBV_WC_SEND);
	MUST(good(&b, 7, IBV_WC_RECV).byte_len == 11 && strcmp(b.memory + 700, "two pieces") == 0);
	struct ibv_device_attr limits;
	MUST(ibv_query_device(device, &limits) == 0);
	memset(a.memory + 700, 0, 200);
	ibv_wr_rdma_read(begin(&a, 7), b.mr->rkey, there + 700);
	ibv_wr_set_sge_list(a.x, 2, list);
	MUST(ibv_wr_complete(a.x) == (limits.max_sge_rd > 1 ? 0 : EINVAL));
	if (limits.max_sge_rd > 1) {
		MUST(good(&a, 7, IBV_WC_RDMA_READ).byte_len == 11);
		MUST(strcmp(a.memory + 700, "two ") == 0 && strcmp(a.memory + 800, "pieces") == 0);
	}
	receive(&b, 8, 900, 64);
	ibv_wr_send(begin(&a, 8));
	struct ibv_data_buf bufs[2] = {{"in", 2}, {"line", 5}};
	ibv_wr_set_inline_data_list(a.x, 2, bufs);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 8, IBV_WC_SEND);
	MUST(good(&b, 8, IBV_WC_RECV).byte_len == 7 && strcmp(b.memory + 900, "inline") == 0);

	/* Nothing of what is given up, or wrong anywhere, is posted. */
	for (int how = 0; how < 4; how++) {
		ibv_wr_rdma_write(begin(&a, 20), b.mr->rkey, there + 1000);
		set(&a, 0, 8);
		switch (how) {
		case 0: ibv_wr_abort(a.x); continue;
		case 1:
			ibv_wr_rdma_write(a.x, b.mr->rkey, there + 1000);
			ibv_wr_set_sge_list(a.x, 3, list);
			break;
		case 2: /* more than the queue has */
			for (int i = 0; i < DEPTH; i++) {
				ibv_wr_rdma_write(a.x, b.mr->rkey, there + 1000);
				set(&a, 0, 8);
			}
			break;
		case 3: /* which only the device knows */
			ibv_wr_atomic_fetch_add(a.x, b.mr->rkey, there, 1);
			set(&a, 0, 4);
			break;
		}
		static const int told[] = {0, EINVAL, ENOMEM, EINVAL};
		MUST(ibv_wr_complete(a.x) == told[how]);
	}
	ibv_wr_rdma_read(begin(&a, 21), b.mr->rkey, there);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 21, IBV_WC_RDMA_READ); /* and none before it */
	MUST(b.memory[1000] == 0);
	/* As much as it has, unsignaled but for the last. */
	ibv_wr_start(a.x);
	for (int i = 0; i < DEPTH; i++) {
		a.x->wr_id = 100 + i;
		a.x->wr_flags = i == DEPTH - 1 ? IBV_SEND_SIGNALED : 0;
		ibv_wr_rdma_write(a.x, b.mr->rkey, there + 1000 + 8 * i);
		set(&a, 0, 8);
	}
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 100 + DEPTH - 1, IBV_WC_RDMA_WRITE);
	ibv_wr_rdma_read(begin(&a, 22), b.mr->rkey, there + 1000 + 8 * (DEPTH - 1));
	set(&a, 1000, 8);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 22, IBV_WC_RDMA_READ);
	MUST(strcmp(a.memory + 1000, "written") == 0);
	destroy(&a);
	destroy(&b);
}

static void datagrams(void)
{
	struct end a = {0}, b = {0};
	make(&a, IBV_QPT_UD);
	make(&b, IBV_QPT_UD);
	REFUSED(queue_pair(&a, IBV_QPT_UD, UD_OPS | IBV_QP_EX_WITH_RDMA_WRITE), EOPNOTSUPP);
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
	MUST(ibv_modify_qp(a.qp, &rtr, IBV_QP_STATE) == 0 && ibv_modify_qp(a.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
	MUST(ibv_modify_qp(b.qp, &rtr, IBV_QP_STATE) == 0);
	struct ibv_ah_attr to = to_self();
	struct ibv_ah *ah = ibv_create_ah(a.pd, &to);
	MUST(ah);
	receive(&b, 1, 0, 256);
	receive(&b, 2, 512, 256);
	strcpy(a.memory, "datagram");
	ibv_wr_send(begin(&a, 11));
	ibv_wr_set_ud_addr(a.x, ah, b.qp->qp_num, QKEY);
	set(&a, 0, 9);
	a.x->wr_id = 12;
	ibv_wr_send_imm(a.x, htonl(5));
	ibv_wr_set_ud_addr(a.x, ah, b.qp->qp_num, QKEY);
	ibv_wr_set_inline_data(a.x, a.memory, 9);
	MUST(ibv_wr_complete(a.x) == 0);
	good(&a, 11, IBV_WC_SEND);
	good(&a, 12, IBV_WC_SEND);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc w = good(&b, 1 + i, IBV_WC_RECV);
		MUST(w.src_qp == a.qp->qp_num && w.byte_len == 40 + 9 && (w.wc_flags & IBV_WC_GRH) && strcmp(b.memory + 512 * i + 40, "datagram") == 0);
		MUST(i == 0 || ntohl(w.imm_data) == 5);
	}
	ibv_destroy_ah(ah);
	destroy(&a);
	destroy(&b);
}

/* threads: four build on one queue pair, two poll each queue. */
enum { THREADS = 4, EACH = 2000 };
static struct end shared[2];
static _Atomic int room = DEPTH, polled[2];

static void *builds(void *arg)
{
	for (int i = 0; i < EACH; i++) {
		for (int r; (r = --room) < 0; room++)
			;
		ibv_wr_start(shared[0].x);
		shared[0].x->wr_id = (uintptr_t)arg;
		shared[0].x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write_imm(shared[0].x, shared[1].mr->rkey, (uintptr_t)shared[1].memory + 8 * (uintptr_t)arg, htonl(i));
		ibv_wr_set_inline_data(shared[0].x, &(uint64_t){i}, 8);
		MUST(ibv_wr_complete(shared[0].x) == 0);
	}
	return NULL;
}

static void *polls(void *arg)
{
	int which = (int)(intptr_t)arg;
	struct ibv_poll_cq_attr attr = {0};
	struct end *e = &shared[which];
	while (polled[which] < THREADS * EACH) {
		if (ibv_start_poll(e->cq, &attr) != 0)
			continue;
		do {
			MUST(e->cq->status == IBV_WC_SUCCESS);
			if (which == 0)
				room++;
			else
				receive(e, 0, 0, 0);
			polled[which]++;
		} while (ibv_next_poll(e->cq) == 0);
		ibv_end_poll(e->cq);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS + 4];
	make(&shared[0], IBV_QPT_RC);
	make(&shared[1], IBV_QPT_RC);
	up(&shared[0], &shared[1]);
	for (int i = 0; i < DEPTH; i++)
		receive(&shared[1], 0, 0, 0);
	for (intptr_t i = 0; i < THREADS + 4; i++)
		MUST(pthread_create(&t[i], NULL, i < THREADS ? builds : polls, (void *)(i < THREADS ? i : i % 2)) == 0);
	for (int i = 0; i < THREADS + 4; i++)
		MUST(pthread_join(t[i], NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		MUST(((uint64_t *)shared[1].memory)[i] == EACH - 1);
	destroy(&shared[0]);
	destroy(&shared[1]);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {{"queues", queues}, {"requests", requests}, {"datagrams", datagrams}, {"threads", threads}, {0}};
	return run(argc, argv, modes);
}
