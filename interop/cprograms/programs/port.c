/* What a program sees of its port, when `port RNIC` has the program RNIC break it: the events in order; what ibv_query_port and /sys say;
   RETRY_EXC_ERR of what waits for longer than its attributes say; EIO once the device was unplugged. It prints "port: ok" and ends with
   0, or says which line did not hold. Both ends of each connection are in this process. */
#include "plain.h"

#include <fcntl.h>

static void event(enum ibv_event_type want, int port)
{
	struct ibv_async_event e;
	MUST(ibv_get_async_event(context, &e) == 0);
	printf("%s\n", ibv_event_type_str(e.event_type));
	MUST(e.event_type == want && (!port || e.element.port_num == port));
	ibv_ack_async_event(&e);
}

/* A file of the port begins with that. */
static void file_says(const char *name, const char *text)
{
	char path[256], got[128] = "";
	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/%s", ibv_get_device_name(context->device), name);
	int fd = open(path, O_RDONLY);
	MUST(fd >= 0 && read(fd, got, sizeof got - 1) > 0 && close(fd) == 0);
	if (strncmp(got, text, strlen(text)) != 0)
		fprintf(stderr, "%s says %s", name, got);
	MUST(strncmp(got, text, strlen(text)) == 0);
	FILE *f = fopen(path, "r");
	MUST(f && fgets(got, sizeof got, f) && strncmp(got, text, strlen(text)) == 0 && fclose(f) == 0);
}

static void port_is(enum ibv_port_state state, const char *text, const char *physical, const char *rate, int gids)
{
	struct ibv_port_attr a;
	MUST((errno = ibv_query_port(context, 1, &a)) == 0);
	MUST(a.state == state && a.gid_tbl_len == gids);
	file_says("state", text);
	file_says("phys_state", physical);
	file_says("rate", rate);
}

int main(int argc, char **argv)
{
	static const char full[] = "100 Gb/sec (4X EDR)";
	MUST(argc == 2);
	const char *rnic = argv[1];
	open_device();
	port_is(IBV_PORT_ACTIVE, "4: ACTIVE", "5: LinkUp", full, 1);

	struct end a, b;
	create(&a);
	create(&b);
	up(&a, &b, retries);
	up(&b, &a, retries);
	talk(&a, &b);
	nic(rnic, "down", "");
	event(IBV_EVENT_PORT_ERR, 1);
	port_is(IBV_PORT_DOWN, "1: DOWN", "3: Disabled", full, 1);
	nic(rnic, "up", ""); /* nothing waited: the connection is whole */
	event(IBV_EVENT_PORT_ACTIVE, 1);
	port_is(IBV_PORT_ACTIVE, "4: ACTIVE", "5: LinkUp", full, 1);
	talk(&a, &b);

	nic(rnic, "degrade", "10g 5ms");
	port_is(IBV_PORT_ACTIVE, "4: ACTIVE", "5: LinkUp", "10 Gb/sec", 1);
	double begun = now();
	talk(&a, &b);
	MUST(now() - begun >= 0.005);

	union ibv_gid zero = {0}, got;
	nic(rnic, "move-gid", "");
	event(IBV_EVENT_GID_CHANGE, 1);
	port_is(IBV_PORT_ACTIVE, "4: ACTIVE", "5: LinkUp", "10 Gb/sec", 2);
	MUST(ibv_query_gid(context, 1, 1, &got) == 0 && memcmp(&got, &gid, sizeof got) == 0);
	MUST(ibv_query_gid(context, 1, 0, &got) == 0 && memcmp(&got, &zero, sizeof got) == 0);
	nic(rnic, "quiet", "");
	event(IBV_EVENT_GID_CHANGE, 1);
	MUST(ibv_query_gid(context, 1, 0, &got) == 0 && memcmp(&got, &gid, sizeof got) == 0);
	port_is(IBV_PORT_ACTIVE, "4: ACTIVE", "5: LinkUp", full, 2);

	nic(rnic, "down", "");
	event(IBV_EVENT_PORT_ERR, 1);
	begun = now();
	post_send(&a, 1, IBV_SEND_SIGNALED);
	post_send(&a, 2, IBV_SEND_SIGNALED);
	struct ibv_wc first = completion(a.cq), second = completion(a.cq);
	printf("%s after %.2f s\n", ibv_wc_status_str(first.status), now() - begun);
	MUST(first.wr_id == 1 && first.status == IBV_WC_RETRY_EXC_ERR && second.wr_id == 2 && second.status == IBV_WC_WR_FLUSH_ERR);
	MUST(now() - begun >= 0.26 && state(&a) == IBV_QPS_ERR); /* 4 x 67 ms */

	nic(rnic, "unplug", "");
	for (struct ibv_async_event e = {0}; e.event_type != IBV_EVENT_DEVICE_FATAL; ibv_ack_async_event(&e)) /* b's may be before it */
		MUST(ibv_get_async_event(context, &e) == 0);
	printf("%s\n", ibv_event_type_str(IBV_EVENT_DEVICE_FATAL));
	errno = 0;
	MUST(!ibv_alloc_pd(context) && errno == EIO);
	struct ibv_device **list = ibv_get_device_list(NULL);
	MUST(list && list[0] && !ibv_open_device(list[0]));
	nic(rnic, "quiet", "");
	struct ibv_context *again = ibv_open_device(list[0]);
	MUST(again);
	struct ibv_pd *other = ibv_alloc_pd(again);
	MUST(other && ibv_dealloc_pd(other) == 0 && ibv_close_device(again) == 0);
	printf("port: ok\n");
	return 0;
}
