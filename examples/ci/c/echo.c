/* Two processes, a message there and back over an RDMA device. Ends with 0 if it came back as it was sent. */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4096 };

static void need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static struct ibv_qp_init_attr one_of_each(void)
{
	struct ibv_qp_init_attr a = { .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };

	a.sq_sig_all = 1;
	return a;
}

static struct rdma_cm_id *endpoint(int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *at;
	struct ibv_qp_init_attr attr = one_of_each();
	struct rdma_cm_id *id;

	need(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &at) == 0, "rdma_getaddrinfo");
	need(rdma_create_ep(&id, at, NULL, &attr) == 0, "rdma_create_ep");
	rdma_freeaddrinfo(at);
	return id;
}

/* receive waits for the message that the receive of buf has been posted for. */
static void receive(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == SIZE, "receive");
}

static void send_all(struct rdma_cm_id *id, char *buf, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	need(rdma_post_send(id, NULL, buf, SIZE, mr, 0) == 0, "rdma_post_send");
	need(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "send");
}

static int serve(int ready)
{
	static char buf[SIZE];
	struct rdma_cm_id *listener = endpoint(RAI_PASSIVE), *id;
	struct ibv_mr *mr;

	need(rdma_listen(listener, 1) == 0, "rdma_listen");
	need(write(ready, "", 1) == 1, "write");
	need(rdma_get_request(listener, &id) == 0, "rdma_get_request");
	mr = rdma_reg_msgs(id, buf, SIZE);
	need(mr != NULL, "rdma_reg_msgs");
	need(rdma_post_recv(id, NULL, buf, SIZE, mr) == 0, "rdma_post_recv");
	need(rdma_accept(id, NULL) == 0, "rdma_accept");
	receive(id);
	send_all(id, buf, mr);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	return 0;
}

static void call(void)
{
	static char out[SIZE], in[SIZE];
	struct rdma_cm_id *id = endpoint(0);
	struct ibv_mr *from = rdma_reg_msgs(id, out, SIZE), *to = rdma_reg_msgs(id, in, SIZE);

	need(from != NULL && to != NULL, "rdma_reg_msgs");
	for (int i = 0; i < SIZE; i++)
		out[i] = (char)(i * 7);
	need(rdma_post_recv(id, NULL, in, SIZE, to) == 0, "rdma_post_recv");
	need(rdma_connect(id, NULL) == 0, "rdma_connect");
	send_all(id, out, from);
	receive(id);
	need(memcmp(in, out, SIZE) == 0, "the message that came back is another");
	printf("%d octets there and back over %s\n", SIZE, ibv_get_device_name(id->verbs->device));
	rdma_disconnect(id);
	rdma_dereg_mr(from);
	rdma_dereg_mr(to);
	rdma_destroy_ep(id);
}

int main(void)
{
	int ready[2], status;
	pid_t server;
	char c;

	need(pipe(ready) == 0, "pipe");
	server = fork(); /* before any of the two has a device */
	need(server >= 0, "fork");
	if (server == 0) {
		close(ready[0]);
		return serve(ready[1]);
	}
	close(ready[1]);
	need(read(ready[0], &c, 1) == 1, "the server ended");
	call();
	need(waitpid(server, &status, 0) == server, "waitpid");
	return status == 0 ? 0 : 1;
}
