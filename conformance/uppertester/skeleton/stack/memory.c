/* Octets, regions, and the scatter/gather lists over them. */
#define _GNU_SOURCE
#include "stack.h"

#include <stdlib.h>
#include <string.h>

static struct region *regions[MOST];
static int n_regions;

char *copied(const char *value) { return strndup(value, length(value)); }

void add(struct queue *q, const char *w)
{
	q->w = realloc(q->w, sizeof *q->w * (size_t)(q->n + 1));
	q->w[q->n++] = copied(w);
}

uint64_t get(const uint8_t *b, int n)
{
	uint64_t v = 0;
	while (n--)
		v = v << 8 | *b++;
	return v;
}

uint8_t *put(uint8_t *b, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> 8 * (n - 1 - i));
	return b + n;
}

/* Who stag is, and where n octets at `to` are in it; else what a Terminate says of it. */
struct region *by_stag(uint32_t stag, uint64_t to, uint64_t n, int access, int pd, uint64_t *off)
{
	int i = (int)(stag >> 8) - 1;
	struct region *r = i >= 0 && i < n_regions ? regions[i] : NULL;
	*off = 0;
	if (!r || r->stag != stag)
		return NULL;
	*off = 2;
	if (r->pd != pd || (r->access & access) != access)
		return NULL;
	*off = 1;
	if (to < r->base || to - r->base > r->len || n > r->len - (to - r->base))
		return NULL;
	*off = to - r->base;
	return r;
}

/* Copies between a message, from octet mo on, and a scatter/gather list; how long the list is, or -1. */
long long copy(const char *sgl, int access, int pd, uint64_t mo, uint8_t *b, size_t n)
{
	uint64_t at = 0, off;
	const char *e;
	for (int i = 0; (e = item(sgl, i)); i++) {
		uint64_t len = (uint64_t)num(e, "Length");
		struct region *r = by_stag((uint32_t)num(e, "STag"), (uint64_t)num(e, "TO"), len, access, pd, &off);
		if (len && !r)
			return -1;
		for (uint64_t k = 0; k < len; k++) {
			if (at + k < mo || at + k >= mo + n)
				continue;
			if (access == LOCAL_READ)
				b[at + k - mo] = r->memory[off + k];
			else
				r->memory[off + k] = b[at + k - mo];
		}
		at += len;
	}
	return (long long)at;
}

int Register(const char *a)
{
	int access = (int)num(a, "Access");
	if (!(access & 3) || (access & 5) == 4 || (access & 10) == 8)
		return refused(29, "invalid access rights requested");
	if (n_regions == MOST)
		return refused(1, "insufficient resources to complete request");
	struct region *r = calloc(1, sizeof *r);
	int n = n_regions + 1;
	*r = (struct region){.pd = (int)num(a, "PD"), .access = access, .len = (uint64_t)num(a, "Len")};
	r->stag = (uint32_t)n << 8 | (uint8_t)num(a, "Key");
	r->base = num(a, "ZeroBased") ? 0 : num(a, "VA") ? (uint64_t)num(a, "VA") : (uint64_t)n << 24;
	r->memory = malloc(r->len + 1);
	pattern((uint8_t)num(a, "Seed"), r->memory, r->len);
	regions[n_regions++] = r;
	reply("\"Region\":%d,\"STag\":%u,\"Base\":%llu", n, r->stag, (unsigned long long)r->base);
	return 0;
}

static struct region *region(const char *number)
{
	int n = atoi(number);
	return n > 0 && n <= n_regions ? regions[n - 1] : NULL;
}

int Deregister(const char *a)
{
	if (!region(a))
		return refused(32, "invalid STag index");
	regions[atoi(a) - 1] = NULL;
	return 0;
}

int Memory(const char *a)
{
	struct region *r = region(a);
	if (!r)
		return failed("there is no such region");
	reply_octets("Octets", r->memory, r->len);
	return 0;
}

int Fill(const char *a)
{
	struct region *r = region(field(a, "Region"));
	uint64_t off = (uint64_t)num(a, "Off");
	if (!r || off > r->len)
		return failed("there are no such octets");
	octets(a, "Octets", r->memory + off, r->len - off);
	return 0;
}
