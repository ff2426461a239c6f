/* Ends that an InfiniBand adapter gives, of queue pairs that are brought up by hand: `ends MODE` prints "MODE: ok" and ends with 0, or
   says which line did not hold. Both ends of each connection are in this process. */
#include "plain.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two Sends of q end, the first with status, the second flushed, within seconds; a receive flushes, and q is in ERR. */
static void ends_with(struct end *q, enum ibv_wc_status status, double seconds)
{
	double begun = now();
	post_recv(q, 1);
	post_send(q, 2, 0);
	post_send(q, 3, IBV_SEND_SIGNALED);
	enum ibv_wc_status got[4] = {0};
	for (int i = 0; i < 3; i++) {
		struct ibv_wc wc = completion(q->cq);
		MUST(wc.wr_id <= 3 && wc.qp_num == q->qp->qp_num);
		got[wc.wr_id] = wc.status;
	}
	MUST(got[1] == IBV_WC_WR_FLUSH_ERR && got[2] == status && got[3] == IBV_WC_WR_FLUSH_ERR);
	MUST(now() - begun < seconds);
	MUST(state(q) == IBV_QPS_ERR);
}

/* number: the client was told a wrong number, the server the right one. */
static void number(void)
{
	struct end a, b;
	create(&a);
	create(&b);
	up(&b, &a, retries);
	up_to(&a, &gid, b.qp->qp_num + 1, retries);
	ends_with(&a, IBV_WC_RETRY_EXC_ERR, 30);
	MUST(state(&b) == IBV_QPS_RTS);
	again(&a);
	up(&a, &b, retries);
	talk(&a, &b);
	destroy(&a);
	destroy(&b);
}

/* gid: nobody is there. */
static void wrong_gid(void)
{
	struct end a, b;
	create(&a);
	create(&b);
	union ibv_gid other = gid;
	other.raw[15] ^= 1;
	up_to(&a, &other, b.qp->qp_num, retries);
	ends_with(&a, IBV_WC_RETRY_EXC_ERR, 30);
	destroy(&a);
	destroy(&b);
}

/* gone: the peer's queue pair is destroyed. */
static void gone(void)
{
	struct end a, b;
	create(&a);
	create(&b);
	uint32_t n = b.qp->qp_num;
	destroy(&b);
	up_to(&a, &gid, n, retries);
	ends_with(&a, IBV_WC_RETRY_EXC_ERR, 30);
	destroy(&a);
}

/* silent: something else listens there, and says nothing. */
static void silent(void)
{
	struct end a;
	create(&a);
	struct sockaddr_in at = {.sin_family = AF_INET};
	memcpy(&at.sin_addr, gid.raw + 12, 4);
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	MUST(fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 8) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0);
	up_to(&a, &gid, (uint32_t)ntohs(at.sin_port) << 8 | 255, retries);
	ends_with(&a, IBV_WC_RETRY_EXC_ERR, 30);
	close(fd);
	destroy(&a);
}

/* rnr: the peer has a receive for the first of three Sends, and the program allows two retries. */
static void rnr(void)
{
	struct end a, b;
	struct patience few = retries;
	few.rnr_retry = 2;
	create(&a);
	create(&b);
	up(&a, &b, few);
	up(&b, &a, retries);
	talk(&a, &b);
	post_recv(&b, 1);
	post_send(&a, 4, IBV_SEND_SIGNALED);
	struct ibv_wc wc = completion(a.cq);
	MUST(wc.wr_id == 4 && wc.status == IBV_WC_SUCCESS);
	ends_with(&a, IBV_WC_RNR_RETRY_EXC_ERR, 30);
	MUST(completion(b.cq).wr_id == 1);
	destroy(&a);
	destroy(&b);
}

/* late: 7 is for ever, and the receive comes late. */
static void late(void)
{
	struct end a, b;
	create(&a);
	create(&b);
	up(&a, &b, retries);
	up(&b, &a, retries);
	talk(&a, &b);
	post_send(&a, 4, IBV_SEND_SIGNALED);
	sleep(2);
	post_recv(&b, 1);
	MUST(completion(b.cq).wr_id == 1);
	struct ibv_wc wc = completion(a.cq);
	MUST(wc.wr_id == 4 && wc.status == IBV_WC_SUCCESS);
	talk(&b, &a);
	destroy(&a);
	destroy(&b);
}

/* refused: what RoCE adapters do not take; and what they take goes on from there. */
static void refused(void)
{
	struct end a, b;
	create(&a);
	create(&b);
	struct ibv_qp_attr init = to_init(), rtr = to_rtr(&gid, b.qp->qp_num, retries), rts = to_rts(retries), bad;
	MUST(ibv_modify_qp(a.qp, &init, INIT_MASK & ~IBV_QP_ACCESS_FLAGS) == EINVAL);
	MUST(ibv_modify_qp(a.qp, &rtr, RTR_MASK) == EINVAL); /* from RESET there is no way */
	MUST(ibv_modify_qp(a.qp, &init, INIT_MASK) == 0);
	MUST(ibv_modify_qp(a.qp, &rtr, RTR_MASK & ~IBV_QP_RQ_PSN) == EINVAL);
	MUST(ibv_modify_qp(a.qp, &rtr, RTR_MASK | IBV_QP_TIMEOUT) == EINVAL);
	bad = rtr;
	bad.ah_attr.is_global = 0;
	MUST(ibv_modify_qp(a.qp, &bad, RTR_MASK) == EINVAL);
	bad = rtr;
	bad.path_mtu = 1024;
	MUST(ibv_modify_qp(a.qp, &bad, RTR_MASK) == EINVAL);
	MUST(ibv_modify_qp(a.qp, &rtr, RTR_MASK) == 0);
	MUST(ibv_modify_qp(a.qp, &rts, RTS_MASK & ~IBV_QP_SQ_PSN) == EINVAL);
	MUST(ibv_modify_qp(a.qp, &rts, RTS_MASK) == 0);
	up(&b, &a, retries);
	talk(&a, &b);
	/* a Write, which the peer's queue pair does not allow */
	struct ibv_qp_attr none = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	MUST(ibv_modify_qp(b.qp, &none, IBV_QP_ACCESS_FLAGS) == 0);
	struct ibv_sge sge = {(uintptr_t)a.text, 8, a.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)b.text, b.mr->rkey},
	}, *failed;
	MUST(ibv_post_send(a.qp, &wr, &failed) == 0);
	struct ibv_wc wc = completion(a.cq);
	MUST(wc.wr_id == 5 && wc.status == IBV_WC_REM_ACCESS_ERR);
	destroy(&a);
	destroy(&b);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"number", number}, {"gid", wrong_gid}, {"gone", gone}, {"silent", silent}, {"rnr", rnr}, {"late", late}, {"refused", refused}};
	if (argc == 2)
		for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
			if (strcmp(argv[1], modes[i].name) == 0) {
				open_device();
				modes[i].run();
				close_device();
				printf("%s: ok\n", modes[i].name);
				return 0;
			}
	fprintf(stderr, "usage: ends number|gid|gone|silent|rnr|late|refused\n");
	return 2;
}
