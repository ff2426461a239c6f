/* What the engine and the preload library share of a completion queue: completions that the engine has for the program already, so
   that a poll takes them without a call of the engine. rdmacore/internal/uverbs/ring.go has the same in Go, and puts them in. */
#ifndef SOFTRNIC_RING_H
#define SOFTRNIC_RING_H

#include <stdint.h>

enum { RINGS = 256, RING_WCS = 256, WC_SIZE = 48 /* struct ib_uverbs_wc */, RING_SPARE = 16 /* stay free for what is given back */ };

struct ring {
	/* The engine's handle of the open << 32 | the handle of the queue, which is not 0; 0: nobody's. */
	_Atomic uint64_t key;
	/* Which owner of the ring this is << 32 | how many completions were taken. Whoever takes some raises it in one step, in which the
	   owner is the same still: another ring, and completions that were taken meanwhile, make the step fail. In the same way who has
	   taken some lowers it, and gives back the last of them. */
	_Atomic uint64_t taken;
	_Atomic uint32_t put; /* how many were put in */
	_Atomic uint32_t more; /* not 0: some stayed behind for lack of room, so that a poll for more than there are here asks the engine */
	uint64_t wcs[RING_WCS][WC_SIZE / 8];
};

/* Where the ring of a queue is, if it has one: another may have had the place first. */
static inline unsigned ring_place(uint32_t open, uint32_t queue) { return (queue + open * 37) % RINGS; }

/* Posts that wait for company, of one Send or Receive Queue: rdmacore/internal/uverbs/waiting.go has the same in Go, and when they wait. */
enum { POST_RINGS = 256, RING_POSTS = 128, POST_SIZE = 56 /* struct ib_uverbs_send_wr */, SGE_SIZE = 16 };

/* In put: nothing more comes in, and a thread in the middle of a post takes it to the engine. */
#define RING_SPOILT 0x80000000u

struct post_ring {
	_Atomic uint64_t key;   /* as of a struct ring, with the handle of the queue pair */
	_Atomic uint32_t busy;  /* a thread is putting a post in */
	_Atomic uint32_t limit; /* how many may be put in; 0: it is closed */
	_Atomic uint32_t put;   /* how many were */
	uint32_t unused;
	uint64_t wrs[RING_POSTS][POST_SIZE / 8], sges[RING_POSTS][SGE_SIZE / 8];
};

static inline unsigned post_ring_place(uint32_t open, uint32_t qp, unsigned recv) { return (qp * 2 + recv + open * 37) % POST_RINGS; }

/* The rings, if they are of that size in Go too; else NULL. */
void *srn_ring_memory(unsigned long size);
void *srn_post_ring_memory(unsigned long size);

#endif
