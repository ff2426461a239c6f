/* librpma: `rpma serve HOST [shared]` and `rpma use HOST`, in one folder, each print "rpma: ok" and end with 0, or say which
   line did not hold. Each end in turn reads the other's memory, writes to it and flushes. The server's memory is the file
   pmem, so that the client sees there what a flush has made visible. With "shared" the server's receives are shared ones. */
#include "must.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <librpma.h>
#include <sys/mman.h>
#include <unistd.h>

#define OK(x)                                                                                                              \
	do {                                                                                                               \
		int said = (x);                                                                                            \
		if (said) {                                                                                                \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, rpma_err_2str(said));                   \
			exit(1);                                                                                           \
		}                                                                                                          \
	} while (0)

/* What is where in the memory of each end. */
enum {
	PART = 1 << 20,
	SHOWN = 0,	     /* the peer reads it */
	TAKEN = PART,	     /* the peer writes it */
	SOURCE = 2 * PART,   /* of Writes */
	FETCHED = 3 * PART,  /* by Reads */
	OUTGOING = 4 * PART, /* a message */
	INCOMING = OUTGOING + 4096,
	ATOMIC = INCOMING + 4096, /* the peer writes eight octets */
	SIZE = ATOMIC + 4096
};

static const char *port = "7204", *nobody = "7205";
static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_cq *cq, *rcq;
static struct rpma_srq *srq;
static struct rpma_mr_local *mr;
static struct rpma_mr_remote *there;
static struct rpma_conn_cfg *cfg;
static bool one_channel, iwarp;
static unsigned posted, arrived; /* receives: each has the other half of INCOMING than the one before, so that two can be under way */
static unsigned char *memory, *pmem; /* pmem: the server's, as the client sees it without RDMA */

/* What each end tells the other when they connect. */
struct about {
	uint8_t mr_size, cfg_size, descriptors[62];
};

/* The octets that belong to a seed. */
static unsigned char octet(unsigned seed, size_t i) { return (unsigned char)((i + seed) * 2654435761u >> 13); }

static void fill(unsigned char *at, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		at[i] = octet(seed, i);
}

static bool is(const unsigned char *at, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		if (at[i] != octet(seed, i))
			return false;
	return true;
}

static struct ibv_wc next(struct rpma_cq *of, enum ibv_wc_opcode opcode, uintptr_t id)
{
	struct ibv_wc wc;
	int got;
	while ((got = rpma_cq_get_wc(of, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
		struct rpma_cq *which;
		if (one_channel)
			OK(rpma_conn_wait(conn, RPMA_W_WAIT_FOR_COMPLETION, &which, NULL));
		else
			OK(rpma_cq_wait(of));
	}
	OK(got);
	if (wc.status != IBV_WC_SUCCESS || wc.opcode != opcode || wc.wr_id != id) {
		fprintf(stderr, "rpma: %s, opcode %d, id %lu in place of opcode %d, id %lu\n", ibv_wc_status_str(wc.status), wc.opcode, wc.wr_id, opcode, id);
		exit(1);
	}
	return wc;
}

static size_t half(unsigned number) { return INCOMING + number % 2 * 2048; }

static void receive(struct rpma_conn_req *before)
{
	size_t at = half(posted++);
	if (srq)
		OK(rpma_srq_recv(srq, mr, at, 2048, (void *)9));
	else if (before)
		OK(rpma_conn_req_recv(before, mr, at, 2048, (void *)9));
	else
		OK(rpma_recv(conn, mr, at, 2048, (void *)9));
}

/* Where the message of a receive is, which is over. */
static unsigned char *message(void) { return memory + half(arrived++); }

/* Says by a message of four octets what the peer is to look for in its memory: length octets of the seed length. */
static void tell(uint32_t length)
{
	memcpy(memory + OUTGOING, &length, sizeof length);
	OK(rpma_send(conn, mr, OUTGOING, sizeof length, RPMA_F_COMPLETION_ALWAYS, (void *)8));
	next(cq, IBV_WC_SEND, 8);
}

static uint32_t told(void)
{
	uint32_t length;
	MUST(next(rcq, IBV_WC_RECV, 9).byte_len == sizeof length);
	memcpy(&length, message(), sizeof length);
	receive(NULL);
	return length;
}

static const uint32_t sizes[] = {1, 8, 4095, 65536, PART};
enum { SIZES = sizeof sizes / sizeof *sizes, IMMEDIATE = 0x12345678 };

static void look(void)
{
	for (int i = 0; i < SIZES; i++) {
		uint32_t n = told();
		MUST(n == sizes[i] && is(memory + TAKEN, n, n));
		tell(n);
	}
	struct ibv_wc wc = next(rcq, IBV_WC_RECV_RDMA_WITH_IMM, 9);
	MUST((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == htonl(IMMEDIATE) && is(memory + TAKEN, 4096, 5));
	message();
	receive(NULL);
	wc = next(rcq, IBV_WC_RECV, 9);
	MUST((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == htonl(~IMMEDIATE));
	MUST(wc.byte_len == (iwarp ? 0 : 100) && is(message(), wc.byte_len, 6));
	receive(NULL);
	MUST(memcmp(memory + ATOMIC, "atomical", 8) == 0);
	tell(0);
}

/* Flushes n octets of TAKEN, which reads them after the Writes before it. */
static void flush(size_t n, enum rpma_flush_type type)
{
	OK(rpma_flush(conn, there, TAKEN, n, type, RPMA_F_COMPLETION_ALWAYS, (void *)3));
	next(cq, IBV_WC_RDMA_READ, 3);
	MUST(!pmem || is(pmem + TAKEN, n, (unsigned)n));
}

static void use(unsigned theirs)
{
	for (int i = 0; i < SIZES; i++) {
		uint32_t n = sizes[i];
		memset(memory + FETCHED, 0, n);
		OK(rpma_read(conn, mr, FETCHED, there, SHOWN, n, RPMA_F_COMPLETION_ALWAYS, (void *)1));
		next(cq, IBV_WC_RDMA_READ, 1);
		MUST(is(memory + FETCHED, n, theirs));
		fill(memory + SOURCE, n, n);
		OK(rpma_write(conn, there, TAKEN, mr, SOURCE, n, RPMA_F_COMPLETION_ON_ERROR, (void *)2));
		flush(n, i % 2 ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY);
		tell(n);
		MUST(told() == n);
	}
	OK(rpma_atomic_write(conn, there, ATOMIC, "atomical", RPMA_F_COMPLETION_ALWAYS, (void *)4));
	next(cq, IBV_WC_RDMA_WRITE, 4);
	fill(memory + SOURCE, 4096, 5);
	OK(rpma_write_with_imm(conn, there, TAKEN, mr, SOURCE, 4096, RPMA_F_COMPLETION_ALWAYS, IMMEDIATE, (void *)5));
	next(cq, IBV_WC_RDMA_WRITE, 5);
	fill(memory + OUTGOING, 100, 6); /* with iWARP a message with Immediate Data is empty */
	OK(rpma_send_with_imm(conn, iwarp ? NULL : mr, iwarp ? 0 : OUTGOING, iwarp ? 0 : 100, RPMA_F_COMPLETION_ALWAYS, ~IMMEDIATE, (void *)6));
	next(cq, IBV_WC_SEND, 6);
	MUST(told() == 0);
}

static void event(struct rpma_conn *of, enum rpma_conn_event wanted)
{
	enum rpma_conn_event e;
	OK(rpma_conn_next_event(of, &e));
	if (e != wanted) {
		fprintf(stderr, "rpma: %s in place of %s\n", rpma_utils_conn_event_2str(e), rpma_utils_conn_event_2str(wanted));
		exit(1);
	}
}

static void prepare(const char *host, enum rpma_util_ibv_context_type type, unsigned seed)
{
	struct ibv_context *device;
	OK(rpma_utils_get_ibv_context(host, type, &device));
	iwarp = device->device->transport_type == IBV_TRANSPORT_IWARP;
	OK(rpma_peer_new(device, &peer));
	fill(memory + SHOWN, PART, seed);
	OK(rpma_mr_reg(peer, memory, SIZE,
		RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
			RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
		&mr));
	OK(rpma_conn_cfg_new(&cfg));
	OK(rpma_conn_cfg_set_rcq_size(cfg, 16));
	OK(rpma_conn_cfg_set_compl_channel(cfg, one_channel));
}

/* Makes the connection of request, with what each end has to tell. */
static void establish(struct rpma_conn_req *request)
{
	struct about about = {0};
	struct rpma_peer_cfg *pcfg;
	size_t mr_size, cfg_size;
	OK(rpma_mr_get_descriptor_size(mr, &mr_size));
	OK(rpma_peer_cfg_new(&pcfg));
	OK(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
	OK(rpma_peer_cfg_get_descriptor_size(pcfg, &cfg_size));
	MUST(mr_size + cfg_size <= sizeof about.descriptors);
	about.mr_size = (uint8_t)mr_size;
	about.cfg_size = (uint8_t)cfg_size;
	OK(rpma_mr_get_descriptor(mr, about.descriptors));
	OK(rpma_peer_cfg_get_descriptor(pcfg, about.descriptors + mr_size));
	OK(rpma_peer_cfg_delete(&pcfg));
	struct rpma_conn_private_data data = {&about, sizeof about};
	receive(request);
	receive(request);
	OK(rpma_conn_req_connect(&request, &data, &conn));
	event(conn, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_private_data(conn, &data));
	MUST(data.ptr && data.len >= sizeof about);
	memcpy(&about, data.ptr, sizeof about);
	size_t size;
	OK(rpma_mr_remote_from_descriptor(about.descriptors, about.mr_size, &there));
	OK(rpma_mr_remote_get_size(there, &size));
	MUST(size == SIZE);
	MUST(rpma_flush(conn, there, TAKEN, 8, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, NULL) == RPMA_E_NOSUPP);
	OK(rpma_peer_cfg_from_descriptor(about.descriptors + about.mr_size, about.cfg_size, &pcfg));
	OK(rpma_conn_apply_remote_peer_cfg(conn, pcfg));
	OK(rpma_peer_cfg_delete(&pcfg));
	OK(rpma_conn_get_cq(conn, &cq));
	OK(srq ? rpma_srq_get_rcq(srq, &rcq) : rpma_conn_get_rcq(conn, &rcq));
}

static void finish(void)
{
	event(conn, RPMA_CONN_CLOSED);
	OK(rpma_conn_delete(&conn));
	OK(rpma_mr_remote_delete(&there));
	OK(rpma_srq_delete(&srq));
	OK(rpma_conn_cfg_delete(&cfg));
	OK(rpma_mr_dereg(&mr));
	OK(rpma_peer_delete(&peer));
	puts("rpma: ok");
}

static void *map(int fd)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	MUST(p != MAP_FAILED);
	return p;
}

static void serve(const char *host, bool shared)
{
	int fd = open("pmem", O_RDWR | O_CREAT, 0600);
	MUST(fd >= 0 && ftruncate(fd, SIZE) == 0);
	memory = map(fd);
	one_channel = !shared;
	prepare(host, RPMA_UTIL_IBV_CONTEXT_LOCAL, 1);
	if (shared) {
		struct rpma_srq_cfg *of;
		OK(rpma_srq_cfg_new(&of));
		OK(rpma_srq_cfg_set_rcq_size(of, 16));
		OK(rpma_srq_new(peer, of, &srq));
		OK(rpma_srq_cfg_delete(&of));
		OK(rpma_conn_cfg_set_srq(cfg, srq));
	}
	struct rpma_ep *ep;
	struct rpma_conn_req *request;
	OK(rpma_ep_listen(peer, host, port, &ep));
	OK(rpma_ep_next_conn_req(ep, cfg, &request));
	establish(request);
	look();
	use(2);
	finish();
	OK(rpma_ep_shutdown(&ep));
}

static void client(const char *host)
{
	memory = map(-1);
	prepare(host, RPMA_UTIL_IBV_CONTEXT_REMOTE, 2);
	struct rpma_conn_req *request;
	OK(rpma_conn_req_new(peer, host, nobody, NULL, &request));
	OK(rpma_conn_req_connect(&request, NULL, &conn));
	event(conn, RPMA_CONN_REJECTED);
	OK(rpma_conn_delete(&conn));
	int fd = open("pmem", O_RDWR);
	MUST(fd >= 0);
	pmem = map(fd);
	OK(rpma_conn_req_new(peer, host, port, cfg, &request));
	establish(request);
	use(1);
	look();
	OK(rpma_conn_disconnect(conn));
	finish();
}

int main(int argc, char **argv)
{
	OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR)); /* to stderr */
	if (argc >= 3 && strcmp(argv[1], "serve") == 0)
		serve(argv[2], argc > 3 && strcmp(argv[3], "shared") == 0);
	else if (argc == 3 && strcmp(argv[1], "use") == 0)
		client(argv[2]);
	else {
		fprintf(stderr, "usage: rpma serve HOST [shared] | rpma use HOST\n");
		return 2;
	}
	return 0;
}
