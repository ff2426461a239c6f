/* Signal handlers of a program whose threads are in verbs nearly all the time: `handlers MODE HOST SECONDS` prints "MODE: ok" and ends
   with 0, or says which line did not hold. A handler has to run in a thread of the program's, on a stack of the program's. */
#define _GNU_SOURCE
#include <pthread.h>

static int start(pthread_t *, void *(*)(void *), void *);
#define START start
#include "pair.h"

#include <dirent.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic long ran, strangers, astray, lost; /* handlers: all, in no thread of ours, on no stack of ours, whose backtrace lacks main */
static _Thread_local struct { uintptr_t low, high; } stack;
static struct { char *at; size_t size; } alternate; /* of the main thread, if the program has one */
static _Atomic bool over;

static void know_stack(void)
{
	pthread_attr_t a;
	void *low;
	size_t size;
	MUST(pthread_getattr_np(pthread_self(), &a) == 0 && pthread_attr_getstack(&a, &low, &size) == 0);
	pthread_attr_destroy(&a);
	stack.low = (uintptr_t)low;
	stack.high = stack.low + size;
}

/* A thread takes no signal before its stack is known. */
struct begin {
	void *(*f)(void *);
	void *arg;
	sigset_t mask;
};

static void *begins(void *arg)
{
	struct begin b = *(struct begin *)arg;
	free(arg);
	know_stack();
	pthread_sigmask(SIG_SETMASK, &b.mask, NULL);
	return b.f(b.arg);
}

static int start(pthread_t *t, void *(*f)(void *), void *arg)
{
	struct begin *b = malloc(sizeof *b);
	MUST(b);
	*b = (struct begin){.f = f, .arg = arg};
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &b->mask);
	sigset_t were = b->mask;
	int r = pthread_create(t, NULL, begins, b);
	pthread_sigmask(SIG_SETMASK, &were, NULL);
	return r;
}

static void note(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)alternate.at;
	ran++;
	if (stack.high == 0)
		strangers++;
	else if (!(here >= stack.low && here < stack.high) && !(here >= at && here < at + alternate.size))
		astray++;
}

/* Fills n octets of stack, and holds them against what was filled in. */
static __attribute__((noinline)) void use_stack(size_t n)
{
	volatile char room[n];
	for (size_t i = 0; i < n; i++)
		room[i] = (char)i;
	for (size_t i = 0; i < n; i++)
		if (room[i] != (char)i)
			abort();
}

static void small(int s) { (void)s; note(); use_stack(64); }
static void deep(int s) { (void)s; note(); use_stack(16 << 10); }
static void deeper(int s) { (void)s; note(); use_stack(64 << 10); }

static void install(int s, void (*f)(int), int flags)
{
	struct sigaction a = {.sa_handler = f, .sa_flags = flags};
	MUST(sigaction(s, &a, NULL) == 0);
}

static void every(int which, int us)
{
	struct itimerval t = {{0, us}, {0, us}};
	MUST(setitimer(which, &t, NULL) == 0);
}

/* What the engine must leave as it was. */
static void unchanged(void)
{
	sigset_t now;
	stack_t own;
	MUST(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && sigaltstack(NULL, &own) == 0);
	for (int s = 1; s < NSIG; s++)
		MUST(sigismember(&now, s) != 1);
	MUST(alternate.at ? own.ss_sp == alternate.at && own.ss_flags == 0 : own.ss_flags == SS_DISABLE);
}

/* Counts the threads beside this one, and those of them that block more than want; each must block want. */
static int threads_beside(unsigned long long want, int *more)
{
	DIR *tasks = opendir("/proc/self/task");
	MUST(tasks);
	int seen = 0;
	*more = 0;
	for (struct dirent *d; (d = readdir(tasks));) {
		char name[300], line[100];
		unsigned long long blocked;
		if (atoi(d->d_name) == 0 || atoi(d->d_name) == getpid())
			continue;
		snprintf(name, sizeof name, "/proc/self/task/%s/status", d->d_name);
		FILE *f = fopen(name, "r");
		if (!f) /* it has ended */
			continue;
		while (fgets(line, sizeof line, f))
			if (sscanf(line, "SigBlk: %llx", &blocked) == 1) {
				MUST((blocked & want) == want);
				*more += blocked != want;
				seen++;
			}
		fclose(f);
	}
	closedir(tasks);
	return seen;
}

/* The threads that are left beside this one, which are the engine's, take faults alone, and the two signals that libc keeps to itself.
 * A thread that begins or ends has all of them blocked by libc for a moment. */
static void engine_takes_none(void)
{
	static const int open[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGKILL, SIGSTOP, 32, 33};
	unsigned long long want = ~0ULL;
	for (unsigned i = 0; i < sizeof open / sizeof *open; i++)
		want &= ~(1ULL << (open[i] - 1));
	int more = 0;
	MUST(threads_beside(want, &more) > 0);
	for (int looks = 0; more > 0; looks++) {
		MUST(looks < 10000);
		usleep(1000);
		threads_beside(want, &more);
	}
	struct sigaction a;
	MUST(sigaction(SIGURG, NULL, &a) == 0 && a.sa_handler == SIG_DFL);
}

static void rounds(struct pair *p)
{
	static const unsigned sizes[] = {8, 3000, 70000};
	for (int i = 0; i < 3; i++)
		traffic(p, 30, sizes[i]);
}

/* Connects, moves data and ends, again and again. */
static void works(void)
{
	while (!over) {
		struct pair p;
		make(&p);
		for (int i = 0; i < 30 && !over; i++)
			rounds(&p);
		end(&p);
	}
}

static pthread_t worker, sleeper;

/* Moves data beside it, and waits for each message in ibv_get_cq_event. */
static void *events(void *arg)
{
	struct pair *p = arg;
	static char out[512], in[512];
	struct ibv_mr *from, *to;
	MUST(from = rdma_reg_msgs(p->client, out, sizeof out));
	MUST(to = rdma_reg_msgs(p->server, in, sizeof in));
	for (unsigned char c = 0; !over; c++) {
		struct ibv_cq *cq;
		void *context;
		memset(out, c, sizeof out);
		MUST(rdma_post_recv(p->server, NULL, in, sizeof in, to) == 0 && ibv_req_notify_cq(p->server->recv_cq, 0) == 0);
		send_(p->client, from, out, sizeof out);
		while (ibv_get_cq_event(p->server->recv_cq_channel, &cq, &context) != 0)
			MUST(errno == EINTR);
		ibv_ack_cq_events(cq, 1);
		MUST(completion(p->server->recv_cq).status == IBV_WC_SUCCESS && memcmp(in, out, sizeof in) == 0);
		MUST(completion(p->client->send_cq).status == IBV_WC_SUCCESS);
	}
	rdma_dereg_mr(from);
	rdma_dereg_mr(to);
	return NULL;
}

static void *polls(void *arg)
{
	for (struct pair *p = arg; !over;)
		rounds(p);
	return NULL;
}

static struct pair of_sleeper, of_worker;

/* Beside the main thread one polls and one sleeps. */
static void crowd(void)
{
	make(&of_sleeper);
	make(&of_worker);
	MUST(start(&sleeper, events, &of_sleeper) == 0 && start(&worker, polls, &of_worker) == 0);
}

static void timer(void (*handler)(int), int flags, int us)
{
	install(SIGALRM, handler, flags);
	crowd();
	every(ITIMER_REAL, us);
	works();
	every(ITIMER_REAL, 0);
}

static void mode_small(void) { timer(small, SA_RESTART, 60); }
static void mode_deep(void) { timer(deep, SA_RESTART, 300); }
static void mode_onstack(void) { timer(deeper, SA_RESTART | SA_ONSTACK, 300); }

static void mode_altstack(void)
{
	alternate.size = 128 << 10;
	MUST(alternate.at = malloc(alternate.size));
	stack_t s = {.ss_sp = alternate.at, .ss_size = alternate.size};
	MUST(sigaltstack(&s, NULL) == 0);
	timer(deeper, SA_RESTART | SA_ONSTACK, 300);
}

/* A profiler: where is the program? Under main, or where its threads begin. */
static void profiles(int s)
{
	(void)s;
	note();
	int e = errno;
	void *at[64];
	int n = backtrace(at, 64);
	uintptr_t top = n > 0 ? (uintptr_t)at[n - 1] : 0;
	static uintptr_t begins[4]; /* of clone and of _start: what all backtraces end with */
	for (int i = 0; i < 4 && top; i++) {
		if (begins[i] == 0)
			begins[i] = top;
		if (begins[i] == top)
			top = 0;
	}
	if (top)
		lost++;
	errno = e;
}

static void mode_profile(void)
{
	void *at[4];
	backtrace(at, 4); /* loads what it needs */
	install(SIGPROF, profiles, SA_RESTART);
	crowd();
	every(ITIMER_PROF, 1000);
	works();
	every(ITIMER_PROF, 0);
}

/* SIGCHLD of children that come and go. */
static _Atomic int children;
static void reaps(int s)
{
	(void)s;
	note();
	use_stack(8 << 10);
	int e = errno, status;
	while (waitpid(-1, &status, WNOHANG) > 0)
		children--;
	errno = e;
}

static void *forks(void *arg)
{
	(void)arg;
	while (!over) {
		children++;
		pid_t one = fork();
		MUST(one >= 0);
		if (one == 0)
			_exit(0);
		while (children > 0 && !over)
			usleep(100);
	}
	return NULL;
}

static void mode_children(void)
{
	pthread_t t;
	install(SIGCHLD, reaps, SA_RESTART);
	crowd();
	MUST(start(&t, forks, NULL) == 0);
	works();
	MUST(pthread_join(t, NULL) == 0);
}

/* A poll without libibverbs, whose own takes memory from malloc, and out of that no handler may jump. */
static int poll_raw(struct ibv_cq *cq, int most)
{
	struct { uint32_t command; uint16_t in_words, out_words; uint64_t response; uint32_t cq, most; } c;
	struct { uint32_t count, reserved; uint64_t wcs[8][6]; } r;
	c = (__typeof__(c)){21 /* POLL_CQ */, sizeof c / 4, sizeof r / 4, (uintptr_t)&r, cq->handle, (uint32_t)most};
	MUST(write(cq->context->cmd_fd, &c, sizeof c) == sizeof c);
	for (uint32_t i = 0; i < r.count; i++)
		MUST((uint32_t)r.wcs[i][1] == IBV_WC_SUCCESS);
	return (int)r.count;
}

/* jump: the handler leaves what it interrupts, a verb say, for good. */
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;
static void jumps(int s)
{
	(void)s;
	note();
	if (may_jump) {
		may_jump = 0;
		siglongjmp(back, 1);
	}
}

static struct ibv_mr *sent, *received;
static char octets[2][64];

/* A pair whose receives are plenty and always there. */
static void stream(struct pair *p)
{
	make(p);
	MUST(sent = rdma_reg_msgs(p->client, octets[0], sizeof octets[0]));
	MUST(received = rdma_reg_msgs(p->server, octets[1], sizeof octets[1]));
	for (int i = 0; i < DEPTH / 2; i++)
		MUST(rdma_post_recv(p->server, NULL, octets[1], sizeof octets[1], received) == 0);
}

static void mode_jump(void)
{
	struct pair p;
	stream(&p);
	install(SIGALRM, jumps, SA_RESTART);
	every(ITIMER_REAL, 200);
	static volatile long jumped;
	while (!over) {
		if (sigsetjmp(back, 1) != 0)
			jumped++;
		may_jump = 1;
		for (int i = 0; i < 1000 && !over; i++) {
			poll_raw(p.client->send_cq, 8);
			if (poll_raw(p.server->recv_cq, 1) == 1)
				rdma_post_recv(p.server, NULL, octets[1], sizeof octets[1], received);
			try_send(p.client, sent, octets[0], sizeof octets[0]);
		}
		may_jump = 0;
	}
	every(ITIMER_REAL, 0);
	MUST(jumped > 0);
	/* What it did last may have been half done; the next connection is none the worse. */
	struct pair fresh;
	make(&fresh);
	traffic(&fresh, 100, 3000);
	end(&fresh);
	end(&p);
}

/* verbs: the handler posts and polls where the program does, on the same queue pair. */
static struct pair both_use;
static _Atomic long posted, polled;
static void uses(struct pair *p)
{
	if (try_send(p->client, sent, octets[0], sizeof octets[0]))
		posted++;
	polled += poll_raw(p->client->send_cq, 8);
	for (int n = poll_raw(p->server->recv_cq, 8); n > 0; n--)
		MUST(rdma_post_recv(p->server, NULL, octets[1], sizeof octets[1], received) == 0);
}

static void handler_uses(int s)
{
	(void)s;
	note();
	int e = errno;
	uses(&both_use);
	errno = e;
}

static void mode_verbs(void)
{
	stream(&both_use);
	install(SIGALRM, handler_uses, SA_RESTART);
	every(ITIMER_REAL, 300);
	while (!over)
		for (int i = 0; i < 1000; i++)
			uses(&both_use);
	every(ITIMER_REAL, 0);
	time_t limit = time(NULL) + 30;
	while (polled < posted && time(NULL) < limit)
		uses(&both_use);
	MUST(polled + DEPTH >= posted); /* no post is lost: what is under way still is not more than the queue has */
	while (polled < posted && time(NULL) < limit)
		polled += poll_raw(both_use.client->send_cq, 8);
	MUST(polled == posted);
	end(&both_use);
}

/* faults: the program has a handler for its own, which has nothing to do with those of the engine's copies of its memory. */
static _Atomic long faults;
static void counts_fault(int s)
{
	(void)s;
	faults++;
	note();
	siglongjmp(back, 1);
}

static void mode_faults(void)
{
	enum { N = 1 << 13 };
	while (!over) {
		struct pair p;
		make(&p);
		char *a = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *b = calloc(1, N);
		MUST(a != MAP_FAILED && b);
		struct ibv_mr *from, *to;
		MUST(from = rdma_reg_msgs(p.client, a, N));
		MUST(to = rdma_reg_msgs(p.server, b, N));
		MUST(rdma_post_recv(p.server, NULL, b, N, to) == 0);
		install(SIGSEGV, SIG_DFL, 0);
		install(SIGSEGV, counts_fault, 0); /* behind the last that the engine could look at */
		MUST(mprotect(a, N, PROT_NONE) == 0);
		long before = faults;
		send_(p.client, from, a, N);
		MUST(completion(p.client->send_cq).status == IBV_WC_LOC_PROT_ERR && faults == before);
		if (sigsetjmp(back, 1) == 0)
			*(volatile char *)a = 1;
		MUST(faults == before + 1);
		rdma_dereg_mr(from);
		rdma_dereg_mr(to);
		end(&p);
		munmap(a, N);
		free(b);
	}
}

static void *ends(void *seconds)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	sleep((unsigned)(uintptr_t)seconds);
	over = true;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{"small", mode_small}, {"deep", mode_deep}, {"onstack", mode_onstack}, {"altstack", mode_altstack},
		{"profile", mode_profile}, {"children", mode_children}, {"jump", mode_jump}, {"verbs", mode_verbs}, {"faults", mode_faults},
	};
	for (unsigned i = 0; argc == 4 && i < sizeof modes / sizeof *modes; i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		host = argv[2];
		know_stack();
		pthread_t t;
		MUST(start(&t, ends, (void *)(uintptr_t)atoi(argv[3])) == 0);
		listen_();
		modes[i].run();
		MUST(pthread_join(t, NULL) == 0);
		if (sleeper) {
			MUST(pthread_join(sleeper, NULL) == 0 && pthread_join(worker, NULL) == 0);
			end(&of_sleeper);
			end(&of_worker);
		}
		rdma_destroy_ep(listener);
		unchanged();
		engine_takes_none();
		fprintf(stderr, "%s: %ld handlers; %ld in another's thread, %ld on another's stack, %ld lost their way\n", modes[i].name, ran, strangers, astray, lost);
		MUST(ran > 0 && strangers == 0 && astray == 0 && lost == 0);
		printf("%s: ok\n", modes[i].name);
		return 0;
	}
	fprintf(stderr, "usage: handlers small|deep|onstack|altstack|profile|children|jump|verbs|faults HOST SECONDS\n");
	return 2;
}
