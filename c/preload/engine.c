/* The engine is loaded when a program opens its first device, and once more, as a library of its own, in a child of
   fork: that has the parent's engine in memory, but none of its threads, so the one it has can do nothing. */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

struct engine engine;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char library[PATH_MAX]; /* "": none */
static pid_t self;
static unsigned generation; /* forks between the program's first process and this one, of those with an engine */
static bool refused;        /* loading failed, and was reported */

/* The signal handlers before the engine came, and what it made of them. */
static struct sigaction before[NSIG], after[NSIG];
static _Atomic bool handlers_known;

bool own_process(void) { return getpid() == self; }

static int refuse(const char *what, const char *why)
{
	if (!refused)
		fprintf(stderr, "softrnic: %s: %s; start the program with `rnic run`, which `make c` completes\n", what, why);
	refused = true;
	return ENODEV;
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

static int load(void)
{
	char path[PATH_MAX];
	int copy = -1;
	if (!library[0])
		return refuse("no engine", "SOFTRNIC_ENGINE is not set");
	if (generation > 0)
		copy = copy_engine(path, sizeof path);
	for (int s = 1; s < NSIG; s++)
		sigaction(s, NULL, &before[s]);
	void *lib = dlopen(generation > 0 ? path : library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (copy >= 0)
		NEXT(close)(copy);
	if (!lib)
		return refuse("loading the engine", dlerror());
	struct engine e = {
		(__typeof__(e.open))dlsym(lib, "srn_open"),
		(__typeof__(e.close))dlsym(lib, "srn_close"),
		(__typeof__(e.write))dlsym(lib, "srn_write"),
		(__typeof__(e.forked))dlsym(lib, "srn_forked"),
		(__typeof__(e.watch))dlsym(lib, "srn_watch"),
		(__typeof__(e.channels))dlsym(lib, "srn_channels"),
		(__typeof__(e.rings))dlsym(lib, "srn_rings"),
		(__typeof__(e.post_rings))dlsym(lib, "srn_post_rings"),
	};
	if (!e.open || !e.close || !e.write || !e.forked || !e.watch || !e.channels || !e.rings || !e.post_rings)
		return refuse(library, "is not an engine of this version");
	engine = e;
	return 0;
}

int engine_load(void)
{
	pthread_mutex_lock(&lock);
	int r = engine.open ? 0 : load();
	pthread_mutex_unlock(&lock);
	return r;
}

void engine_loaded(void)
{
	pthread_mutex_lock(&lock);
	if (!handlers_known)
		for (int s = 1; s < NSIG; s++)
			sigaction(s, NULL, &after[s]);
	handlers_known = true;
	pthread_mutex_unlock(&lock);
}

/* Takes the signals back from an engine that can serve them no more, where the program has not done so. */
static void restore_handlers(void)
{
	struct sigaction now;
	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &now) == 0 && now.sa_sigaction == after[s].sa_sigaction &&
		    after[s].sa_sigaction != before[s].sa_sigaction)
			sigaction(s, &before[s], NULL);
}

/* fork waits until no thread is in the middle of a change: the child would find it so for ever. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	fd_lock();
}

static void in_parent(void)
{
	fd_unlock();
	pthread_mutex_unlock(&lock);
}

/* The peer of a connection whose process ends has to see that: a child must not hold the sockets open. */
static void in_child(void)
{
	self = getpid();
	if (engine.forked) {
		engine.forked();
		if (handlers_known)
			restore_handlers();
		handlers_known = false;
		fd_forked();
		engine = (struct engine){0};
		generation++;
	}
	in_parent();
}

void engine_setup(void)
{
	const char *p = getenv("SOFTRNIC_ENGINE");
	if (p && strlen(p) < sizeof library)
		memcpy(library, p, strlen(p) + 1);
	self = getpid();
	pthread_atfork(before_fork, in_parent, in_child);
}
