/* A poll that finds completions takes them from the ring that the engine has put them into (c/engine/ring.h), and asks
   nobody. Threads may poll one queue, and be interrupted by a signal or a fork, at any point: there is no lock. */
#include "preload.h"

#include <string.h>

/* POLL_CQ as libibverbs writes it, and its answer, behind which the completions are. */
struct poll_cq {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
	uint32_t cq, most;
};
struct polled {
	uint32_t count, reserved;
};

/* IB_USER_VERBS_CMD_ */
enum { POLL_CQ = 21, POST_SEND = 28, POST_RECV = 29 };

/* The command is read without asking the system whether it is there, so only where it is: libibverbs has it on the stack, in a
   frame or two above ours. Below the end of a stack there is more than that. */
enum { NEAR = 1024 };
static inline bool near(const void *frame, const void *at, size_t n)
{
	return (uintptr_t)at - (uintptr_t)frame < NEAR && n <= NEAR && (uintptr_t)at % 8 == 0;
}

long ring_poll(int open, const void *buf, size_t n)
{
	const struct poll_cq *c = buf;
	if (!engine.rings || n != sizeof *c || !near(__builtin_frame_address(0), buf, n))
		return 0;
	if (c->command != POLL_CQ || c->in_words * 4 != sizeof *c || c->out_words * 4 < (int)sizeof(struct polled) || c->cq == 0)
		return 0; /* the engine says what is wrong */
	struct ring *r = &engine.rings[ring_place((uint32_t)open, c->cq)];
	struct polled *p = (struct polled *)(uintptr_t)c->response;
	uint64_t key = (uint64_t)(uint32_t)open << 32 | c->cq;
	for (;;) {
		uint64_t taken = atomic_load(&r->taken);
		if (atomic_load(&r->key) != key)
			return 0;
		uint32_t first = (uint32_t)taken, k = atomic_load(&r->put) - first;
		if (k > RING_WCS) /* it has changed hands */
			return 0;
		if (k > c->most)
			k = c->most;
		if (k == 0 || (k < c->most && atomic_load(&r->more)))
			return 0;
		char *to = (char *)(p + 1);
		for (uint32_t i = 0; i < k; i++)
			memcpy(to + (size_t)i * WC_SIZE, r->wcs[(first + i) % RING_WCS], WC_SIZE);
		if (atomic_compare_exchange_strong(&r->taken, &taken, (taken >> 32) << 32 | (uint32_t)(first + k))) {
			*p = (struct polled){.count = k};
			return (long)n;
		}
	}
}

/* POST_SEND and POST_RECV of one request with one element. */
struct post {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
	uint32_t qp, wrs, sges, wr_size;
	uint64_t wr[];
};
enum { RECV_SIZE = 16, WRITE = 0, SEND = 2, READ = 4, INLINE = 8 };

long ring_post(int open, const void *buf, size_t n)
{
	const struct post *c = buf;
	if (!engine.post_rings || n < sizeof *c + RECV_SIZE + SGE_SIZE || !near(__builtin_frame_address(0), buf, n))
		return 0;
	bool recv = c->command == POST_RECV;
	if (!recv && c->command != POST_SEND)
		return 0;
	struct post_ring *r = &engine.post_rings[post_ring_place((uint32_t)open, c->qp, recv)];
	if (atomic_load_explicit(&r->limit, memory_order_relaxed) == 0)
		return 0;
	size_t size = recv ? RECV_SIZE : POST_SIZE;
	if (n != sizeof *c + size + SGE_SIZE || c->in_words * 4u != n || c->out_words < 1 || c->wrs != 1 || c->sges != 1 || c->wr_size != size)
		return 0;
	const uint32_t *wr = (const uint32_t *)(c->wr + 1); /* elements, and of a send operation and flags */
	if (wr[0] != 1 || (!recv && ((wr[1] != WRITE && wr[1] != SEND && wr[1] != READ) || (wr[2] & INLINE))))
		return 0;
	if (atomic_exchange(&r->busy, 1))
		return 0;
	uint32_t limit = atomic_load(&r->limit), at = atomic_load(&r->put); /* in this order: put is 0 before the ring is opened again */
	bool in = at < limit && atomic_load(&r->key) == ((uint64_t)(uint32_t)open << 32 | c->qp);
	if (in) {
		*(uint32_t *)(uintptr_t)c->response = 0;
		memcpy(r->wrs[at], c->wr, size);
		memcpy(r->sges[at], (const char *)c->wr + size, SGE_SIZE);
		atomic_store(&r->put, at + 1);
	}
	atomic_store(&r->busy, 0);
	return in ? (long)n : 0;
}
