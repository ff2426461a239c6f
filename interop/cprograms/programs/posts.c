/* How fast the extended verbs are beside those that they stand for: for `make c-bench`.

     posts wr|start   Writes of 8 octets between two queue pairs of this process, posted one at a time, and polled: by ibv_post_send
                      and ibv_poll_cq, or by ibv_wr_* instead of the one, or ibv_start_poll instead of the other. Both ways take
                      turns, so that what else the machine does is in both; prints the millions a second of the new, and of the old */
#include "extended.h"

#include <time.h>

enum { TURNS = 60, WRITES = 50000 /* a turn */, BATCH = 16 };

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

typedef void (*poster)(struct end *, struct end *);
typedef int (*poller)(struct end *);

/* How long the Writes of a turn take. */
static double turn(struct end *a, struct end *b, poster post, poller poll)
{
	double begun = seconds();
	for (int posted = 0, done = 0; done < WRITES; done += poll(a))
		for (; posted < WRITES && posted - done < DEPTH; posted++)
			post(a, b);
	return seconds() - begun;
}

int main(int argc, char **argv)
{
	MUST(argc == 2);
	bool wr = strcmp(argv[1], "wr") == 0;
	MUST(wr || strcmp(argv[1], "start") == 0);
	struct end a = {0}, b = {0};
	open_device();
	make(&a, IBV_QPT_RC);
	make(&b, IBV_QPT_RC);
	up(&a, &b);
	turn(&a, &b, post_send, poll_cq); /* the connection is made */
	double old = 0, new = 0;
	for (int i = 0; i < TURNS; i++) {
		old += turn(&a, &b, post_send, poll_cq);
		new += turn(&a, &b, wr ? post_wr : post_send, wr ? poll_cq : poll_start);
	}
	printf("measured %.3f beside %.3f\n", TURNS * WRITES / 1e6 / new, TURNS * WRITES / 1e6 / old);
	destroy(&a);
	destroy(&b);
	return 0;
}
