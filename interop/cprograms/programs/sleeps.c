/* Threads that sleep, in each way that a signal would end, while verbs are used under and beside them: `sleeps MODE HOST SECONDS` prints
   "MODE: ok" and ends with 0, or says which calls were interrupted. Nobody sends this program a signal, so none may come. In MODE sleeps
   it has no handler; in MODE urgent one of SIGURG, by which Go's runtime would interrupt its threads, that restarts nothing. */
#define _GNU_SOURCE
#include "pair.h"

#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 30 /* ms */, KINDS = 7 };

static _Atomic bool over;
static _Atomic long handled;
static void handle(int s) { handled += s == SIGURG; }

/* What a sleep needs, of the thread's own. */
struct bed {
	int epoll, pipe[2];
	sem_t sem;
	uint32_t word;
	unsigned ms; /* how long to sleep */
};

static void lie_down(struct bed *b)
{
	MUST((b->epoll = epoll_create1(0)) >= 0 && pipe(b->pipe) == 0 && sem_init(&b->sem, 0, 0) == 0);
	b->word = b->ms = 0;
}

static void get_up(struct bed *b)
{
	close(b->epoll);
	close(b->pipe[0]);
	close(b->pipe[1]);
	sem_destroy(&b->sem);
}

/* Each sleeps for b->ms, but for by_read: until an octet is in the pipe. */
static int by_poll(struct bed *b) { return poll(&(struct pollfd){b->pipe[0], POLLIN, 0}, 1, (int)b->ms); }
static int by_epoll(struct bed *b) { return epoll_wait(b->epoll, &(struct epoll_event){0}, 1, (int)b->ms); }
static int by_select(struct bed *b)
{
	fd_set in;
	FD_ZERO(&in);
	FD_SET(b->pipe[0], &in);
	return select(b->pipe[0] + 1, &in, NULL, NULL, &(struct timeval){.tv_usec = b->ms * 1000L});
}
static int by_nanosleep(struct bed *b) { return nanosleep(&(struct timespec){.tv_nsec = b->ms * 1000000L}, NULL); }
static int by_sem(struct bed *b)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += b->ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	return sem_timedwait(&b->sem, &until);
}
static int by_futex(struct bed *b)
{
	struct timespec nap = {.tv_nsec = b->ms * 1000000L};
	return (int)syscall(SYS_futex, &b->word, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0);
}
static int by_read(struct bed *b)
{
	char c;
	return (int)read(b->pipe[0], &c, 1);
}

static struct kind {
	const char *name;
	int (*sleep)(struct bed *);
	_Atomic long calls[2], cut[2]; /* of threads without a queue pair, and with one */
	_Atomic int wakes[2];          /* by_read: what an octet is written to; -1: nobody sleeps there */
} kinds[KINDS] = {
	{.name = "poll", .sleep = by_poll},     {.name = "epoll_wait", .sleep = by_epoll},
	{.name = "select", .sleep = by_select}, {.name = "nanosleep", .sleep = by_nanosleep},
	{.name = "sem_timedwait", .sleep = by_sem}, {.name = "futex", .sleep = by_futex},
	{.name = "read", .sleep = by_read},
};

struct sleeper {
	struct kind *kind;
	bool verbs;
	struct pair pair;
};

/* Some messages, and then a sleep, which Go's runtime may take for a long stay in the engine. */
static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	struct bed b;
	lie_down(&b);
	bool reads = s->kind->sleep == by_read;
	if (reads)
		s->kind->wakes[s->verbs] = b.pipe[1];
	while (!over) {
		if (s->verbs)
			traffic(&s->pair, 20, 5000);
		b.ms = 1 + (b.ms + 6) % LONGEST;
		errno = 0;
		if (s->kind->sleep(&b) < 0 && errno == EINTR)
			s->kind->cut[s->verbs]++;
		else
			MUST(errno == 0 || errno == ETIMEDOUT);
		s->kind->calls[s->verbs]++;
	}
	if (reads) /* a last octet finds its pipe open: main closes nothing, and the process ends soon */
		return NULL;
	get_up(&b);
	return NULL;
}

static void *wakes(void *arg)
{
	for (struct kind *k = arg; !over; usleep(LONGEST * 500))
		for (int i = 0; i < 2; i++)
			MUST(k->wakes[i] < 0 || write(k->wakes[i], "", 1) == 1);
	return NULL;
}

/* Every other second the sleepers are alone: what a busy engine does with a thread that has left, an idle one may not. */
static bool busy_second(void)
{
	bool busy = time(NULL) % 2 == 0;
	if (!busy)
		usleep(10000);
	return busy;
}

/* In the engine nearly all the time, and for longer at once than Go's runtime lets a goroutine run. */
static void *polls(void *arg)
{
	while (!over)
		if (busy_second())
			traffic(arg, 50, 200000);
	return NULL;
}

/* Connections that come and go are garbage, which Go's runtime stops its threads for. */
static void *connects(void *arg)
{
	while (!over) {
		struct pair p;
		if (!busy_second())
			continue;
		make(&p);
		traffic(&p, 2, 100);
		end(&p);
	}
	return arg;
}

static long report(void)
{
	long bad = 0;
	for (struct kind *k = kinds; k < kinds + KINDS; k++) {
		fprintf(stderr, "%-13s %ld calls without a queue pair, %ld interrupted; %ld with, %ld interrupted\n", k->name, k->calls[0],
			k->cut[0], k->calls[1], k->cut[1]);
		MUST(k->calls[0] > 0 && k->calls[1] > 0);
		bad += k->cut[0] + k->cut[1];
	}
	fprintf(stderr, "%ld signals\n", handled);
	return bad + handled;
}

int main(int argc, char **argv)
{
	if (argc != 4 || (strcmp(argv[1], "sleeps") != 0 && strcmp(argv[1], "urgent") != 0)) {
		fprintf(stderr, "usage: sleeps sleeps|urgent HOST SECONDS\n");
		return 2;
	}
	if (strcmp(argv[1], "urgent") == 0)
		MUST(sigaction(SIGURG, &(struct sigaction){.sa_handler = handle}, NULL) == 0);
	host = argv[2];
	listen_();
	static struct sleeper s[KINDS][2];
	static struct pair busy;
	pthread_t t[KINDS][2], waker, poller, connecter;
	make(&busy);
	for (int k = 0; k < KINDS; k++)
		for (int verbs = 0; verbs < 2; verbs++) {
			s[k][verbs] = (struct sleeper){.kind = &kinds[k], .verbs = verbs};
			kinds[k].wakes[verbs] = -1;
			if (verbs)
				make(&s[k][verbs].pair);
		}
	for (int k = 0; k < KINDS; k++)
		for (int verbs = 0; verbs < 2; verbs++)
			MUST(pthread_create(&t[k][verbs], NULL, sleeps, &s[k][verbs]) == 0);
	MUST(pthread_create(&waker, NULL, wakes, &kinds[KINDS - 1]) == 0 && pthread_create(&poller, NULL, polls, &busy) == 0);
	MUST(pthread_create(&connecter, NULL, connects, NULL) == 0);
	for (time_t until = time(NULL) + atoi(argv[3]); time(NULL) < until;)
		usleep(100000);
	over = true;
	for (int i = 0; i < 2; i++)
		MUST(write(kinds[KINDS - 1].wakes[i], "", 1) == 1);
	for (int k = 0; k < KINDS; k++)
		for (int verbs = 0; verbs < 2; verbs++)
			MUST(pthread_join(t[k][verbs], NULL) == 0);
	MUST(pthread_join(waker, NULL) == 0 && pthread_join(poller, NULL) == 0 && pthread_join(connecter, NULL) == 0);
	if (report() != 0)
		return 1;
	printf("%s: ok\n", argv[1]);
	return 0;
}
