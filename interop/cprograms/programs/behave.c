/* What a C program may expect of its process, on librdmacm and libibverbs alone: `behave MODE HOST` prints "MODE: ok" and ends
   with 0, or says which line did not hold. Both ends of each connection are in this process, but for MODE exit. */
#define _GNU_SOURCE
#include "pair.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, MESSAGES = 500, MANY = 500 };

/* threads: sixteen post and poll, on one queue pair and then each on its own. */
struct message {
	uint32_t thread, number;
};

static struct shared {
	struct pair pair;
	struct ibv_mr *out, *in;
	struct message sent[THREADS][MESSAGES], got[THREADS * MESSAGES];
	_Atomic unsigned done, arrived;
} shared;

static void *sends(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		shared.sent[me][i] = (struct message){me, i};
		while (!try_send(shared.pair.client, shared.out, &shared.sent[me][i], sizeof(struct message))) {
			struct ibv_wc wc;
			if (ibv_poll_cq(shared.pair.client->send_cq, 1, &wc) == 1) {
				MUST(wc.status == IBV_WC_SUCCESS);
				shared.done++;
			}
		}
	}
	return NULL;
}

static void *receives(void *arg)
{
	(void)arg;
	while (shared.arrived < THREADS * MESSAGES) {
		struct ibv_wc wc;
		if (ibv_poll_cq(shared.pair.server->recv_cq, 1, &wc) != 1)
			continue;
		MUST(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(struct message));
		unsigned n = ++shared.arrived;
		if (n + DEPTH <= THREADS * MESSAGES)
			MUST(rdma_post_recv(shared.pair.server, (void *)(uintptr_t)(n + DEPTH - 1), &shared.got[n + DEPTH - 1], sizeof(struct message), shared.in) == 0);
	}
	return NULL;
}

static void on_one(void)
{
	make(&shared.pair);
	MUST(shared.out = rdma_reg_msgs(shared.pair.client, shared.sent, sizeof shared.sent));
	MUST(shared.in = rdma_reg_msgs(shared.pair.server, shared.got, sizeof shared.got));
	for (uintptr_t i = 0; i < DEPTH; i++)
		MUST(rdma_post_recv(shared.pair.server, (void *)i, &shared.got[i], sizeof(struct message), shared.in) == 0);
	pthread_t t[THREADS], r[4];
	for (uintptr_t i = 0; i < THREADS; i++)
		MUST(pthread_create(&t[i], NULL, sends, (void *)i) == 0);
	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&r[i], NULL, receives, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_join(t[i], NULL) == 0);
	for (int i = 0; i < 4; i++)
		MUST(pthread_join(r[i], NULL) == 0);
	while (shared.done < THREADS * MESSAGES) {
		MUST(completion(shared.pair.client->send_cq).status == IBV_WC_SUCCESS);
		shared.done++;
	}
	static bool seen[THREADS][MESSAGES];
	for (int i = 0; i < THREADS * MESSAGES; i++) {
		struct message m = shared.got[i];
		MUST(m.thread < THREADS && m.number < MESSAGES && !seen[m.thread][m.number]);
		seen[m.thread][m.number] = true; /* as many as there are, so each came once */
	}
	end(&shared.pair);
}

static void *has_own(void *p)
{
	traffic(p, 200, 1000);
	return NULL;
}

static void threads(void)
{
	on_one();
	struct pair p[THREADS];
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		make(&p[i]);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&t[i], NULL, has_own, &p[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_join(t[i], NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		end(&p[i]);
}

/* many: a thousand queue pairs. */
static void many(void)
{
	static struct pair p[MANY];
	for (int i = 0; i < MANY; i++)
		make(&p[i]);
	for (int i = 0; i < MANY; i++)
		traffic(&p[i], 2, 256);
	for (int i = 0; i < MANY; i++)
		end(&p[i]);
}

/* immediate: a Send with payload and Immediate Data is one completion, in order with others; an iWARP adapter has none. */
static void immediate(void)
{
	enum { SIZE = 3000, MOST = 8 };
	static unsigned char a[SIZE], b[MOST][SIZE];
	struct pair p;
	make(&p);
	struct ibv_mr *out, *in;
	MUST(out = rdma_reg_msgs(p.client, a, sizeof a));
	MUST(in = rdma_reg_msgs(p.server, b, sizeof b));
	for (int i = 0; i < MOST; i++)
		MUST(rdma_post_recv(p.server, NULL, b[i], SIZE, in) == 0);
	memset(a, 0xa5, sizeof a);
	bool iwarp = p.client->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	for (uint32_t i = 0; i < MOST; i++) {
		unsigned size = i * SIZE / MOST; /* the first has none */
		bool with = i % 2 == 0;
		struct ibv_sge sge = {(uintptr_t)a, size, out->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = with ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, .imm_data = htonl(i)}, *bad;
		int refused = ibv_post_send(p.client->qp, &wr, &bad);
		if (with && iwarp && size > 0) {
			MUST(refused == EOPNOTSUPP);
			continue;
		}
		MUST(refused == 0);
		struct ibv_wc wc = completion(p.server->recv_cq);
		MUST(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.byte_len == size);
		MUST(!!(wc.wc_flags & IBV_WC_WITH_IMM) == with && (!with || wc.imm_data == htonl(i)));
		MUST(iwarp || memcmp(a, b[i], size) == 0);
		MUST(completion(p.client->send_cq).status == IBV_WC_SUCCESS);
	}
	rdma_dereg_mr(out);
	rdma_dereg_mr(in);
	end(&p);
}

/* wake: who blocks in ibv_get_cq_event, in poll or in rdma_get_cm_event wakes up. */
static void *waits(void *arg)
{
	struct pair *p = arg;
	struct ibv_cq *cq;
	void *context;
	MUST(ibv_get_cq_event(p->server->recv_cq_channel, &cq, &context) == 0);
	MUST(cq == p->server->recv_cq);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void wake(void)
{
	struct pair p;
	make(&p);
	static char a[64], b[64];
	struct ibv_mr *out, *in;
	MUST(out = rdma_reg_msgs(p.client, a, sizeof a));
	MUST(in = rdma_reg_msgs(p.server, b, sizeof b));
	for (int i = 0; i < 100; i++) {
		pthread_t t;
		MUST(rdma_post_recv(p.server, NULL, b, sizeof b, in) == 0);
		MUST(ibv_req_notify_cq(p.server->recv_cq, 0) == 0);
		MUST(pthread_create(&t, NULL, waits, &p) == 0);
		if (i % 2)
			usleep(200); /* it blocks already, or does not yet */
		send_(p.client, out, a, sizeof a);
		MUST(pthread_join(t, NULL) == 0);
		MUST(completion(p.server->recv_cq).status == IBV_WC_SUCCESS);
		MUST(completion(p.client->send_cq).status == IBV_WC_SUCCESS);
	}
	/* poll, and a descriptor that does not block */
	int fd = p.server->recv_cq_channel->fd;
	struct pollfd poll_ = {.fd = fd, .events = POLLIN};
	MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
	MUST(ibv_req_notify_cq(p.server->recv_cq, 0) == 0);
	struct ibv_cq *cq;
	void *context;
	MUST(ibv_get_cq_event(p.server->recv_cq_channel, &cq, &context) == -1 && errno == EAGAIN);
	MUST(poll(&poll_, 1, 0) == 0);
	MUST(rdma_post_recv(p.server, NULL, b, sizeof b, in) == 0);
	send_(p.client, out, a, sizeof a);
	MUST(poll(&poll_, 1, -1) == 1);
	MUST(ibv_get_cq_event(p.server->recv_cq_channel, &cq, &context) == 0);
	ibv_ack_cq_events(cq, 1);
	MUST(completion(p.server->recv_cq).status == IBV_WC_SUCCESS);
	MUST(completion(p.client->send_cq).status == IBV_WC_SUCCESS);
	/* the end of one end wakes a waiter for events of the other */
	rdma_dereg_mr(out);
	rdma_disconnect(p.client);
	rdma_destroy_ep(p.client);
	struct rdma_cm_event *event;
	MUST(rdma_get_cm_event(p.server->channel, &event) == 0);
	MUST(event->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(event);
	rdma_dereg_mr(in);
	rdma_destroy_ep(p.server);
}

/* signals: the program's handlers, installed before the device is opened and after, are its own. */
static _Atomic int interrupts, alarms, faults;
static sigjmp_buf back;

static void interrupted(int s)
{
	(void)s;
	interrupts++;
}

static void alarmed(int s)
{
	(void)s;
	alarms++;
}

static void fault(int s)
{
	(void)s;
	faults++;
	siglongjmp(back, 1);
}

static void fault_on_purpose(void)
{
	volatile char *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(hole != MAP_FAILED);
	int before = faults;
	if (sigsetjmp(back, 1) == 0)
		*hole = 1;
	MUST(faults == before + 1);
	munmap((void *)hole, 4096);
}

static void handle(int s, void (*f)(int), int flags)
{
	struct sigaction a = {.sa_handler = f, .sa_flags = flags};
	MUST(sigaction(s, &a, NULL) == 0);
}

static void signals(void)
{
	for (int round = 0; round < 2; round++) {
		struct pair p;
		make(&p);
		handle(SIGINT, interrupted, 0);
		handle(SIGALRM, alarmed, 0);
		handle(SIGSEGV, fault, 0);
		fault_on_purpose();
		struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
		MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
		for (int i = 0; i < 50; i++) {
			traffic(&p, 20, 3000);
			MUST(kill(getpid(), SIGINT) == 0);
		}
		MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
		fault_on_purpose();
		end(&p);
	}
	MUST(interrupts > 0 && alarms > 0 && faults == 4);
}

/* unmap: memory that is unmapped while it is registered costs the request, and not the process. */
static void *region(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p != MAP_FAILED);
	memset(p, 1, n);
	return p;
}

/* What was there is gone, and nothing else comes there. */
static void take_away(void *p, size_t n)
{
	MUST(mmap(p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
}

enum what { SEND, RECV, WRITE, READ };

/* One request whose memory vanishes: near of who posts it, far at the other end. */
static void vanishes(enum what w, size_t n, bool near)
{
	struct pair p;
	make(&p);
	char *a = region(n), *b = region(n);
	struct ibv_mr *mine, *other;
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	MUST(mine = ibv_reg_mr(p.client->pd, a, n, all));
	MUST(other = ibv_reg_mr(p.server->pd, b, n, all));
	if (w == SEND || w == RECV)
		MUST(rdma_post_recv(p.server, NULL, b, n, other) == 0);
	take_away(near ? a : b, n);
	struct ibv_sge sge = {(uintptr_t)a, (uint32_t)n, mine->lkey};
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = ops[w], .wr.rdma = {(uintptr_t)b, other->rkey}}, *bad;
	MUST(ibv_post_send(p.client->qp, &wr, &bad) == 0);
	struct ibv_wc wc = completion(p.client->send_cq);
	if (near)
		MUST(wc.status == IBV_WC_LOC_PROT_ERR);
	if (w == RECV) /* a Send ends well when it has been sent */
		MUST(completion(p.server->recv_cq).status != IBV_WC_SUCCESS);
	if (w == READ && !near)
		MUST(wc.status != IBV_WC_SUCCESS);
	ibv_dereg_mr(mine);
	ibv_dereg_mr(other);
	end(&p);
	munmap(a, n);
	munmap(b, n);
}

static void unmap(void)
{
	static const size_t sizes[] = {64, 4096, 1 << 20};
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		vanishes(SEND, sizes[i], true);
		vanishes(RECV, sizes[i], false);
		vanishes(WRITE, sizes[i], true);
		vanishes(WRITE, sizes[i], false);
		vanishes(READ, sizes[i], true);
		vanishes(READ, sizes[i], false);
	}
	struct pair p; /* and the next connection is none the worse */
	make(&p);
	traffic(&p, 10, 100000);
	end(&p);
}

/* exit: a process that ends with everything open, or is killed, is seen to end by its peer. */
static int hold[2]; /* a child of by_fork's reads it */

/* A fork's child lives on, and holds no connection of its parent's. */
static void by_fork(void)
{
	int forked[2];
	char c;
	MUST(pipe(forked) == 0);
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) {
		close(hold[1]);
		MUST(write(forked[1], "", 1) == 1);
		_exit(read(hold[0], &c, 1) != 1);
	}
	MUST(read(forked[0], &c, 1) == 1);
	kill(getpid(), SIGKILL);
}

static void leaves(void (*how)(void))
{
	int ready[2];
	MUST(pipe(ready) == 0 && pipe(hold) == 0);
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) { /* connects when the parent listens */
		char c;
		close(ready[1]);
		MUST(read(ready[0], &c, 1) == 1);
		struct rdma_cm_id *id = connect_();
		static char a[64];
		struct ibv_mr *mr;
		MUST(mr = rdma_reg_msgs(id, a, sizeof a));
		for (int i = 0; i < 8; i++)
			MUST(rdma_post_recv(id, NULL, a, sizeof a, mr) == 0);
		how();
	}
	close(ready[0]);
	listen_();
	MUST(write(ready[1], "", 1) == 1);
	close(ready[1]);
	struct pair p;
	accept_(&p);
	struct rdma_cm_event *event;
	MUST(rdma_get_cm_event(p.server->channel, &event) == 0);
	MUST(event->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(event);
	int status;
	MUST(waitpid(child, &status, 0) == child);
	close(hold[0]);
	if (how == by_fork)
		MUST(write(hold[1], "", 1) == 1); /* SIGPIPE if the child's child had ended */
	close(hold[1]);
	rdma_destroy_ep(p.server);
	rdma_destroy_ep(listener);
}

static void by_exit(void) { exit(0); }
static void by_quick_exit(void) { _exit(0); }
static void by_kill(void) { kill(getpid(), SIGKILL); }

/* The process under `rnic run` does not fork once it has a device: a process of its own for each way. */
static void exits(void)
{
	void (*ways[])(void) = {by_exit, by_quick_exit, by_kill, by_fork};
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
		pid_t one = fork();
		MUST(one >= 0);
		if (one == 0) {
			leaves(ways[i]);
			exit(0);
		}
		int status;
		MUST(waitpid(one, &status, 0) == one && status == 0);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool alone;
	} modes[] = {{"threads", threads, false}, {"many", many, false}, {"immediate", immediate, false}, {"wake", wake, false}, {"signals", signals, false}, {"unmap", unmap, false}, {"exit", exits, true}};
	if (argc == 3)
		for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
			if (strcmp(argv[1], modes[i].name) == 0) {
				host = argv[2];
				if (!modes[i].alone)
					listen_();
				modes[i].run();
				if (!modes[i].alone)
					rdma_destroy_ep(listener);
				printf("%s: ok\n", modes[i].name);
				return 0;
			}
	fprintf(stderr, "usage: behave threads|many|immediate|wake|signals|unmap|exit HOST\n");
	return 2;
}
