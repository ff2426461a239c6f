/* How fast the extended verbs are beside those that they stand for: for `make c-bench`.

     posts send|wr poll|start   Writes of 8 octets between two queue pairs of this process, posted one at a time by
                                ibv_post_send or ibv_wr_*, and polled by ibv_poll_cq or ibv_start_poll; prints the
                                millions a second */
#include "extended.h"

#include <time.h>

enum { WRITES = 1000000, BATCH = 16 };

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void post_send(struct end *a, struct end *b)
{
	struct ibv_sge sge = {(uintptr_t)a->memory, 8, a->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
	wr.wr.rdma.remote_addr = (uintptr_t)b->memory;
	wr.wr.rdma.rkey = b->mr->rkey;
	MUST(ibv_post_send(a->qp, &wr, &bad) == 0);
}

static void post_wr(struct end *a, struct end *b)
{
	ibv_wr_rdma_write(begin(a, 1), b->mr->rkey, (uintptr_t)b->memory);
	set(a, 0, 8);
	MUST(ibv_wr_complete(a->x) == 0);
}

static int poll_cq(struct end *a)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(ibv_cq_ex_to_cq(a->cq), BATCH, wc);
	for (int i = 0; i < n; i++)
		MUST(wc[i].wr_id == 1 && wc[i].status == IBV_WC_SUCCESS);
	return n;
}

static int poll_start(struct end *a)
{
	struct ibv_poll_cq_attr attr = {0};
	int n = 0, r = ibv_start_poll(a->cq, &attr);
	if (r == ENOENT)
		return 0;
	for (; r == 0; r = n < BATCH ? ibv_next_poll(a->cq) : ENOENT) {
		MUST(a->cq->wr_id == 1 && a->cq->status == IBV_WC_SUCCESS);
		n++;
	}
	MUST(r == ENOENT);
	ibv_end_poll(a->cq);
	return n;
}

int main(int argc, char **argv)
{
	MUST(argc == 3);
	void (*post)(struct end *, struct end *) = strcmp(argv[1], "wr") == 0 ? post_wr : post_send;
	int (*poll)(struct end *) = strcmp(argv[2], "start") == 0 ? poll_start : poll_cq;
	struct end a = {0}, b = {0};
	open_device();
	make(&a, IBV_QPT_RC);
	make(&b, IBV_QPT_RC);
	up(&a, &b);
	double begun = 0;
	for (int posted = 0, done = 0; done < WRITES; done += poll(&a)) {
		if (begun == 0 && done > 0) /* behind the connection */
			begun = seconds();
		for (; posted < WRITES && posted - done < DEPTH; posted++)
			post(&a, &b);
	}
	printf("measured %.3f\n", WRITES / 1e6 / (seconds() - begun));
	destroy(&a);
	destroy(&b);
	return 0;
}
