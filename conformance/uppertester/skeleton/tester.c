/* An upper tester for `rnic conform run --target`, to be filled in: docs/upper-tester.md.
 *
 *	cc -o tester tester.c json.c STACK.c && ./tester HOST PORT
 *
 * STACK.c defines the methods that your stack can do, each as the weak one below. A method that is not
 * there answers with an error, and the cases that need it fail. stack/stack.c is an example with a small
 * iWARP stack of its own. Each session is a process, so that all that a stack keeps is one session's. */
#define _GNU_SOURCE
#include "tester.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The methods. `a` is the argument: a JSON object with all fields, or a number. Behind -> is the reply; a
 * field that is not there counts as zero. Calls come one at a time, each in its turn; streams have to go
 * on between the calls, and while one waits. */
#define TODO(name) __attribute__((weak)) int name(const char *a) { return (void)a, failed("the upper tester has no " #name); }

/* Queue pairs and connections. */
TODO(Open)      /* Create QP, with the PD, CQs and S-RQ that are new. -> QP, SendCQ, RecvCQ, ID */
TODO(Destroy)   /* Destroy QP a. */
TODO(Listen)    /* Listen for one connection, as MPA Responder; return at once. -> Addr */
TODO(Dial)      /* Connect to Addr, as MPA Initiator; return at once. */
TODO(Connected) /* Wait for what Listen or Dial began on queue pair Of. -> a Connection */
TODO(Ended)     /* Wait until the stream of queue pair Of is gone. -> as Query */
TODO(Query)     /* Query QP a. -> a QPState */
TODO(Modify)    /* Modify QP: to Next, with what is not null. */
/* Memory. */
TODO(Register)         /* Register Len octets, filled by pattern(). -> Region, STag, Base */
TODO(Allocate)         /* Allocate a region without memory, in the Invalid state. -> as Register */
TODO(Share)            /* Register the memory of Region once more. -> as Register */
TODO(Reregister)       /* Give Region new memory and attributes. -> as Register */
TODO(Deregister)       /* Deallocate the STag of region a. */
TODO(QueryRegion)      /* Query Memory Region a. -> a RegionState */
TODO(Memory)           /* All octets of region a, with what has been placed. -> Octets */
TODO(Fill)             /* Put Octets into Region, from Off on. */
TODO(AllocateWindow)   /* Allocate a Memory Window in PD a. -> Window, STag */
TODO(DeallocateWindow) /* Deallocate Memory Window a. */
TODO(QueryWindow)      /* Query Memory Window a. -> a WindowState */
/* Work. */
TODO(PostSend) /* PostSQ of all Sends. -> N, how many were taken */
TODO(PostRecv) /* PostRQ to QP, or to S-RQ SRQ if not 0. -> N */
TODO(Poll)     /* Up to N completions of CQ; after Timeout those there are. -> Completions */
TODO(Notify)   /* Request Completion Notification. */
TODO(Notified) /* Wait for the notification of CQ Of, and take it. -> Yes */
TODO(Events)   /* All events since the beginning, once there are N; after Timeout anyhow. -> Events */
TODO(Ping)     /* Serve one client as `rping -s`, or with Addr be `rping -c`; return at once. -> Addr */

__attribute__((weak)) void begin(const char *host) { (void)host; }
__attribute__((weak)) void go_on(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	poll(&p, 1, -1);
}

void pattern(uint8_t seed, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(seed ^ (i * 31 + (i >> 8) * 17));
}

/* The answer. */

static char *out;
static size_t out_len;
static FILE *result;
static char error[256];

void reply(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs(ftell(result) ? "," : "", result);
	vfprintf(result, format, args);
	va_end(args);
}

void reply_octets(const char *key, const uint8_t *b, size_t n)
{
	reply("\"%s\":\"", key);
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < n ? b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);
		for (size_t k = 0; k < 4; k++)
			fputc(i + k > n ? '=' : digits[v >> (18 - 6 * k) & 63], result);
	}
	fputc('"', result);
}

int failed(const char *text) { return snprintf(error, sizeof error, "%s", text), -1; }
int refused(int immediate, const char *text) { return snprintf(error, sizeof error, "immediate %d: %s", immediate, text), -1; }

static void call(int conn, const char *line)
{
	char method[64];
	string(line, "method", method, sizeof method);
	result = open_memstream(&out, &out_len);
	int rc = failed("the upper tester has no such method");
#define TRY(name) if (!strcmp(method, "Upper." #name)) rc = name(item(field(line, "params"), 0));
	METHODS(TRY)
	fclose(result);
	if (rc)
		dprintf(conn, "{\"id\":%lld,\"result\":null,\"error\":\"%s\"}\n", num(line, "id"), error);
	else
		dprintf(conn, "{\"id\":%lld,\"result\":{%s},\"error\":null}\n", num(line, "id"), out);
	free(out);
}

static void session(int conn, const char *host)
{
	size_t have = 0, room = 1 << 16;
	char *in = malloc(room);
	for (begin(host); in; go_on(conn)) {
		ssize_t n = recv(conn, in + have, room - have - 1, MSG_DONTWAIT);
		if (n == 0)
			exit(0);
		have += n > 0 ? (size_t)n : 0;
		in[have] = 0;
		for (char *end; (end = strchr(in, '\n')); memmove(in, end + 1, have + 1)) {
			*end = 0;
			have -= (size_t)(end + 1 - in);
			call(conn, in);
		}
		if (have + 1 == room)
			in = realloc(in, room *= 2);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(argc == 3 ? (uint16_t)atoi(argv[2]) : 0)};
	socklen_t len = sizeof at;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (argc != 3 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 || bind(l, (struct sockaddr *)&at, len) || listen(l, 64))
		return perror("tester HOST PORT"), 2;
	getsockname(l, (struct sockaddr *)&at, &len);
	printf("listening on %s:%d\n", argv[1], ntohs(at.sin_port));
	fflush(stdout);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (int conn; (conn = accept(l, NULL, NULL)) >= 0; close(conn))
		if (fork() == 0)
			session((close(l), conn), argv[1]);
	return 1;
}
