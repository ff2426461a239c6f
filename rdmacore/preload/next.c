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
	path_setup();
}

__attribute__((constructor)) static void setup(void)
{
	next_resolve();
	engine_setup();
}
