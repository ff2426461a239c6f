/* What goes: segments in FPDUs, and the end of a stream. */
#define _GNU_SOURCE
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

uint32_t crc32c(const uint8_t *b, size_t n)
{
	uint32_t crc = ~0u;
	while (n--) {
		crc ^= *b++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
	}
	return ~crc;
}

void out(struct qp *q, const uint8_t *b, size_t n)
{
	for (ssize_t k; n > 0; b += k, n -= (size_t)k)
		if ((k = send(q->fd, b, n, MSG_NOSIGNAL)) < 0)
			return; /* the end of the stream is read */
}

static void fpdu(struct qp *q, uint8_t *b, size_t n) /* b: 2 octets, the ULPDU, room for 8 */
{
	put(b, n, 2);
	size_t all = 2 + n;
	while (all % 4)
		b[all++] = 0;
	uint32_t crc = q->crc ? crc32c(b, all) : 0;
	for (int i = 0; i < 4; i++)
		b[all++] = (uint8_t)(crc >> 8 * i);
	out(q, b, all);
}

/* Cuts a message into segments. */
void message(struct qp *q, int tagged, int control, uint32_t name, uint64_t where, const uint8_t *data, size_t n)
{
	size_t head = tagged ? 14 : 18, most = q->mulpdu - head;
	uint8_t *b = malloc(q->mulpdu + 16);
	for (size_t off = 0; off == 0 || off < n; off += most) {
		size_t k = n - off < most ? n - off : most;
		uint8_t *p = put(b + 2, (tagged ? 0x81u : 0x01u) | (off + most >= n ? 0x40u : 0), 1);
		p = put(p, (uint64_t)control, 1);
		if (tagged) {
			p = put(put(p, name, 4), where + off, 8);
		} else {
			p = put(put(put(put(p, 0, 4), name, 4), where, 4), off, 4); /* name: the queue; where: the MSN */
		}
		memcpy(p, data + off, k);
		fpdu(q, b, head + k);
	}
	free(b);
}

void finish(struct qp *q, int state, int why)
{
	q->state = state, q->phase = DRAINS;
	shutdown(q->fd, SHUT_WR);
	if (state == ERROR) {
		for (; q->reads.first < q->reads.n; q->reads.first++)
			complete(q, q->send_cq, q->reads.w[q->reads.first], READ, FLUSHED, 0);
		for (; q->sends.first < q->sends.n; q->sends.first++)
			complete(q, q->send_cq, q->sends.w[q->sends.first], (int)num(q->sends.w[q->sends.first], "Op"), FLUSHED, 0);
		for (; q->recvs.first < q->recvs.n; q->recvs.first++)
			complete(q, q->recv_cq, q->recvs.w[q->recvs.first], RECV, FLUSHED, 0);
	}
	if (why)
		event(q, why);
}

/* Sends what is posted: nothing before the Initiator has (RFC 5044 7.1.2), and no more Reads than ORD. */
void push(struct qp *q)
{
	while (q->phase == RUNS && q->state == RTS && !q->gate && q->sends.first < q->sends.n) {
		const char *w = q->sends.w[q->sends.first], *remote = field(w, "Remote"), *sink = field(w, "Local");
		int op = (int)num(w, "Op"), reads = q->reads.n - q->reads.first;
		uint32_t stag = (uint32_t)num(remote, "STag");
		uint64_t to = (uint64_t)num(remote, "TO");
		if ((op == READ && reads >= q->ord) || (num(w, "Flags") & 2 && reads))
			return;
		q->sends.first++;
		if (op == READ) {
			uint8_t b[28];
			put(put(put(put(put(b, (uint64_t)num(sink, "STag"), 4), (uint64_t)num(sink, "TO"), 8),
				(uint64_t)num(sink, "Length"), 4), stag, 4), to, 8);
			add(&q->reads, w);
			message(q, 0, 0x41, 1, ++q->asked, b, sizeof b);
			continue;
		}
		long long n = copy(field(w, "SGL"), LOCAL_READ, q->pd, 0, NULL, 0);
		uint8_t *data = malloc((size_t)(n > 0 ? n : 0) + 1);
		if (n < 0) { /* it has been deregistered since */
			complete(q, q->send_cq, w, op, INVALID_STAG, 0);
			finish(q, ERROR, 0);
		} else {
			copy(field(w, "SGL"), LOCAL_READ, q->pd, 0, data, (size_t)n);
			if (op == WRITE)
				message(q, 1, 0x40, stag, to, data, (size_t)n);
			else
				message(q, 0, op == SEND ? 0x43 : 0x45, 0, ++q->sent, data, (size_t)n);
			complete(q, q->send_cq, w, op, 0, 0);
		}
		free(data);
	}
}

/* Sends a Terminate Message (RFC 5040 4.8), and goes to Error. u is the segment at fault; NULL for none. */
int refuse(struct qp *q, int code, int why, const uint8_t *u, size_t n)
{
	uint8_t b[64], *p = put(b, (uint64_t)code, 2);
	int read = u && n >= 46 && (u[1] & 15) == 1 && code >> 12 == 0;
	p = put(p, u ? read ? 0xE000 : 0xC000 : 0, 2);
	if (u) {
		size_t head = (u[0] & 0x80 ? 14u : 18u) + (read ? 28u : 0);
		p = put(p, n, 2);
		memcpy(p, u, head);
		p += head;
	}
	message(q, 0, 0x47, 2, 1, b, (size_t)(p - b));
	snprintf(q->terminate, sizeof q->terminate, "\"Terminate\":{\"Sent\":true,\"Code\":%d}", code);
	finish(q, ERROR, why);
	return 0;
}
