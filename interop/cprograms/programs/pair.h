/* Connections whose two ends are in one process, for behave.c and handlers.c. */
#ifndef PAIR_H
#define PAIR_H

#include "must.h"

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>

enum { DEPTH = 64, PORT = 7471 };

#ifndef START /* how a thread is started */
#define START(t, f, arg) pthread_create(t, NULL, f, arg)
#endif

static const char *host;
static struct rdma_cm_id *listener;

/* A connection, of which each end is a queue pair of this process. */
struct pair {
	struct rdma_cm_id *client, *server;
};

static struct ibv_qp_init_attr wanted(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static struct rdma_addrinfo *resolve(int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *res;
	char port[8];
	snprintf(port, sizeof port, "%d", PORT);
	MUST(rdma_getaddrinfo(host, port, &hints, &res) == 0);
	return res;
}

static void listen_(void)
{
	struct rdma_addrinfo *res = resolve(RAI_PASSIVE);
	struct ibv_qp_init_attr attr = wanted();
	MUST(rdma_create_ep(&listener, res, NULL, &attr) == 0);
	MUST(rdma_listen(listener, 64) == 0);
	rdma_freeaddrinfo(res);
}

static void *accept_(void *to)
{
	struct pair *p = to;
	MUST(rdma_get_request(listener, &p->server) == 0);
	MUST(rdma_accept(p->server, NULL) == 0);
	return NULL;
}

static struct rdma_cm_id *connect_(void)
{
	struct rdma_addrinfo *res = resolve(0);
	struct ibv_qp_init_attr attr = wanted();
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_id *id;
	MUST(rdma_create_ep(&id, res, NULL, &attr) == 0);
	MUST(rdma_connect(id, &param) == 0);
	rdma_freeaddrinfo(res);
	return id;
}

static void make(struct pair *p)
{
	pthread_t t;
	MUST(START(&t, accept_, p) == 0);
	p->client = connect_();
	MUST(pthread_join(t, NULL) == 0);
}

static void end(struct pair *p)
{
	rdma_disconnect(p->client);
	rdma_destroy_ep(p->client);
	rdma_destroy_ep(p->server);
}

/* Posts a Send; false if the queue is full. */
static bool try_send(struct rdma_cm_id *id, struct ibv_mr *mr, void *at, unsigned n)
{
	struct ibv_sge sge = {(uintptr_t)at, n, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	errno = ibv_post_send(id->qp, &wr, &bad);
	MUST(errno == 0 || errno == ENOMEM);
	return errno == 0;
}

static void send_(struct rdma_cm_id *id, struct ibv_mr *mr, void *at, unsigned n) { MUST(try_send(id, mr, at, n)); }

/* Sends n messages of size octets from one end of p to the other, and compares. */
static void traffic(struct pair *p, int n, unsigned size)
{
	unsigned char *a = malloc(size), *b = malloc(size);
	MUST(a && b);
	struct ibv_mr *out, *in;
	MUST(out = rdma_reg_msgs(p->client, a, size));
	MUST(in = rdma_reg_msgs(p->server, b, size));
	for (int i = 0; i < n; i++) {
		memset(a, i + 1, size);
		memset(b, 0, size);
		MUST(rdma_post_recv(p->server, NULL, b, size, in) == 0);
		send_(p->client, out, a, size);
		struct ibv_wc wc = completion(p->server->recv_cq);
		MUST(wc.status == IBV_WC_SUCCESS && wc.byte_len == size && memcmp(a, b, size) == 0);
		MUST(completion(p->client->send_cq).status == IBV_WC_SUCCESS);
	}
	rdma_dereg_mr(out);
	rdma_dereg_mr(in);
	free(a);
	free(b);
}

#endif
