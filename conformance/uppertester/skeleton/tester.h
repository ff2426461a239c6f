/* What tester.c offers a stack, and asks of it. */
#ifndef TESTER_H
#define TESTER_H

#include <stddef.h>
#include <stdint.h>

/* The argument of a call is JSON text. field is the text of a value, item one of a list, NULL if it is
 * not there; num a number or a truth, 0 if it is not there. octets and string copy up to room octets of
 * a value and return how many those are; a string ends with 0. */
const char *field(const char *object, const char *key);
const char *item(const char *list, int i);
long long num(const char *object, const char *key);
size_t octets(const char *object, const char *key, uint8_t *to, size_t room);
size_t string(const char *object, const char *key, char *to, size_t room);

/* How long the text of a value is. */
size_t length(const char *value);

/* The digits of base64. */
extern const char digits[];

/* What Register fills memory with. */
void pattern(uint8_t seed, uint8_t *to, size_t n);

/* The reply: fields of a JSON object, one after the other. A method returns 0, or one of the others: an
 * Immediate Error by its number, or another failure. */
void reply(const char *format, ...) __attribute__((format(printf, 1, 2)));
void reply_octets(const char *key, const uint8_t *b, size_t n);
int refused(int immediate, const char *text);
int failed(const char *text);

/* The session: begin is called with the address that Listen listens on, and go_on when nothing is to be
 * done until fd can be read. */
void begin(const char *host);
void go_on(int fd);

/* The methods: what they do is in tester.c. */
#define METHODS(M) \
	M(Open) M(Destroy) M(Listen) M(Dial) M(Connected) M(Ended) M(Query) M(Modify) M(Register) M(Allocate) M(Share) \
	M(Reregister) M(Deregister) M(QueryRegion) M(Memory) M(Fill) M(AllocateWindow) M(DeallocateWindow) M(QueryWindow) \
	M(PostSend) M(PostRecv) M(Poll) M(Notify) M(Notified) M(Events) M(Ping)
#define DECLARE(name) int name(const char *a);
METHODS(DECLARE)

#endif
