/* Measures what a C program pays before it moves data: for `make c-bench`.

     measure open               prints the milliseconds of the first ibv_open_device
     measure rss PROGRAM ...    runs it, and prints the MiB that it had resident at most */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "open") == 0) {
		struct ibv_device **list = ibv_get_device_list(NULL);
		if (!list || !list[0])
			return 1;
		double begun = now();
		if (!ibv_open_device(list[0]))
			return 1;
		printf("measured %.2f\n", now() - begun);
		return 0;
	}
	if (argc < 3 || strcmp(argv[1], "rss") != 0)
		return 2;
	pid_t child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	int status;
	struct rusage used;
	if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0)
		return 1;
	printf("measured %.1f\n", (double)used.ru_maxrss / 1024);
	return 0;
}
