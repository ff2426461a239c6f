/* What has to hold in a test of the preload library, and how the tests of a file are run. */
#ifndef SOFTRNIC_TEST_CHECK_H
#define SOFTRNIC_TEST_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                                                                        \
	do {                                                                                                               \
		if (!(what)) {                                                                                             \
			fprintf(stderr, "%s:%d: %s (errno %s)\n", __FILE__, __LINE__, #what, strerror(errno));             \
			_exit(1);                                                                                          \
		}                                                                                                          \
	} while (0)

struct test {
	const char *name;
	void (*run)(void);
};
#define T(name) {#name, name}

static inline void run_all(const struct test *tests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		alarm(300); /* to what hangs */
		tests[i].run();
		printf("ok %s\n", tests[i].name);
		fflush(stdout);
	}
}

#endif
