/* Several devices in one process, those of nics.txt: `nics MODE HOST` prints "MODE: ok" and ends with 0, or says which line did not
   hold. */
#include "plain.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

enum { DEVICES = 24 };

static void choose(struct ibv_device *d, int index)
{
	MUST(context = ibv_open_device(d));
	MUST(pd = ibv_alloc_pd(context));
	MUST(ibv_query_gid(context, 1, index, &gid) == 0);
}

/* names: whatever a device is called, messages go over it, at each of its GIDs, and between two of them. */
static void names(void)
{
	int n, gids = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	MUST(list && n == DEVICES);
	for (int i = 0; i < n; i++) {
		struct ibv_port_attr port = {.gid_tbl_len = 1};
		for (int index = 0; index < port.gid_tbl_len; index++, gids++) {
			struct end a, b;
			choose(list[i], index);
			MUST(ibv_query_port(context, 1, &port) == 0);
			create(&a);
			create(&b);
			struct end *all[] = {&a, &b};
			for (int k = 0; k < 2; k++) {
				bring_to_init(all[k]->qp);
				struct ibv_qp_attr rtr = to_rtr(&gid, all[1 - k]->qp->qp_num, retries);
				rtr.ah_attr.grh.sgid_index = (uint8_t)index;
				bring(all[k]->qp, rtr, RTR_MASK);
				bring_to_rts(all[k]->qp, retries);
			}
			talk(&a, &b);
			talk(&b, &a);
			destroy(&a);
			destroy(&b);
			close_device();
		}
	}
	MUST(gids == DEVICES + 2);
	/* Between neighbours. */
	for (int i = 0; i + 1 < n; i++) {
		struct end a, b;
		union ibv_gid of;
		choose(list[i], 0);
		struct ibv_context *first = context;
		struct ibv_pd *firsts = pd;
		create(&a);
		of = gid;
		choose(list[i + 1], 0);
		create(&b);
		up_to(&a, &gid, b.qp->qp_num, retries);
		up_to(&b, &of, a.qp->qp_num, retries);
		talk(&a, &b);
		destroy(&a);
		destroy(&b);
		close_device();
		context = first;
		pd = firsts;
		close_device();
	}
	ibv_free_device_list(list);
}

static struct sockaddr_in address(const char *text, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	MUST(inet_pton(AF_INET, text, &a.sin_addr) == 1);
	return a;
}

static struct rdma_cm_event *next(struct rdma_event_channel *ch, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *e;
	MUST(rdma_get_cm_event(ch, &e) == 0);
	if (e->event != want)
		fprintf(stderr, "%s (%d)\n", rdma_event_str(e->event), e->status);
	MUST(e->event == want);
	return e;
}

static int is(struct rdma_cm_id *id, const char *name) { return id->verbs && strcmp(ibv_get_device_name(id->verbs->device), name) == 0; }

/* address: an id is at the device that has its address: bound, resolved, and of a request to a listener on all. */
static void address_(void)
{
	static const struct { const char *name, *text; } at[] = {{"mlx5_0", "127.0.1.1"}, {"mlx5_0", "127.0.1.2"}, {"rxe0", "127.0.1.4"}, {"iwp0s1", "127.0.1.25"}};
	enum { N = sizeof at / sizeof *at };
	struct rdma_event_channel *clients = rdma_create_event_channel(), *servers = rdma_create_event_channel();
	struct rdma_cm_id *listener;
	struct sockaddr_in any = {.sin_family = AF_INET};
	MUST(clients && servers && rdma_create_id(servers, &listener, NULL, RDMA_PS_TCP) == 0);
	MUST(rdma_bind_addr(listener, (struct sockaddr *)&any) == 0 && rdma_listen(listener, 8) == 0 && !listener->verbs);
	int port = ntohs(rdma_get_src_port(listener));
	for (int from = 0; from < N; from++)
		for (int to = 0; to < N; to++) {
			struct rdma_cm_id *id, *child;
			struct sockaddr_in src = address(at[from].text, 0), dst = address(at[to].text, port);
			MUST(rdma_create_id(clients, &id, NULL, RDMA_PS_TCP) == 0);
			if ((from + to) % 2) {
				MUST(rdma_bind_addr(id, (struct sockaddr *)&src) == 0 && is(id, at[from].name));
				MUST(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 2000) == 0);
			} else {
				MUST(rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst, 2000) == 0);
			}
			rdma_ack_cm_event(next(clients, RDMA_CM_EVENT_ADDR_RESOLVED));
			MUST(is(id, at[from].name) && rdma_resolve_route(id, 2000) == 0);
			rdma_ack_cm_event(next(clients, RDMA_CM_EVENT_ROUTE_RESOLVED));
			const struct ibv_qp_init_attr wanted = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
			struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
			struct ibv_qp_init_attr attr = wanted; /* which gets the device's queues */
			MUST(rdma_create_qp(id, NULL, &attr) == 0 && rdma_connect(id, &param) == 0);
			struct rdma_cm_event *e = next(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
			child = e->id;
			rdma_ack_cm_event(e);
			attr = wanted;
			MUST(is(child, at[to].name) && rdma_create_qp(child, NULL, &attr) == 0 && rdma_accept(child, &param) == 0);
			rdma_ack_cm_event(next(clients, RDMA_CM_EVENT_ESTABLISHED));
			rdma_ack_cm_event(next(servers, RDMA_CM_EVENT_ESTABLISHED));
			MUST(rdma_disconnect(id) == 0);
			rdma_ack_cm_event(next(clients, RDMA_CM_EVENT_DISCONNECTED));
			rdma_ack_cm_event(next(servers, RDMA_CM_EVENT_DISCONNECTED));
			rdma_destroy_qp(id);
			rdma_destroy_qp(child);
			MUST(rdma_destroy_id(id) == 0 && rdma_destroy_id(child) == 0);
		}
	/* Of a host's address that no device has nothing comes. */
	struct rdma_cm_id *id;
	struct sockaddr_in other = address("192.0.2.77", 0);
	MUST(rdma_create_id(clients, &id, NULL, RDMA_PS_TCP) == 0 && rdma_bind_addr(id, (struct sockaddr *)&other) == -1 && errno == ENODEV);
	MUST(rdma_destroy_id(id) == 0 && rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(servers);
}

static void reads(const char *name, const char *want)
{
	char text[256];
	int fd = open(name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n < 0)
		fprintf(stderr, "%s: ", name);
	MUST(n >= 0 && close(fd) == 0);
	text[n] = 0;
	if (strcmp(text, want) != 0)
		fprintf(stderr, "%s: %s", name, text);
	MUST(strcmp(text, want) == 0);
}

/* places: /sys says of each where it is plugged in, by the ways that programs go. */
static void places(void)
{
	char path[4096];
	reads("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
	reads("/sys/class/infiniband/mlx5_0/ports/1/gids/2", "0000:0000:0000:0000:0000:0000:0000:0001\n");
	reads("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "RoCE v2\n");
	reads("/sys/class/infiniband/iwp0s1/device/numa_node", "1\n");
	reads("/sys/class/infiniband/mlx5_0/device/numa_node", "-1\n");
	reads("/sys/bus/pci/devices/0000:d1:00.1/numa_node", "0\n");
	reads("/sys/class/pci_bus/0000:d1/../../0000:d1:00.1/max_link_width", "16\n");
	MUST(realpath("/sys/class/infiniband/rocep59s0f1np1/device", path) && strcmp(path, "/sys/devices/pci0000:d1/0000:d1:00.1") == 0);
	reads("/sys/devices/pci0000:d1/0000:d1:00.1/infiniband/rocep59s0f1np1/ports/1/link_layer", "Ethernet\n");
}

int main(int argc, char **argv)
{
	static const struct { const char *mode; void (*run)(void); } modes[] = {{"names", names}, {"address", address_}, {"places", places}};
	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
		if (strcmp(argv[1], modes[i].mode) == 0) {
			modes[i].run();
			printf("%s: ok\n", argv[1]);
			return 0;
		}
	return 2;
}
