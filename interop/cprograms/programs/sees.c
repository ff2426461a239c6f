/* What a program sees of what is done to its NIC (docs/nic.md): `sees RNIC CONDITION` has the program RNIC do that to this process, and
   says each thing that it sees in a line of its own. Both ends of its connection are in this process; it looks at the one that writes.
   It ends with 0 whatever it sees. */
#include "plain.h"

#include <poll.h>
#include <stdbool.h>

static const char *rnic;
static struct end a, b;

/* The other end's events come when they come. */
static bool of_b(const struct ibv_async_event *e)
{
	return e->event_type <= IBV_EVENT_PATH_MIG_ERR && e->event_type != IBV_EVENT_CQ_ERR && e->element.qp == b.qp;
}

/* Says an event, and whether one was there within that many milliseconds. */
static bool event(int ms)
{
	static const struct {
		enum ibv_event_type type;
		const char *name;
	} names[] = {
		{IBV_EVENT_PORT_ERR, "PORT_ERR"},	  {IBV_EVENT_PORT_ACTIVE, "PORT_ACTIVE"}, {IBV_EVENT_GID_CHANGE, "GID_CHANGE"},
		{IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL"}, {IBV_EVENT_QP_FATAL, "QP_FATAL"},
	};
	struct ibv_async_event e;
	do {
		struct pollfd f = {.fd = context->async_fd, .events = POLLIN};
		if (poll(&f, 1, ms) != 1)
			return false;
		MUST(ibv_get_async_event(context, &e) == 0);
		ibv_ack_async_event(&e);
	} while (of_b(&e));
	const char *name = ibv_event_type_str(e.event_type);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].type == e.event_type)
			name = names[i].name;
	printf("%s\n", name);
	return true;
}

/* Has that done, and says the events of it: as many as are awaited, and those that are there besides. */
static void done(const char *command, const char *what, int awaited)
{
	nic(rnic, command, what);
	for (int i = 0; i < awaited; i++)
		if (!event(10000))
			printf("no event\n");
	while (event(0))
		;
}

static void port(void)
{
	static const int speeds[][2] = {{1, 25}, {2, 50}, {4, 100}, {8, 100}, {16, 140}, {32, 250}, {64, 500}, {128, 1000}};
	static const int widths[][2] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
	struct ibv_port_attr attr;
	int tenths = 1;
	MUST((errno = ibv_query_port(context, 1, &attr)) == 0);
	for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
		tenths *= speeds[i][0] == attr.active_speed ? speeds[i][1] : 1;
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
		tenths *= widths[i][0] == attr.active_width ? widths[i][1] : 1;
	printf("the port is %s, %d Gb/s\n", ibv_port_state_str(attr.state), tenths / 10);
}

/* Posts a Write; false if that is refused, which it says. */
static bool post(uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)a.text, 8, a.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)b.text, b.mr->rkey},
	}, *bad;
	int error = ibv_post_send(a.qp, &wr, &bad);
	if (error)
		printf("ibv_post_send %d: %s\n", (int)id, strerror(error));
	return error == 0;
}

/* Says how a Write has ended that did not succeed, and whether it did. */
static bool ended(uint64_t id)
{
	struct ibv_wc wc;
	int n;
	while ((n = ibv_poll_cq(a.cq, 1, &wc)) == 0)
		;
	if (n < 0) {
		printf("ibv_poll_cq fails\n");
		return false;
	}
	MUST(wc.wr_id == id);
	if (wc.status != IBV_WC_SUCCESS)
		printf("Write %d: %s\n", (int)id, ibv_wc_status_str(wc.status));
	return wc.status == IBV_WC_SUCCESS;
}

static void writes_go_on(void)
{
	for (uint64_t i = 1; i <= 3; i++)
		if (!post(i) || !ended(i))
			return;
	printf("Writes go on\n");
}

/* Nothing completes for that many seconds. */
static void nothing_for(double seconds)
{
	struct ibv_wc wc;
	for (double begun = now(); now() - begun < seconds;)
		MUST(ibv_poll_cq(a.cq, 1, &wc) == 0);
}

static double one_write(void)
{
	double begun = now();
	MUST(post(1) && ended(1));
	return now() - begun;
}

static void state_of_a(void)
{
	if (state(&a) == IBV_QPS_ERR)
		printf("the queue pair is in ERR\n");
}

static void gids(void)
{
	union ibv_gid zero = {0}, at[2];
	MUST(ibv_query_gid(context, 1, 0, &at[0]) == 0);
	if (ibv_query_gid(context, 1, 1, &at[1]) == 0 && memcmp(&at[1], &gid, sizeof gid) == 0 && memcmp(&at[0], &zero, sizeof gid) == 0)
		printf("the GID of index 0 is at index 1, and index 0 is empty\n");
	else if (memcmp(&at[0], &gid, sizeof gid) == 0)
		printf("the GID is at index 0\n");
	else
		printf("the GID is gone\n");
}

/* Says how a verb ends of the device as it is open. */
static void verb(const char *when)
{
	errno = 0;
	struct ibv_pd *other = ibv_alloc_pd(context);
	printf("%sibv_alloc_pd: %s\n", when, other ? "succeeds" : strerror(errno));
}

/* Says how opening it anew ends. */
static void opens(const char *when)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	MUST(list);
	if (!list[0]) {
		printf("%sno device is listed\n", when);
		return;
	}
	errno = 0;
	struct ibv_context *again = ibv_open_device(list[0]);
	printf("%sibv_open_device: %s\n", when, again ? "succeeds" : strerror(errno));
	if (!again)
		return;
	errno = 0;
	struct ibv_pd *other = ibv_alloc_pd(again);
	printf("%sits ibv_alloc_pd: %s\n", when, other ? "succeeds" : strerror(errno));
}

static void registers(void)
{
	static char memory[64];
	errno = 0;
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
	printf("ibv_reg_mr: %s\n", mr ? "succeeds" : strerror(errno));
}

static void down(void)
{
	done("down", "", 1);
	port();
	MUST(post(1));
	nothing_for(0.1);
	printf("a Write waits\n");
	done("up", "", 1);
	port();
	MUST(ended(1));
	writes_go_on();
}

static void down_longer(void)
{
	done("down", "", 1);
	MUST(post(1) && post(2));
	ended(1);
	ended(2);
	state_of_a();
	done("up", "", 1);
	state_of_a();
}

static void degrade(void)
{
	done("degrade", "10g 200ms", 0);
	port();
	for (int i = 0; i < 3; i++)
		MUST(one_write() >= 0.2);
	printf("a Write takes longer\n");
}

static void move_gid(void)
{
	done("move-gid", "", 1);
	gids();
	writes_go_on();
}

static void fatal(void)
{
	done("fatal", "", 1);
	writes_go_on();
	verb("");
	opens("");
	done("quiet", "", 0);
	verb("after `quiet` ");
}

static void unplug(void)
{
	done("unplug", "", 1);
	writes_go_on();
	verb("");
	opens("");
	done("quiet", "", 0);
	verb("after `quiet` ");
	opens("after `quiet` ");
}

static void plan(void)
{
	done("plan", "plan.verb", 0);
	registers();
	writes_go_on();
	state_of_a();
}

static void plan_post(void)
{
	done("plan", "plan.post", 0);
	writes_go_on();
	writes_go_on();
}

static void quiet(void)
{
	nic(rnic, "down", "");
	nic(rnic, "degrade", "10g 5s");
	nic(rnic, "move-gid", "");
	nic(rnic, "plan", "plan.verb");
	for (int i = 0; i < 2; i++) { /* theirs */
		struct ibv_async_event e;
		MUST(ibv_get_async_event(context, &e) == 0);
		ibv_ack_async_event(&e);
	}
	done("quiet", "", 2);
	port();
	gids();
	registers();
	MUST(one_write() < 5);
	writes_go_on();
}

int main(int argc, char **argv)
{
	static const struct patience longer = {.timeout = 20, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12}; /* half a minute */
	static const struct {
		const char *name;
		void (*see)(void);
	} conditions[] = {
		{"down", down}, {"longer", down_longer}, {"degrade", degrade}, {"move-gid", move_gid},
		{"fatal", fatal}, {"unplug", unplug}, {"plan.verb", plan}, {"plan.post", plan_post}, {"quiet", quiet},
	};
	MUST(argc == 3 && setvbuf(stdout, NULL, _IOLBF, BUFSIZ) == 0);
	rnic = argv[1];
	open_device();
	create(&a);
	create(&b);
	struct patience p = strcmp(argv[2], "longer") == 0 ? retries : longer;
	up(&a, &b, p);
	up(&b, &a, p);
	MUST(one_write() >= 0);
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
		if (strcmp(conditions[i].name, argv[2]) == 0) {
			conditions[i].see();
			printf("sees: ok\n");
			return 0;
		}
	fprintf(stderr, "sees: there is no condition %s\n", argv[2]);
	return 2;
}
