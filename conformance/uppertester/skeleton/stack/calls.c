/* A small iWARP stack behind tester.c: MPA's startup on either side, FPDUs with CRC32C and without
 * markers, Send, RDMA Write and RDMA Read in both directions, Terminate for what it refuses. It is there
 * to show where a stack's calls go, and to be run by a test; it keeps few rules. It has one thread: what
 * is to be read is read while a call waits, and between the calls. */
#define _GNU_SOURCE
#include "stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct qp *qps[MOST];
int n_qps;

static struct {
	int cq;
	char text[160];
} completions[1 << 16];
static int n_completions, next_cq = 100000;
static char events[1 << 16];
static int n_events;
static const char *host;

void begin(const char *h) { host = h; }

static int number(const struct qp *q)
{
	for (int i = 0; i < n_qps; i++)
		if (qps[i] == q)
			return i + 1;
	return 0;
}

void complete(const struct qp *q, int cq, const char *w, int op, int status, uint64_t bytes)
{
	if (n_completions == 1 << 16 || (!status && op != RECV && num(w, "Flags") & 1))
		return;
	completions[n_completions].cq = cq;
	snprintf(completions[n_completions++].text, sizeof completions->text,
		"{\"ID\":%llu,\"QP\":%d,\"Op\":%d,\"Status\":%d,\"Bytes\":%llu}", (unsigned long long)num(w, "ID"), number(q), op, status,
		(unsigned long long)bytes);
}

void event(const struct qp *q, int id)
{
	size_t n = strlen(events);
	snprintf(events + n, sizeof events - n, "%s{\"ID\":%d,\"QP\":%d}", n ? "," : "", id, number(q));
	n_events++;
}

void go_on(int fd) { turn(fd, -1); }

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Waits until `done` is so of n, for no longer than the call says. */
static int until(int (*done)(const char *), const char *a)
{
	long long end = now() + num(a, "Timeout") / 1000000;
	while (!done(a)) {
		long long left = end - now();
		if (left < 0)
			return 0;
		turn(-1, left > 60000 ? 60000 : (int)left);
	}
	return 1;
}

/* Queue pairs and connections. */

static struct qp *qp(const char *n) { return n && atoi(n) > 0 && atoi(n) <= n_qps ? qps[atoi(n) - 1] : NULL; }

int Open(const char *a)
{
	if (num(a, "IRD") < 0 || num(a, "ORD") < 0 || num(a, "SendDepth") < 0 || num(a, "RecvDepth") < 0)
		return refused(2, "invalid modifier");
	if (n_qps == MOST)
		return refused(1, "insufficient resources to complete request");
	struct qp *q = calloc(1, sizeof *q);
	q->pd = (int)num(a, "PD"), q->send_cq = (int)num(a, "SendCQ"), q->recv_cq = (int)num(a, "RecvCQ");
	if (!q->send_cq && !q->recv_cq)
		q->send_cq = q->recv_cq = next_cq++;
	q->ird = num(a, "IRD") ? (int)num(a, "IRD") : 16, q->ord = num(a, "ORD") ? (int)num(a, "ORD") : 16;
	q->send_depth = num(a, "SendDepth") ? (int)num(a, "SendDepth") : 64;
	q->recv_depth = num(a, "RecvDepth") ? (int)num(a, "RecvDepth") : 64;
	qps[n_qps++] = q;
	reply("\"QP\":%d,\"SendCQ\":%d,\"RecvCQ\":%d,\"ID\":%d", n_qps, q->send_cq, q->recv_cq, n_qps);
	return 0;
}

int Listen(const char *a)
{
	struct qp *q = qp(field(a, "QP"));
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof at;
	if (!q)
		return failed("there is no such queue pair");
	inet_pton(AF_INET, host, &at.sin_addr);
	q->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(q->fd, (struct sockaddr *)&at, len) || listen(q->fd, 1))
		return failed(strerror(errno));
	getsockname(q->fd, (struct sockaddr *)&at, &len);
	q->args = copied(a), q->phase = LISTENS;
	reply("\"Addr\":\"%s:%d\"", host, ntohs(at.sin_port));
	return 0;
}

int Dial(const char *a)
{
	struct qp *q = qp(field(a, "QP"));
	struct sockaddr_in at = {.sin_family = AF_INET};
	char addr[64];
	int one = 1;
	string(a, "Addr", addr, sizeof addr);
	char *port = strrchr(addr, ':');
	if (!q || !port)
		return failed("there is no such queue pair, or address");
	*port++ = 0;
	at.sin_port = htons((uint16_t)atoi(port));
	inet_pton(AF_INET, addr, &at.sin_addr);
	q->fd = socket(AF_INET, SOCK_STREAM, 0), q->args = copied(a), q->have = 0;
	setsockopt(q->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(q->fd, (struct sockaddr *)&at, sizeof at)) {
		start(q, strerror(errno), 0, UNKNOWN);
		return 0;
	}
	int rev = num(a, "Rev") ? (int)num(a, "Rev") : 2;
	q->phase = AWAITS_REPLY;
	send_frame(q, "MPA ID Req Frame", (num(a, "NoCRC") ? 0 : 0x40) | (rev == 2 ? 0x10 : 0), rev);
	return 0;
}

static int is_connected(const char *a) { return qp(field(a, "Of"))->result != NULL; }
static int is_ended(const char *a)
{
	int phase = qp(field(a, "Of"))->phase;
	return phase == NO_STREAM || phase == DRAINS;
}

int Connected(const char *a)
{
	if (!qp(field(a, "Of")) || !until(is_connected, a))
		return failed("not connected in time");
	reply("%s", qp(field(a, "Of"))->result);
	return 0;
}

int Query(const char *a)
{
	struct qp *q = qp(a);
	if (!q)
		return refused(20, "invalid QP handle");
	reply("\"State\":%d,\"IRD\":%d,\"ORD\":%d,\"SendDepth\":%d,\"RecvDepth\":%d,\"Stream\":%s", q->state, q->ird, q->ord, q->send_depth,
		q->recv_depth, q->phase == RUNS ? "true" : "false");
	if (*q->terminate)
		reply("%s", q->terminate);
	return 0;
}

int Ended(const char *a)
{
	if (!qp(field(a, "Of")) || !until(is_ended, a))
		return failed("the stream did not end in time");
	return Query(field(a, "Of"));
}

int Modify(const char *a)
{
	struct qp *q = qp(field(a, "QP"));
	int next = (int)num(a, "Next");
	if (!q)
		return refused(20, "invalid QP handle");
	if (next == IDLE && q->state == ERROR) {
		q->state = IDLE;
	} else if (next == CLOSING && q->state == RTS) {
		q->state = CLOSING;
		shutdown(q->fd, SHUT_WR);
	} else if (next == ERROR && q->state == RTS) {
		finish(q, ERROR, 0);
	} else if (next != q->state) {
		return refused(22, "invalid QP state");
	}
	return 0;
}

/* Work. */

static int post(struct qp *q, struct queue *to, const char *list, int access)
{
	const char *w;
	int n = 0;
	for (; (w = item(list, n)); n++) {
		int op = (int)num(w, "Op");
		if (access == LOCAL_READ && op != SEND && op != SEND_SE && op != WRITE && op != READ)
			return refused(35, "invalid operation type");
		if (copy(field(w, "SGL"), access, q->pd, 0, NULL, 0) < 0)
			return refused(32, "invalid STag index");
		add(to, w);
	}
	push(q);
	reply("\"N\":%d", n);
	return 0;
}

int PostSend(const char *a)
{
	struct qp *q = qp(field(a, "QP"));
	if (!q || (q->state != IDLE && q->state != RTS))
		return refused(q ? 22 : 20, "invalid QP state or handle");
	return post(q, &q->sends, field(a, "Sends"), LOCAL_READ);
}

int PostRecv(const char *a)
{
	struct qp *q = qp(field(a, "QP"));
	if (!q || num(a, "SRQ"))
		return refused(q ? 16 : 20, "invalid S-RQ or QP handle");
	return post(q, &q->recvs, field(a, "Recvs"), LOCAL_WRITE);
}

static int is_complete(const char *a)
{
	int n = 0;
	for (int i = 0; i < n_completions; i++)
		n += completions[i].cq == num(a, "CQ");
	return n >= num(a, "N");
}

int Poll(const char *a)
{
	until(is_complete, a);
	char *list = malloc((size_t)n_completions * sizeof completions->text + 1), *p = list;
	int kept = 0, taken = 0;
	*p = 0;
	for (int i = 0; i < n_completions; i++) {
		if (completions[i].cq == num(a, "CQ") && taken < num(a, "N"))
			p += sprintf(p, "%s%s", taken++ ? "," : "", completions[i].text);
		else
			completions[kept++] = completions[i];
	}
	n_completions = kept;
	reply("\"Completions\":[%s]", list);
	free(list);
	return 0;
}

static int has_happened(const char *a) { return n_events >= num(a, "N"); }

int Events(const char *a)
{
	until(has_happened, a);
	reply("\"Events\":[%s]", events);
	return 0;
}
