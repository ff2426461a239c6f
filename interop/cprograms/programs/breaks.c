/* What a program sees of a fault plan (docs/lab.md): it does the same each time, and says of each verb that fails, or takes its time,
   which that was; and of a completion, how it ended. It ends with 0 whatever fails. */
#include "states.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

enum { TIMES = 3, WRITES = 6, LATE_MS = 400 };

static struct timespec begun;
static bool seen; /* something has been said */

static void begin(void) { clock_gettime(CLOCK_MONOTONIC, &begun); }

/* Says what became of call number n of a verb that has ended with error, an errno or 0. */
static bool told(const char *verb, int n, int error)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long ms = (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
	if (error || ms >= LATE_MS) {
		printf("%s %d: %s%s\n", verb, n, error ? strerror(error) : "succeeds", ms >= LATE_MS ? ", late" : "");
		seen = true;
	}
	return error == 0;
}

/* Calls something that returns a pointer, three times, and keeps the last. */
#define THRICE(verb, to, call)                                                                                             \
	for (int n = 1; n <= TIMES; n++) {                                                                                 \
		begin();                                                                                                   \
		errno = 0;                                                                                                 \
		void *got = (call);                                                                                        \
		told(verb, n, got ? 0 : errno);                                                                            \
		if (got)                                                                                                   \
			(to) = got;                                                                                        \
	}

static struct ibv_context *context;

static void open_first(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	MUST(list && n > 0);
	for (int i = 1; i <= TIMES && !context; i++) {
		begin();
		errno = 0;
		context = ibv_open_device(list[0]);
		begin(); /* the first loads the engine */
		told("ibv_open_device", i, context ? 0 : errno);
	}
	ibv_free_device_list(list);
	MUST(context);
}

int main(void)
{
	static char memory[4096];
	open_first();
	struct ibv_pd *pd = NULL;
	struct ibv_cq *cq = NULL;
	struct ibv_mr *mr = NULL;
	struct ibv_qp *qp = NULL, *first = NULL;
	struct ibv_port_attr port;
	union ibv_gid gid;
	for (int n = 1; n <= TIMES; n++) {
		begin();
		told("ibv_query_port", n, ibv_query_port(context, 1, &port));
	}
	THRICE("ibv_alloc_pd", pd, ibv_alloc_pd(context));
	THRICE("ibv_create_cq", cq, ibv_create_cq(context, 64, NULL, NULL, 0));
	THRICE("ibv_reg_mr", mr, ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS));
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	for (int n = 1; n <= TIMES; n++) {
		begin();
		errno = 0;
		struct ibv_qp *q = ibv_create_qp(pd, &attr);
		told("ibv_create_qp", n, q ? 0 : errno);
		if (q && first)
			qp = q;
		else if (q)
			first = q;
	}
	MUST(first && qp && mr && ibv_query_gid(context, 1, 0, &gid) == 0);

	struct ibv_qp *ends[2] = {first, qp};
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr init = to_init(), rtr = to_rtr(&gid, ends[!i]->qp_num, retries), rts = to_rts(retries);
		struct {
			struct ibv_qp_attr *attr;
			int mask;
		} all[] = {{&init, INIT_MASK}, {&rtr, RTR_MASK}, {&rts, RTS_MASK}};
		for (int n = 0; n < 3; n++) {
			begin();
			if (!told("ibv_modify_qp", 3 * i + n + 1, ibv_modify_qp(ends[i], all[n].attr, all[n].mask)))
				MUST((errno = ibv_modify_qp(ends[i], all[n].attr, all[n].mask)) == 0);
		}
	}
	for (int n = 1; n <= WRITES; n++) {
		struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
		struct ibv_send_wr wr = {
			.wr_id = (uint64_t)n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)memory + 64, mr->rkey},
		}, *bad;
		if (!told("ibv_post_send", n, ibv_post_send(first, &wr, &bad)))
			break;
		struct ibv_wc wc = completion(cq);
		MUST(wc.wr_id == (uint64_t)n);
		if (wc.status == IBV_WC_SUCCESS)
			continue;
		printf("Write %d: %s\n", n, ibv_wc_status_str(wc.status));
		seen = true;
	}
	struct ibv_qp_attr now;
	MUST((errno = ibv_query_qp(first, &now, IBV_QP_STATE, &attr)) == 0);
	if (now.qp_state == IBV_QPS_ERR)
		printf("the queue pair is in ERR\n");
	if (!seen)
		printf("nothing\n");
	printf("breaks: ok\n");
	return 0;
}
