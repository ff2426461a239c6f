/* What comes: segments, placed and answered. */
#define _GNU_SOURCE
#include "stack.h"

#include <stdio.h>
#include <string.h>

static int tagged(struct qp *q, const uint8_t *u, size_t n)
{
	uint32_t stag = (uint32_t)get(u + 2, 4);
	uint64_t to = get(u + 6, 8), off, len = n - 14;
	int op = u[1] & 15, reads = q->reads.n - q->reads.first;
	struct region *r = by_stag(stag, to, len, REMOTE_WRITE, q->pd, &off);
	const char *w = reads ? q->reads.w[q->reads.first] : NULL, *sink = field(w, "Local");
	if (op != 0 && (op != 2 || !w))
		return refuse(q, 0x0206, 10, u, n);
	if (op == 2 && (stag != (uint32_t)num(sink, "STag") || to != (uint64_t)num(sink, "TO") + q->fetched ||
			q->fetched + len > (uint64_t)num(sink, "Length")))
		return refuse(q, 0x1100, 16, u, n);
	if (len && !r)
		return refuse(q, off == 1 ? 0x1101 : 0x1100, off == 1 ? 17 : 16, u, n);
	if (len)
		memcpy(r->memory + off, u + 14, len);
	q->fetched += op == 2 ? len : 0;
	if (op == 2 && u[0] & 0x40) {
		q->reads.first++;
		q->fetched = 0;
		complete(q, q->send_cq, w, READ, 0, 0);
	}
	return 0;
}

static int untagged(struct qp *q, const uint8_t *u, size_t n)
{
	uint32_t qn = (uint32_t)get(u + 6, 4), msn = (uint32_t)get(u + 10, 4), mo = (uint32_t)get(u + 14, 4);
	int op = u[1] & 15;
	if (op == 7 && qn == 2) {
		snprintf(q->terminate, sizeof q->terminate, "\"Terminate\":{\"Sent\":false,\"Code\":%d}", n >= 20 ? (int)get(u + 18, 2) : 0);
		finish(q, ERROR, TERMINATED);
		return 0;
	}
	if (op == 1 && qn == 1) {
		uint64_t off;
		if (msn != ++q->answered || n != 46)
			return refuse(q, 0x1203, 26, u, n);
		size_t size = (size_t)get(u + 30, 4);
		struct region *r = by_stag((uint32_t)get(u + 34, 4), get(u + 38, 8), size, REMOTE_READ, q->pd, &off);
		if (size && !r)
			return refuse(q, 0x0100 + (int)off, 28 + (int)off, u, n);
		message(q, 1, 0x42, (uint32_t)get(u + 18, 4), get(u + 22, 8), size ? r->memory + off : u, size);
		return 0;
	}
	if ((op != 3 && op != 5) || qn != 0)
		return refuse(q, 0x0206, 10, u, n);
	if (msn != q->expected)
		return refuse(q, 0x1203, 23, u, n);
	if (q->recvs.first == q->recvs.n)
		return refuse(q, 0x1202, 23, u, n);
	if (mo != q->placed)
		return refuse(q, 0x1204, 23, u, n);
	const char *w = q->recvs.w[q->recvs.first];
	long long room = copy(field(w, "SGL"), LOCAL_WRITE, q->pd, 0, NULL, 0);
	if (room < 0 || (long long)(mo + n - 18) > room)
		return refuse(q, 0x1205, 17, u, n);
	copy(field(w, "SGL"), LOCAL_WRITE, q->pd, mo, (uint8_t *)(uintptr_t)(u + 18), n - 18);
	q->placed += (uint32_t)(n - 18);
	if (u[0] & 0x40) {
		q->recvs.first++;
		complete(q, q->recv_cq, w, RECV, 0, q->placed);
		q->expected++;
		q->placed = 0;
	}
	return 0;
}

int segment(struct qp *q, const uint8_t *u, size_t n)
{
	if (n < 2 || n < (u[0] & 0x80 ? 14u : 18u))
		return refuse(q, 0x1203, 7, NULL, 0);
	if ((u[0] & 3) != 1)
		return refuse(q, u[0] & 0x80 ? 0x1104 : 0x1206, 8, u, n);
	if (u[1] >> 6 != 1)
		return refuse(q, 0x0205, 9, u, n);
	return (u[0] & 0x80 ? tagged : untagged)(q, u, n);
}
