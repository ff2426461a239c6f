/* What programs do between their start and their first look for a device: `begins MODE HOST` does it, then moves data over a connection
   whose two ends are in this process, and prints "MODE: ok". Where that cannot be, softrnic says on standard error what to do, and this
   prints "MODE: refused". Either ends with 0 if it is what is known of MODE. */
#define _GNU_SOURCE
#include "pair.h"

#include <fcntl.h>
#include <grp.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;

/* As servers do for `ps`: over all that argv and environ have, and no environment is left. */
static void title(void)
{
	extern char **environ;
	for (char **v = arguments; *v; v++)
		memset(*v, 'x', strlen(*v));
	for (char **v = environ; *v; v++)
		memset(*v, 'x', strlen(*v));
	MUST(clearenv() == 0);
}

static void closes(void) { closefrom(3); }

/* The first process is gone before the last begins, and so is `rnic run`, whose child it was. */
static void daemonizes(void)
{
	int p[2];
	char c;
	MUST(pipe(p) == 0 && fflush(NULL) == 0);
	pid_t middle = getpid(), first = getppid();
	if (fork() > 0)
		_exit(0);
	MUST(setsid() > 0);
	close(p[1]);
	if (fork() > 0)
		_exit(0);
	MUST(read(p[0], &c, 1) == 0); /* nobody has the other end */
	while (kill(middle, 0) == 0 || kill(first, 0) == 0)
		usleep(1000);
	MUST(chdir("/") == 0);
	umask(0);
}

static void nobody(void)
{
	MUST(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
}

static void jail(void)
{
	char dir[] = "/tmp/begins.XXXXXX";
	MUST(mkdtemp(dir) && chdir(dir) == 0 && rmdir(dir) == 0 && chroot(".") == 0);
}

static void limit(int what, rlim_t n) { MUST(setrlimit(what, &(struct rlimit){n, n}) == 0); }
static void files(void) { limit(RLIMIT_NOFILE, 8); }
static void memory(void) { limit(RLIMIT_AS, 100 << 20); }
/* Root has no such limit without this: it becomes an ordinary user that has kept the right to read what root may. */
static void processes(void)
{
	limit(RLIMIT_NPROC, 1);
	MUST(prctl(PR_SET_KEEPCAPS, 1) == 0 && setresuid(65534, 65534, 65534) == 0);
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{.effective = 1 << CAP_DAC_OVERRIDE, .permitted = 1 << CAP_DAC_OVERRIDE}};
	MUST(syscall(SYS_capset, &h, d) == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool refused;
	} modes[] = {
		{"title", title, false}, {"closes", closes, false}, {"daemonizes", daemonizes, false}, {"nobody", nobody, false},
		{"jail", jail, true},	 {"files", files, true},    {"memory", memory, true},	      {"processes", processes, true},
	};
	for (unsigned i = 0; argc == 3 && i < sizeof modes / sizeof *modes; i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		arguments = argv;
		host = strdup(argv[2]);
		modes[i].run();
		alarm(50); /* to what hangs */
		struct rdma_event_channel *c = rdma_create_event_channel();
		if (!c) {
			fprintf(stderr, "%s: refused, %s\n", modes[i].name, strerror(errno));
			return !modes[i].refused;
		}
		rdma_destroy_event_channel(c);
		struct pair p;
		listen_();
		make(&p);
		traffic(&p, 100, 3000);
		end(&p);
		rdma_destroy_ep(listener);
		printf("%s: ok\n", modes[i].name);
		return modes[i].refused;
	}
	fprintf(stderr, "usage: begins title|closes|daemonizes|nobody|jail|files|memory|processes HOST\n");
	return 2;
}
