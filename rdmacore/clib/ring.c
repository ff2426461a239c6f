/* The rings: pages that nobody uses cost nothing. */
#include "ring.h"

#include <stddef.h>

__attribute__((visibility("default"))) struct ring srn_rings[RINGS];

__attribute__((visibility("default"))) struct post_ring srn_post_rings[POST_RINGS];

void *srn_ring_memory(unsigned long size) { return size == sizeof srn_rings ? srn_rings : NULL; }
void *srn_post_ring_memory(unsigned long size) { return size == sizeof srn_post_rings ? srn_post_rings : NULL; }
