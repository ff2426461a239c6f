/* Tests of how the preload library keeps a program's signal handlers out of the engine, with one that only counts: `make c-unit`. */
#include "../../clib/ring.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* engine.c has what they do. */
enum { HANDLE = 102, POST_RINGS_AT = 114, POSTS, RAISE, INSIDE, OPEN, STACK, BROKEN, FOREIGN, STAY, LEAVE };

static int fd;
static long tell(uint32_t cmd, uint32_t arg)
{
	uint32_t c[2] = {cmd, arg};
	return write(fd, c, sizeof c);
}
static long count(uint32_t cmd) { return tell(cmd, 0) - 1000; }

static sigset_t mask(void)
{
	sigset_t s;
	memset(&s, 0, sizeof s); /* of which the system fills a part */
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &s) == 0);
	return s;
}
static bool same(sigset_t a, sigset_t b) { return memcmp(&a, &b, sizeof a) == 0; }

static stack_t stack(void)
{
	stack_t s;
	CHECK(sigaltstack(NULL, &s) == 0);
	return s;
}

static void install(int s, void (*f)(int), int flags)
{
	struct sigaction a = {.sa_handler = f, .sa_flags = flags};
	CHECK(sigaction(s, &a, NULL) == 0);
}

static _Atomic int handled, within;
static void handle(int s)
{
	(void)s;
	handled++;
	within += (int)count(INSIDE);
}

/* Whatever the engine does with the signals of a thread that it sees for the first time, they are as before, and so is the stack for
   them. This is first: no handler is there. */
static void *new_to_it(void *arg)
{
	sigset_t all, blocked;
	sigfillset(&all);
	CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	blocked = mask();
	CHECK(tell(OPEN, 0) == 8 && same(mask(), blocked) && stack().ss_flags == SS_DISABLE);
	return arg;
}
static void test_new_thread(void)
{
	pthread_t t;
	CHECK(pthread_create(&t, NULL, new_to_it, NULL) == 0 && pthread_join(t, NULL) == 0);
}

/* The first handler is not there before each thread has left that came in when there was none. */
static _Atomic bool installed;
static void *stays(void *arg)
{
	CHECK(tell(HANDLE, 0) >= 1000); /* the first time signals wait anyway */
	CHECK(tell(STAY, 0) == 8);
	return arg;
}
static void *installs(void *arg)
{
	install(SIGUSR2, handle, 0);
	CHECK(count(INSIDE) == 0);
	installed = true;
	return arg;
}
static void test_first_handler(void)
{
	pthread_t in, first;
	CHECK(pthread_create(&in, NULL, stays, NULL) == 0);
	while (count(INSIDE) == 0)
		sched_yield();
	CHECK(pthread_create(&first, NULL, installs, NULL) == 0);
	usleep(10000); /* in which it would, if it did not wait; the next check holds anyway */
	CHECK(!installed && tell(LEAVE, 0) == 8);
	CHECK(pthread_join(in, NULL) == 0 && pthread_join(first, NULL) == 0 && installed);
}

/* A signal that comes in the engine is handled when the thread has left it. */
static void test_waits(void)
{
	sigset_t before = mask();
	install(SIGUSR1, handle, 0);
	install(SIGCHLD, handle, SA_RESTART | SA_ONSTACK);
	install(SIGPROF, handle, SA_RESTART);
	static const int all[] = {SIGUSR1, SIGCHLD, SIGPROF};
	for (int i = 0; i < 3; i++) {
		handled = within = 0;
		errno = 77;
		CHECK(tell(RAISE, (uint32_t)all[i]) == 8 && errno == 77 && handled == 1 && within == 0);
	}
	CHECK(same(mask(), before) && stack().ss_flags == SS_DISABLE);
}

/* The stack for faults is ours in the engine, and the program's elsewhere: also while a handler runs on the program's. */
static char small[16 << 10];
static _Atomic long in_handler;
static _Atomic bool on_small;
static void enters(int s)
{
	char here;
	(void)s;
	on_small = &here >= small && &here < small + sizeof small;
	in_handler = tell(STACK, 0);
}
static void test_stack(void)
{
	long ours = tell(STACK, 0);
	CHECK(ours != 0 && stack().ss_flags == SS_DISABLE);
	stack_t own = {.ss_sp = small, .ss_size = sizeof small}, was, none = {.ss_flags = SS_DISABLE};
	CHECK(sigaltstack(&own, &was) == 0 && was.ss_flags == SS_DISABLE);
	CHECK(tell(STACK, 0) == ours && stack().ss_sp == small && stack().ss_flags == 0);
	install(SIGUSR2, enters, SA_ONSTACK);
	CHECK(raise(SIGUSR2) == 0 && on_small && in_handler == ours);
	CHECK(stack().ss_sp == small && stack().ss_flags == 0 && tell(STACK, 0) == ours);
	CHECK(sigaltstack(&none, &was) == 0 && was.ss_sp == small && stack().ss_flags == SS_DISABLE);
	CHECK(raise(SIGUSR2) == 0 && !on_small && in_handler == ours && stack().ss_flags == SS_DISABLE);
}

/* A handler may leave for good what was an entry. */
static sigjmp_buf back;
static void jumps(int s)
{
	(void)s;
	siglongjmp(back, 1);
}
static void test_jump(void)
{
	sigset_t before = mask();
	install(SIGUSR1, jumps, 0);
	for (volatile int i = 0; i < 100; i++)
		if (sigsetjmp(back, 1) == 0) {
			tell(RAISE, SIGUSR1);
			CHECK(false);
		}
	CHECK(same(mask(), before) && stack().ss_flags == SS_DISABLE && count(INSIDE) == 0);
}

/* The SIGPIPE of a write within the engine is not the program's. */
static void test_pipe(void)
{
	install(SIGPIPE, handle, 0);
	handled = 0;
	CHECK(tell(BROKEN, 0) == 8 && handled == 0);
	CHECK(signal(SIGPIPE, SIG_DFL) == handle);
	CHECK(tell(BROKEN, 0) == 8);
	sigset_t pending;
	CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 0);
	CHECK(signal(SIGPIPE, SIG_IGN) == SIG_DFL);
}

/* A post that is half in its ring, and whose thread a handler takes to the engine, comes to the engine itself. Here the handler is that of a fault
   in the ring. */
struct post {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
	uint32_t qp, wrs, sges, wr_size;
	uint64_t id;
	uint32_t elements, op, flags, ex;
	uint64_t rest[4], sge[2];
};
enum { QP = 5, PAGE = 4096 };
static char *page;
static _Atomic bool jump_out;
static void opens(int s)
{
	(void)s;
	CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
	if (jump_out)
		siglongjmp(back, 1);
	CHECK(tell(HANDLE, 0) >= 1000);
}
static struct post_ring *ring(void)
{
	uint32_t open = (uint32_t)tell(HANDLE, 0) - 1000;
	struct post_ring *r = &((struct post_ring *)tell(POST_RINGS_AT, 0))[post_ring_place(open, QP, 0)];
	r->key = (uint64_t)open << 32 | QP;
	r->busy = 0;
	r->limit = RING_POSTS;
	r->put = 100; /* which is in a page of its own */
	page = (char *)((uintptr_t)r->wrs[100] / PAGE * PAGE);
	CHECK((char *)r->wrs <= page);
	return r;
}
static __attribute__((noinline)) long post(uint64_t id)
{
	uint64_t answer = 0;
	struct post p = {28, sizeof p / 4, 1, (uintptr_t)&answer, QP, 1, 1, 56, id, 1, 2, 2, 7, {1, 2, 3, 4}, {5, 6}};
	return write(fd, &p, sizeof p);
}
static void test_half_posted(void)
{
	struct post_ring *r = ring();
	install(SIGSEGV, opens, 0);
	CHECK(count(FOREIGN) == 1);
	long asked = count(POSTS);
	CHECK(post(1) == sizeof(struct post) && r->put == 101 && count(POSTS) == asked);
	r->put = 100;
	CHECK(mprotect(page, PAGE, PROT_NONE) == 0 && post(2) == sizeof(struct post));
	CHECK((r->put & RING_SPOILT) && (r->put & ~RING_SPOILT) == 100 && count(POSTS) == asked + 1 && r->busy == 0);
	CHECK(post(3) == sizeof(struct post) && count(POSTS) == asked + 2);
	/* One that leaves for good spoils it with the thread's next entry. */
	r = ring();
	asked = count(POSTS);
	jump_out = true;
	if (sigsetjmp(back, 1) == 0) {
		CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
		post(4);
		CHECK(false);
	}
	CHECK(r->put == 100 && post(5) == sizeof(struct post) && count(POSTS) == asked + 1 && (r->put & RING_SPOILT));
	CHECK(signal(SIGSEGV, SIG_DFL) == opens);
	r->key = 0;
	r->limit = r->put = r->busy = 0;
}

/* Handlers fork, open devices and close them at any moment. */
static void forks(int s)
{
	(void)s;
	int e = errno, status, a = open("/dev/infiniband/rdma_cm", O_RDWR);
	CHECK(a >= 0 && close(a) == 0);
	if (handled++ % 10 == 0) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	errno = e;
}
static _Atomic bool over;
static void *churns(void *arg)
{
	while (!over) {
		int a = open("/dev/infiniband/uverbs0", O_RDWR), b = dup(a);
		CHECK(a >= 0 && b >= 0 && close(a) == 0 && close(b) == 0);
	}
	return arg;
}
static void test_fork_in_handler(void)
{
	pthread_t t;
	install(SIGUSR1, forks, SA_RESTART);
	CHECK(pthread_create(&t, NULL, churns, NULL) == 0);
	for (handled = 0; handled < 2000;) {
		pthread_kill(t, SIGUSR1);
		usleep(50);
	}
	over = true;
	CHECK(pthread_join(t, NULL) == 0);
}

int main(void)
{
	static const struct test tests[] = {
		T(test_new_thread), T(test_first_handler), T(test_waits), T(test_stack), T(test_jump), T(test_pipe), T(test_half_posted),
		T(test_fork_in_handler),
	};
	fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	run_all(tests, sizeof tests / sizeof tests[0]);
	return 0;
}
