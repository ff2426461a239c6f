/* A poll that finds completions takes them from the ring that the engine has put them into (rdmacore/clib/ring.h), and asks
   nobody. Threads may poll one queue, and be interrupted by a signal or a fork, at any point: there is no lock. */
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

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

static char *_Atomic heap_begins; /* NULL: not known */

/* Others' constructors have been at malloc before ours, so the system has to be asked: proc(5), start_brk of /proc/self/stat. A
   handler may have interrupted malloc, so nothing here takes memory from it. */
void ring_setup(void)
{
	enum { AFTER_NAME = 45 /* spaces from the ")" of the name to start_brk */ };
	char text[2048];
	int fd = heap_begins ? -1 : NEXT(open)("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = NEXT(read)(fd, text, sizeof text - 1);
	NEXT(close)(fd);
	text[n > 0 ? n : 0] = 0;
	char *at = strrchr(text, ')');
	for (int i = 0; at && i < AFTER_NAME; i++)
		at = strchr(at + 1, ' ');
	if (at)
		heap_begins = (char *)strtoul(at, NULL, 10);
}

/* Whether the program's answer may be written, n octets at p, where the system would say EFAULT else. That costs
   nothing where libibverbs has it: on the stack (posts), or in the heap of the first thread's malloc (polls), which
   no program unmaps. Elsewhere the system is asked by the shortest call that writes to the program's memory, once a
   page: what was there a moment ago may be gone. */
static bool writable(const void *frame, char *p, size_t n)
{
	if ((uintptr_t)p - (uintptr_t)frame < NEAR && n <= NEAR)
		return true;
	char *heap = atomic_load_explicit(&heap_begins, memory_order_relaxed);
	uintptr_t in_heap = (uintptr_t)p - (uintptr_t)heap, all = (uintptr_t)sbrk(0) - (uintptr_t)heap;
	if (heap && in_heap < all && n <= all - in_heap)
		return true;
	if (!p || (uintptr_t)p > UINTPTR_MAX - n) /* the call writes nothing to NULL */
		return false;
	enum { WORD = sizeof(unsigned), PAGE = 4096 }; /* or larger */
	int e = errno;
	bool there = true;
	/* From the end: the count, which is at the beginning, stays what it was if nothing comes of it. */
	for (char *at = p + n - WORD; there;) {
		there = syscall(SYS_getcpu, at, NULL, NULL) == 0;
		char *begin = at - (uintptr_t)at % PAGE;
		if (begin <= p)
			break;
		at = begin - WORD < p ? p : begin - WORD;
	}
	errno = e;
	return there;
}

/* How each command begins. */
struct header {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
};

bool ring_is_libibverbs(const void *buf, size_t n)
{
	const struct header *h = buf;
	return n >= sizeof(struct poll_cq) && near(__builtin_frame_address(0), buf, n) && h->in_words * 4u == n &&
	       (h->command == POLL_CQ || h->command == POST_SEND || h->command == POST_RECV);
}

int ring_take(int open, uint32_t cq, uint32_t most, void *wcs, char *answer, uint64_t *since)
{
	if (!engine.rings || cq == 0)
		return RING_ASK;
	struct ring *r = &engine.rings[ring_place((uint32_t)open, cq)];
	uint64_t key = (uint64_t)(uint32_t)open << 32 | cq;
	for (;;) {
		uint64_t taken = atomic_load(&r->taken);
		if (atomic_load(&r->key) != key)
			return RING_ASK;
		uint32_t first = (uint32_t)taken, k = atomic_load(&r->put) - first;
		if (k > RING_WCS) /* it has changed hands */
			return RING_ASK;
		if (k > most)
			k = most;
		if (k < most && atomic_load(&r->more))
			return RING_ASK;
		if (k == 0)
			return 0;
		if (!wcs && !writable(__builtin_frame_address(0), answer, sizeof(struct polled) + (size_t)k * WC_SIZE))
			return RING_ASK;
		char *to = wcs ? wcs : answer + sizeof(struct polled);
		for (uint32_t i = 0; i < k; i++)
			memcpy(to + (size_t)i * WC_SIZE, r->wcs[(first + i) % RING_WCS], WC_SIZE);
		uint64_t now = (taken >> 32) << 32 | (uint32_t)(first + k);
		if (!atomic_compare_exchange_strong(&r->taken, &taken, now))
			continue;
		if (since)
			*since = now;
		if (!wcs)
			memcpy(answer, &(struct polled){.count = k}, sizeof(struct polled));
		return (int)k;
	}
}

bool ring_back(int open, uint32_t cq, unsigned n, uint64_t since)
{
	struct ring *r = &engine.rings[ring_place((uint32_t)open, cq)];
	uint64_t before = (since >> 32) << 32 | (uint32_t)(since - n);
	return atomic_load(&r->key) == ((uint64_t)(uint32_t)open << 32 | cq) && atomic_compare_exchange_strong(&r->taken, &since, before);
}

long ring_poll(int open, const void *buf, size_t n)
{
	const struct poll_cq *c = buf;
	if (n != sizeof *c || c->command != POLL_CQ || c->out_words * 4 < (int)sizeof(struct polled))
		return 0; /* the engine says what is wrong */
	char *answer = (char *)(uintptr_t)c->response; /* aligned as the program likes */
	return ring_take(open, c->cq, c->most, NULL, answer, NULL) > 0 ? (long)n : 0;
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

/* The ring that this thread is putting a post into. A handler that enters the engine meanwhile would have the engine
   wait for the thread, which waits for the handler; and one that leaves by longjmp never lets it go. So the ring is
   spoilt for good (ring.h): the post goes to the engine if the handler returns, and so does what comes later. */
static _Thread_local struct post_ring *volatile posting __attribute__((tls_model("initial-exec")));

void ring_interrupted(void)
{
	struct post_ring *r = posting;
	if (LIKELY(r == NULL))
		return;
	atomic_fetch_or(&r->put, RING_SPOILT);
	posting = NULL;
}

static struct post_ring *post_ring_of(int open, uint32_t qp, bool recv)
{
	if (!engine.post_rings)
		return NULL;
	struct post_ring *r = &engine.post_rings[post_ring_place((uint32_t)open, qp, recv)];
	return atomic_load_explicit(&r->limit, memory_order_relaxed) == 0 ? NULL : r;
}

/* Puts one request in, and tells it to the program in answer, unless that is NULL. */
static bool put(struct post_ring *r, int open, uint32_t qp, const void *wr, size_t size, const void *sge, char *answer)
{
	static const uint32_t posted = 0; /* the answer */
	ring_interrupted(); /* by one that has left for good */
	posting = r;
	if (atomic_exchange(&r->busy, 1)) {
		posting = NULL;
		return false;
	}
	uint32_t limit = atomic_load(&r->limit), at = atomic_load(&r->put); /* in this order: put is 0 before the ring is opened again */
	bool in = at < limit && atomic_load(&r->key) == ((uint64_t)(uint32_t)open << 32 | qp);
	if (in) {
		if (answer)
			memcpy(answer, &posted, sizeof posted);
		memcpy(r->wrs[at], wr, size);
		memcpy(r->sges[at], sge, SGE_SIZE);
		in = atomic_compare_exchange_strong(&r->put, &at, at + 1);
	}
	atomic_store_explicit(&r->busy, 0, memory_order_release);
	posting = NULL;
	return in;
}

/* wr is a struct ib_uverbs_send_wr or ib_uverbs_recv_wr, behind its number. */
static bool may_wait(const void *wr, bool recv)
{
	const uint32_t *w = (const uint32_t *)((const char *)wr + 8); /* elements, and of a send operation and flags */
	return w[0] == 1 && (recv || ((w[1] == WRITE || w[1] == SEND || w[1] == READ) && !(w[2] & INLINE)));
}

long ring_post(int open, const void *buf, size_t n)
{
	const struct post *c = buf;
	if (n < sizeof *c + RECV_SIZE + SGE_SIZE)
		return 0;
	bool recv = c->command == POST_RECV;
	struct post_ring *r = recv || c->command == POST_SEND ? post_ring_of(open, c->qp, recv) : NULL;
	if (!r)
		return 0;
	size_t size = recv ? RECV_SIZE : POST_SIZE;
	if (n != sizeof *c + size + SGE_SIZE || c->in_words * 4u != n || c->out_words < 1 || c->wrs != 1 || c->sges != 1 || c->wr_size != size)
		return 0;
	char *answer = (char *)(uintptr_t)c->response;
	if (!may_wait(c->wr, recv) || !writable(__builtin_frame_address(0), answer, sizeof(uint32_t)))
		return 0;
	return put(r, open, c->qp, c->wr, size, (const char *)c->wr + size, answer) ? (long)n : 0;
}

bool ring_send(int open, uint32_t qp, const void *wr, const void *sge)
{
	struct post_ring *r = post_ring_of(open, qp, false);
	return r && may_wait(wr, false) && put(r, open, qp, wr, POST_SIZE, sge, NULL);
}
