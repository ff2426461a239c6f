#include "preload.h"

#include <dlfcn.h>

struct next next;

/* Each store is the whole pointer, and the same from any thread: several may do this at once. A name that libc does not
   have (stat before glibc 2.33, __xstat in one without its past) stays NULL, and files.c knows. */
void next_resolve(void)
{
#define CALL(name, result, params, why) next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name);
#include "calls.h"
#undef CALL
	/* musl has had these for programs that call them, and leads them to the others now where no library stands before it. */
#define SAME(name)                                                                                                         \
	if (!next.name##64)                                                                                                \
		next.name##64 = (__typeof__(next.name##64))next.name;
	SAME(open) SAME(openat) SAME(fopen) SAME(fcntl)
	path_setup();
}

__attribute__((constructor)) static void setup(void)
{
	next_resolve();
	engine_setup();
}
