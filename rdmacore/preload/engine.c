/* The engine is loaded when a program opens its first device, or reads a file of a device without an address, and once more, as a library of its own, in a child of
   fork: that has the parent's engine in memory, but none of its threads, so the one it has can do nothing. */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

struct engine engine;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char library[PATH_MAX]; /* "": none */
static char *variables; /* of the environment that the program began with, of ours: NAME=value, each with a 0 behind it */
static size_t variables_size;
static pid_t self;
static unsigned generation; /* forks between the program's first process and this one, of those with an engine */
static bool refused;        /* loading failed, and was reported */

/* The signal handlers before the engine came, and those of them that it has put others over. */
static struct sigaction before[NSIG], after[NSIG];
static _Atomic bool handlers_known;

bool own_process(void) { return getpid() == self; }

/* Weak: another libc than glibc loads this library without them. In a container it comes into every program, and all but those
   that look for RDMA must not notice. Go's runtime in a library needs glibc. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));

void say(const char *what, const char *why, const char *help)
{
	char line[2 * PATH_MAX]; /* in one write, which nothing comes between */
	int n = snprintf(line, sizeof line, "softrnic: %s: %s; %s\n", what, why, help);
	if (n > 0)
		NEXT(write)(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static int refuse_for(const char *what, const char *why, const char *help)
{
	if (!refused)
		say(what, why, help);
	refused = true;
	return ENODEV;
}

static int refuse(const char *what, const char *why)
{
	return refuse_for(what, why,
			  gnu_get_libc_version ? "start the program with `rnic run`, which `make c` completes, or in a container as docs/containers.md says"
					       : "build the program on a system, or in an image, with glibc");
}

/* The path of a copy of the engine, in memory: the dynamic loader takes it for another library, if its path is new too,
   which the steps that lead nowhere see to. Returns its descriptor, or -1. */
static int copy_engine(char *path, size_t size)
{
	struct stat st;
	int in = NEXT(open)(library, O_RDONLY | O_CLOEXEC), out = memfd_create("softrnic-engine", MFD_CLOEXEC);
	if (in < 0 || out < 0 || fstat(in, &st) != 0)
		st.st_size = 0;
	off_t done = 0;
	while (done < st.st_size && sendfile(out, in, &done, (size_t)(st.st_size - done)) > 0)
		;
	if (in >= 0)
		NEXT(close)(in);
	size_t n = (size_t)snprintf(path, size, "/proc/self/fd/");
	for (unsigned i = 0; i < generation && n + 2 < size - 16; i++, n += 2)
		memcpy(path + n, "./", 3);
	snprintf(path + n, size - n, "%d", out);
	return out;
}

/* What Go's runtime needs handlers for in a library: faults of its own, and writes to sockets that are closed. */
static const int needs[] = {SIGSEGV, SIGBUS, SIGPIPE};
enum { NEEDS = sizeof needs / sizeof *needs };

bool is_engine_handler(int s, const struct sigaction *a)
{
	for (int i = 0; i < NEEDS && handlers_known; i++)
		if (s == needs[i])
			return a->sa_sigaction == after[s].sa_sigaction;
	return false;
}

/* libc's setuid() has its handler run in all threads, also in those on a stack of Go's. libc does not let it be
   changed. */
static void setxid_on_stack(void)
{
	enum { SIGSETXID = 33 };
	struct { /* as the system has it */
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} a;
	if (syscall(SYS_rt_sigaction, SIGSETXID, NULL, &a, sizeof a.mask) != 0 || !a.handler || (a.flags & SA_ONSTACK))
		return;
	a.flags |= SA_ONSTACK;
	syscall(SYS_rt_sigaction, SIGSETXID, &a, NULL, sizeof a.mask);
}

/* Gives the program back what the engine has changed and does not need: SA_ONSTACK in all handlers, and a handler of
   SIGURG. */
static void give_back(void)
{
	for (int i = 0; i < NEEDS; i++)
		NEXT(sigaction)(needs[i], NULL, &after[needs[i]]);
	handlers_known = true;
	for (int s = 1; s < NSIG; s++) {
		struct sigaction now;
		if (NEXT(sigaction)(s, NULL, &now) != 0 || is_engine_handler(s, &now))
			continue;
		bool taken = now.sa_sigaction == after[SIGSEGV].sa_sigaction;
		bool moved = now.sa_sigaction == before[s].sa_sigaction && now.sa_flags == (before[s].sa_flags | SA_ONSTACK);
		if (taken || moved)
			NEXT(sigaction)(s, &before[s], NULL);
	}
	setxid_on_stack();
}

static int load(void)
{
	char path[PATH_MAX];
	int copy = -1;
	if (!gnu_get_libc_version)
		return refuse("this program", "it is linked with musl, and the engine is made for glibc");
	if (!library[0])
		return refuse("no engine", "SOFTRNIC_ENGINE is not set");
	const char *lacks = no_room();
	if (lacks)
		return refuse_for("loading the engine", lacks, "raise it, or open a device before the program lowers it");
	if (generation > 0)
		copy = copy_engine(path, sizeof path);
	for (int s = 1; s < NSIG; s++)
		NEXT(sigaction)(s, NULL, &before[s]);
	engine_loads = true;
	void *lib = dlopen(generation > 0 ? path : library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	engine_loads = false;
	if (copy >= 0)
		NEXT(close)(copy);
	if (!lib)
		return refuse("loading the engine", dlerror());
	give_back();
	struct engine e = {
		generation + 1,
		(__typeof__(e.begin))dlsym(lib, "srn_begin"),
		(__typeof__(e.open))dlsym(lib, "srn_open"),
		(__typeof__(e.close))dlsym(lib, "srn_close"),
		(__typeof__(e.write))dlsym(lib, "srn_write"),
		(__typeof__(e.file))dlsym(lib, "srn_file"),
		(__typeof__(e.forked))dlsym(lib, "srn_forked"),
		(__typeof__(e.watch))dlsym(lib, "srn_watch"),
		(__typeof__(e.foreign))dlsym(lib, "srn_foreign"),
		(__typeof__(e.channels))dlsym(lib, "srn_channels"),
		(__typeof__(e.rings))dlsym(lib, "srn_rings"),
		(__typeof__(e.post_rings))dlsym(lib, "srn_post_rings"),
	};
	if (!e.begin || !e.open || !e.close || !e.write || !e.file || !e.forked || !e.watch || !e.foreign || !e.channels || !e.rings || !e.post_rings)
		return refuse(library, "is not an engine of this version");
	engine = through_entries(e);
	engine.begin(variables, variables_size);
	return 0;
}

/* Signals wait: a handler may fork, which takes the lock, and threads of the engine begin with the signals that wait
   here, so that no handler of the program's runs in them. */
static uint64_t signals_were; /* of the lock's holder */
static void take(void)
{
	uint64_t were = signals_hold();
	pthread_mutex_lock(&lock);
	signals_were = were;
}
static void give(void)
{
	uint64_t were = signals_were;
	pthread_mutex_unlock(&lock);
	signals_release(were);
}

int engine_load(void)
{
	take();
	int r = engine.open ? 0 : load();
	signals_scan();
	give();
	return r;
}

/* Takes the signals back from an engine that can serve them no more, where the program has not done so. */
static void restore_handlers(void)
{
	struct sigaction now;
	for (int i = 0; i < NEEDS; i++)
		if (NEXT(sigaction)(needs[i], NULL, &now) == 0 && is_engine_handler(needs[i], &now))
			NEXT(sigaction)(needs[i], &before[needs[i]], NULL);
	handlers_known = false;
}

/* fork waits until no thread is in the middle of a change: the child would find it so for ever. */
static void before_fork(void)
{
	take();
	fd_lock();
}

static void in_parent(void)
{
	fd_unlock();
	give();
}

/* The peer of a connection whose process ends has to see that: a child must not hold the sockets open. */
static void in_child(void)
{
	self = getpid();
	if (engine.forked) {
		engine.forked();
		restore_handlers();
		entries_forked();
		fd_forked();
		engine = (struct engine){0};
		generation++;
	}
	in_parent();
}

/* A program may clear its environment, or write its title over it, before it opens a device. */
static void keep_variables(void)
{
	static const char *const names[] = {"SOFTRNIC_", "SYSFS_PATH="};
	for (int copy = 0; copy < 2; copy++) {
		size_t n = 0;
		for (char **v = environ; v && *v; v++)
			for (size_t i = 0; i < sizeof names / sizeof *names; i++)
				if (strncmp(*v, names[i], strlen(names[i])) == 0) {
					if (copy)
						memcpy(variables + n, *v, strlen(*v) + 1);
					n += strlen(*v) + 1;
				}
		if (!copy && (n == 0 || !(variables = malloc(n))))
			return;
		variables_size = n;
	}
}

void engine_setup(void)
{
	keep_variables();
	const char *p = getenv("SOFTRNIC_ENGINE");
	if (p && strlen(p) < sizeof library)
		memcpy(library, p, strlen(p) + 1);
	self = getpid();
	if (__register_atfork) /* what pthread_atfork() calls */
		__register_atfork(before_fork, in_parent, in_child, NULL);
}
