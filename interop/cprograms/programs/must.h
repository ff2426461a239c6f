/* What has to hold in a program of this folder, and what comes next of a completion queue. */
#ifndef MUST_H
#define MUST_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(x)                                                                                                            \
	do {                                                                                                               \
		if (!(x)) {                                                                                                \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, strerror(errno));                           \
			exit(1);                                                                                           \
		}                                                                                                          \
	} while (0)

static inline struct ibv_wc completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	MUST(n == 1);
	return wc;
}

#endif
