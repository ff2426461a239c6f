/* MPA's startup (RFC 5044 7.1, RFC 6581), and the octets of streams. */
#define _GNU_SOURCE
#include "stack.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void send_frame(struct qp *q, const char *key, int flags, int rev)
{
	uint8_t b[1024], *p = b + 20;
	if (flags & 0x10)
		p = put(put(p, (uint64_t)q->ird, 2), (uint64_t)q->ord, 2);
	p += octets(q->args, "PrivateData", p, 512);
	memcpy(b, key, 16);
	put(put(put(b + 16, (uint64_t)flags, 1), (uint64_t)rev, 1), (uint64_t)(p - b - 20), 2);
	out(q, b, (size_t)(p - b));
}

void start(struct qp *q, const char *why, int rejected, const char *more)
{
	free(q->result);
	if (asprintf(&q->result, "\"Failed\":\"%s\",\"Rejected\":%s,%s", why, rejected ? "true" : "false", more) < 0)
		exit(1);
	if (*why) {
		q->phase = NO_STREAM;
		close(q->fd);
		return;
	}
	int emss = 0;
	socklen_t n = sizeof emss;
	getsockopt(q->fd, IPPROTO_TCP, TCP_MAXSEG, &emss, &n);
	q->mulpdu = emss > 64774 ? 64768 : (size_t)(emss - 6 - emss % 4);
	q->phase = RUNS, q->state = RTS;
	q->expected = 1, q->sent = q->asked = q->answered = q->placed = 0, q->fetched = 0;
	push(q);
}

/* Takes a frame of the other side; how long it is, 0 if it is not there yet. */
static size_t heard(struct qp *q)
{
	int asked = q->phase == AWAITS_REPLY, listens = !asked;
	const uint8_t *f = q->in;
	size_t n = q->have < 20 ? 0 : (size_t)get(f + 18, 2);
	if (q->have < 20 || q->have < 20 + n)
		return 0;
	int theirs = f[16], rev = f[17], mine = num(q->args, "NoCRC") ? 0 : 0x40, reject = (int)num(q->args, "Reject") && listens;
	if (memcmp(f, asked ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16) || (rev != 1 && rev != 2) || n > 512 || theirs & 0x80 ||
			(theirs & 0x10 && n < 4)) {
		start(q, "invalid startup frame", 0, UNKNOWN);
		return 0;
	}
	int word = theirs & 0x10, ird = word ? (int)get(f + 20, 2) & 0x3FFF : -1, ord = word ? (int)get(f + 22, 2) & 0x3FFF : -1;
	if (word && q->ord > ird)
		q->ord = ird;
	q->crc = ((mine | theirs) & 0x40) != 0;
	q->gate = listens;
	if (listens)
		send_frame(q, "MPA ID Rep Frame", mine | word | (reject ? 0x20 : 0), rev);
	char more[1024], data[700];
	static const char *const none = "";
	size_t skip = word ? 4 : 0, k = 0;
	for (size_t i = 20 + skip; i < 20 + n; i += 3) {
		uint32_t v = (uint32_t)f[i] << 16 | (i + 1 < 20 + n ? f[i + 1] << 8 : 0) | (i + 2 < 20 + n ? f[i + 2] : 0);
		for (size_t c = 0; c < 4; c++)
			data[k++] = i + c > 20 + n ? '=' : digits[v >> (18 - 6 * c) & 63];
	}
	data[k] = 0;
	snprintf(more, sizeof more, "\"PeerIRD\":%d,\"PeerORD\":%d,\"CRC\":%s,\"Rev\":%d,\"IRD\":%d,\"ORD\":%d,\"PrivateData\":\"%s\"", ird, ord,
		q->crc ? "true" : "false", rev, q->ird, q->ord, data);
	int rejected = reject || (asked && theirs & 0x20);
	start(q, rejected ? "rejected" : none, rejected, more);
	return 20 + n;
}

/* Reads what there is, and does what it says. */
static void arrived(struct qp *q)
{
	if (q->phase == LISTENS) {
		int fd = accept(q->fd, NULL, NULL), one = 1;
		close(q->fd);
		q->fd = fd, q->phase = AWAITS_REQUEST, q->have = 0;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		return;
	}
	if (q->room - q->have < 1 << 17)
		q->in = realloc(q->in, q->room = 2 * q->have + (1 << 18));
	ssize_t n = recv(q->fd, q->in + q->have, q->room - q->have, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (q->phase == RUNS && (n < 0 || q->have))
			finish(q, ERROR, n < 0 ? RESET : BAD_CLOSE);
		else if (q->phase == RUNS && (q->placed || q->reads.first < q->reads.n || q->sends.first < q->sends.n))
			finish(q, ERROR, BAD_CLOSE);
		else if (q->phase == RUNS)
			finish(q, IDLE, CLOSED);
		else if (q->phase != DRAINS)
			start(q, "connection lost", 0, UNKNOWN);
		if (q->phase == DRAINS)
			close(q->fd);
		q->phase = NO_STREAM;
		return;
	}
	q->have += (size_t)n;
	for (;;) {
		size_t used = 0;
		if (q->phase == AWAITS_REQUEST || q->phase == AWAITS_REPLY) {
			used = heard(q);
		} else if (q->phase == RUNS && q->have >= 2) {
			size_t len = (size_t)get(q->in, 2), body = (2 + len + 3) & ~(size_t)3;
			if (q->have < body + 4)
				return;
			uint32_t crc = (uint32_t)q->in[body] | (uint32_t)q->in[body + 1] << 8 | (uint32_t)q->in[body + 2] << 16 | (uint32_t)q->in[body + 3] << 24;
			used = body + 4;
			if (q->crc && crc32c(q->in, body) != crc)
				refuse(q, 0x2002, 6, NULL, 0);
			else
				segment(q, q->in + 2, len);
			q->gate = 0;
			push(q);
		} else if (q->phase == DRAINS) {
			used = q->have;
		}
		if (!used)
			return;
		q->have -= used;
		memmove(q->in, q->in + used, q->have);
	}
}

/* Waits for octets, ms milliseconds at most, of any stream or of fd (-1: none). */
void turn(int fd, int ms)
{
	struct pollfd p[MOST + 1] = {{.fd = fd, .events = POLLIN}};
	int of[MOST + 1], n = 1;
	for (int i = 0; i < n_qps; i++)
		if (qps[i]->phase != NO_STREAM) {
			p[n] = (struct pollfd){.fd = qps[i]->fd, .events = POLLIN};
			of[n++] = i;
		}
	poll(p, (nfds_t)n, ms);
	for (int i = 1; i < n; i++)
		if (p[i].revents)
			arrived(qps[of[i]]);
}
