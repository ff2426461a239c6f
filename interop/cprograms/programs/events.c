/* The asynchronous events of queue pairs, completion queues and shared receive queues, each as often as an adapter has it: `events`
   prints each as ibv_asyncwatch does, then "events: ok", and ends with 0, or says which line did not hold. */
#include "plain.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* The next event, which is of that type and object, and is not acknowledged. */
static struct ibv_async_event next(enum ibv_event_type type, void *object)
{
	struct ibv_async_event e;
	MUST(ibv_get_async_event(context, &e) == 0);
	printf("%s\n", ibv_event_type_str(e.event_type));
	if (e.event_type != type)
		fprintf(stderr, "want %s\n", ibv_event_type_str(type));
	MUST(e.event_type == type && (void *)e.element.qp == object);
	return e;
}

static void is(enum ibv_event_type type, void *object)
{
	struct ibv_async_event e = next(type, object);
	ibv_ack_async_event(&e);
}

/* Nothing more has come, nor comes soon. */
static void quiet(void)
{
	struct pollfd p = {.fd = context->async_fd, .events = POLLIN};
	if (poll(&p, 1, 50) != 0) {
		struct ibv_async_event e;
		MUST(ibv_get_async_event(context, &e) == 0);
		fprintf(stderr, "too many: %s\n", ibv_event_type_str(e.event_type));
		exit(1);
	}
}

static void to_error(struct end *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	MUST((errno = ibv_modify_qp(e->qp, &a, IBV_QP_STATE)) == 0);
}

/* What comes before the change to RTS is told, once. */
static void established(void)
{
	struct end a, b;
	create(&a);
	create(&b);
	up(&a, &b, retries);
	struct ibv_qp_attr init = to_init(), rtr = to_rtr(&gid, a.qp->qp_num, retries), rts = to_rts(retries);
	MUST((errno = ibv_modify_qp(b.qp, &init, INIT_MASK)) == 0);
	MUST((errno = ibv_modify_qp(b.qp, &rtr, RTR_MASK)) == 0);
	talk(&a, &b);
	is(IBV_EVENT_COMM_EST, b.qp);
	talk(&a, &b);
	MUST((errno = ibv_modify_qp(b.qp, &rts, RTS_MASK)) == 0);
	talk(&b, &a);
	quiet();
	destroy(&a);
	destroy(&b);
	quiet();
}

/* The limit of a shared receive queue, once each time that it is set; and the last receive of a queue pair that has ended. */
static void shared(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq;
	MUST(srq = ibv_create_srq(pd, &attr));
	struct end a, b;
	create(&a);
	create_with(&b, srq);
	up(&a, &b, retries);
	up(&b, &a, retries);
	for (int i = 0; i < 3; i++)
		post_recv(&b, 7);
	for (int i = 0; i < 2; i++) {
		struct ibv_srq_attr limit = {.srq_limit = 3};
		MUST((errno = ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT)) == 0);
		post_send(&a, 8, IBV_SEND_SIGNALED);
		MUST(completion(b.cq).wr_id == 7 && completion(a.cq).wr_id == 8);
		is(IBV_EVENT_SRQ_LIMIT_REACHED, srq);
		quiet();
		post_recv(&b, 7);
	}
	for (int i = 0; i < 2; i++) { /* then nothing crosses the close */
		talk(&b, &a);
		talk(&a, &b);
	}
	destroy(&a);
	quiet(); /* nothing is lost, so b hears nothing */
	to_error(&b);
	is(IBV_EVENT_QP_LAST_WQE_REACHED, b.qp);
	to_error(&b);
	quiet();
	again(&b); /* another life, which nobody answers */
	up_to(&b, &gid, b.qp->qp_num + 1, retries);
	post_send(&b, 9, IBV_SEND_SIGNALED);
	MUST(completion(b.cq).status == IBV_WC_RETRY_EXC_ERR);
	is(IBV_EVENT_QP_LAST_WQE_REACHED, b.qp);
	destroy(&b);
	MUST(ibv_destroy_srq(srq) == 0);
	quiet();
}

/* A Write with a key that is none, and an Atomic that is not aligned, at the end that has the memory. */
static void requests(bool atomic)
{
	_Alignas(8) struct end a, b;
	create(&a);
	create(&b);
	up(&a, &b, retries);
	up(&b, &a, retries);
	talk(&a, &b);
	struct ibv_sge sge = {(uintptr_t)a.text, 8, a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
	if (atomic) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = (uintptr_t)b.text + 1;
		wr.wr.atomic.rkey = b.mr->rkey;
	} else {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)b.text;
		wr.wr.rdma.rkey = b.mr->rkey ^ 1;
	}
	MUST((errno = ibv_post_send(a.qp, &wr, &bad)) == 0);
	bool iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP; /* the end that asked has an event, too */
	MUST(completion(a.cq).status != IBV_WC_SUCCESS || (iwarp && !atomic));
	for (bool mine = !iwarp, theirs = false; !mine || !theirs;) {
		struct ibv_async_event e;
		MUST(ibv_get_async_event(context, &e) == 0);
		if (e.element.qp == a.qp && !mine) {
			MUST(mine = e.event_type == IBV_EVENT_QP_FATAL);
		} else {
			MUST(!theirs && e.element.qp == b.qp && e.event_type == (atomic ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_ACCESS_ERR));
			printf("%s\n", ibv_event_type_str(e.event_type));
			theirs = true;
		}
		ibv_ack_async_event(&e);
	}
	quiet();
	destroy(&a);
	destroy(&b);
	quiet();
}

/* A completion queue that is too full ends the queue pair. */
static void overflow(void)
{
	struct end a, b;
	create(&a);
	create(&b);
	struct ibv_cq *small;
	MUST(small = ibv_create_cq(context, 1, NULL, NULL, 0));
	struct ibv_qp_init_attr attr = {
		.send_cq = a.cq, .recv_cq = small, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	MUST(ibv_destroy_qp(b.qp) == 0);
	MUST(b.qp = ibv_create_qp(pd, &attr));
	up(&a, &b, retries);
	up(&b, &a, retries);
	int n = small->cqe + 2;
	for (int i = 0; i < n; i++)
		post_recv(&b, 7);
	for (int i = 0; i < n; i++)
		post_send(&a, 8, 0);
	bool cq = false, qp = false;
	while (!cq || !qp) {
		struct ibv_async_event e;
		MUST(ibv_get_async_event(context, &e) == 0);
		if (e.event_type == IBV_EVENT_CQ_ERR && !cq && e.element.cq == small)
			cq = true;
		else if (e.event_type == IBV_EVENT_QP_FATAL && !qp && e.element.qp == b.qp)
			qp = true;
		else if (e.element.qp != a.qp) /* with iWARP its connection is over, too */
			MUST(!"another event");
		printf("%s\n", ibv_event_type_str(e.event_type));
		ibv_ack_async_event(&e);
	}
	destroy(&b);
	destroy(&a);
	MUST(ibv_destroy_cq(small) == 0);
}

/* A destroyed object waits until all of its events that were read are acknowledged, and for no other. */
static atomic_bool destroyed;

static void *destroys(void *e)
{
	destroy(e);
	destroyed = true;
	return NULL;
}

static void acknowledged(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq;
	MUST(srq = ibv_create_srq(pd, &attr));
	struct end one, two;
	create_with(&one, srq);
	create_with(&two, srq);
	to_error(&one);
	struct ibv_async_event e = next(IBV_EVENT_QP_LAST_WQE_REACHED, one.qp);
	to_error(&two);
	destroy(&two); /* its event was not read */
	quiet();
	pthread_t t;
	MUST(pthread_create(&t, NULL, destroys, &one) == 0);
	usleep(100000);
	MUST(!destroyed);
	ibv_ack_async_event(&e);
	MUST(pthread_join(t, NULL) == 0 && destroyed);
	MUST(ibv_destroy_srq(srq) == 0);
}

int main(void)
{
	open_device();
	established();
	shared();
	requests(false);
	requests(true);
	overflow();
	acknowledged();
	quiet();
	close_device();
	printf("events: ok\n");
	return 0;
}
