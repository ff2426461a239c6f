/* What the files of the stack have of each other. All of it is one session's: see tester.c. */
#ifndef STACK_H
#define STACK_H

#include "../tester.h"

enum { IDLE, RTS, CLOSING, TERMINATE, ERROR };
enum { SEND, SEND_SE, WRITE = 4, READ, RECV = 10 };                                /* operations */
enum { LOCAL_READ = 1, LOCAL_WRITE = 2, REMOTE_READ = 4, REMOTE_WRITE = 8 };       /* rights */
enum { CLOSED = 1, TERMINATED, RESET, BAD_CLOSE = 22 };                            /* events */
enum { FLUSHED = 1, INVALID_STAG = 5 };                                            /* statuses */
enum { NO_STREAM, LISTENS, AWAITS_REQUEST, AWAITS_REPLY, RUNS, DRAINS };           /* of a stream */
enum { MOST = 512 };                                                               /* objects of a kind */

struct region {
	int pd, access;
	uint32_t stag;
	uint64_t base, len;
	uint8_t *memory;
};

/* Work requests, as they came: JSON. Those before `first` are gone. */
struct queue {
	char **w;
	int first, n;
};

struct qp {
	int pd, send_cq, recv_cq, ird, ord, send_depth, recv_depth, state;
	struct queue recvs, sends, reads;
	char terminate[256]; /* field of the reply; empty for none */

	int phase, fd;
	char *args;    /* of Listen or Dial */
	char *result;  /* of the startup; NULL until there is one */
	int crc, gate; /* gate: nothing may be sent yet */
	uint32_t sent, asked, expected, placed, answered;
	uint64_t fetched; /* of the oldest Read */
	size_t mulpdu, have, room;
	uint8_t *in;
};

extern struct qp *qps[MOST];
extern int n_qps;

/* calls.c: completions and events. */
void complete(const struct qp *q, int cq, const char *w, int op, int status, uint64_t bytes);
void event(const struct qp *q, int id);

/* memory.c: octets in network order, regions. by_stag is who stag is, and where n octets at `to` are in
 * it; else what a Terminate says of it. copy copies between a message, from octet mo on, and a
 * scatter/gather list; it is how long the list is, or -1. add keeps a work request. */
uint64_t get(const uint8_t *b, int n);
uint8_t *put(uint8_t *b, uint64_t v, int n);
char *copied(const char *value);
void add(struct queue *q, const char *w);
struct region *by_stag(uint32_t stag, uint64_t to, uint64_t n, int access, int pd, uint64_t *off);
long long copy(const char *sgl, int access, int pd, uint64_t mo, uint8_t *b, size_t n);

/* send.c: FPDUs. out sends octets, message a message, push what is posted, refuse a Terminate Message
 * for segment u (NULL for none), which is 0; finish ends a stream. */
void out(struct qp *q, const uint8_t *b, size_t n);
uint32_t crc32c(const uint8_t *b, size_t n);
void message(struct qp *q, int tagged, int control, uint32_t name, uint64_t where, const uint8_t *data, size_t n);
void push(struct qp *q);
int refuse(struct qp *q, int code, int why, const uint8_t *u, size_t n);
void finish(struct qp *q, int state, int why);

/* receive.c: a segment that came; 0. */
int segment(struct qp *q, const uint8_t *u, size_t n);

/* stream.c: the startup, and the octets of streams. turn waits for octets, ms milliseconds at most, of
 * any stream or of fd (-1: none). */
void send_frame(struct qp *q, const char *key, int flags, int rev);
void start(struct qp *q, const char *why, int rejected, const char *more);
void turn(int fd, int ms);
#define UNKNOWN "\"PeerIRD\":-1,\"PeerORD\":-1"

#endif
