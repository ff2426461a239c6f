/* What <infiniband/verbs.h> publishes of the objects that the extended verbs are of, as the ABI of libibverbs.so.1 has
   them, and the commands of <rdma/ib_user_verbs.h> that make them. No header of rdma-core is needed to build this library,
   and none of its private structs is here. test/abi.c holds all of it against the system's header. */
#ifndef SOFTRNIC_VERBS_H
#define SOFTRNIC_VERBS_H

#include "preload.h"

#include <stdint.h>

struct v_context;
struct v_cq;
struct v_cq_ex;
struct v_qp;
struct v_qp_ex;

/* enum ibv_qp_type, ibv_wr_opcode, ibv_send_flags, ibv_qp_init_attr_mask and the other masks */
enum { V_RC = 2, V_UD = 4 };
enum { V_WRITE, V_WRITE_IMM, V_SEND, V_SEND_IMM, V_READ, V_CMP_SWP, V_FETCH_ADD, V_LOCAL_INV, V_BIND_MW, V_SEND_INV };
enum { V_INLINE = 8 };
enum { V_QP_PD = 1, V_QP_CREATE_FLAGS = 1 << 2, V_QP_SEND_OPS = 1 << 6 };
enum { V_CQ_FLAGS = 1, V_CQ_PD = 2, V_CQ_SINGLE_THREADED = 1 };
enum { V_PARENT_KNOWN = 3 };

struct v_pd {
	struct v_context *context;
	uint32_t handle;
};
struct v_ah {
	struct v_context *context;
	struct v_pd *pd;
	uint32_t handle;
};
struct v_mr {
	struct v_context *context;
	struct v_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
};
struct v_mw {
	struct v_context *context;
	struct v_pd *pd;
	uint32_t rkey, handle;
	int type;
};
struct v_mw_bind_info {
	struct v_mr *mr;
	uint64_t addr, length;
	unsigned access;
};
struct v_mw_bind {
	uint64_t wr_id;
	unsigned send_flags;
	struct v_mw_bind_info info;
};
struct v_srq {
	struct v_context *context;
	void *srq_context;
	struct v_pd *pd;
	uint32_t handle;
};
struct v_channel {
	struct v_context *context;
	int fd, refcnt;
};
struct v_sge {
	uint64_t addr;
	uint32_t length, lkey;
};
struct v_data_buf {
	void *addr;
	size_t length;
};
struct v_send_wr {
	uint64_t wr_id;
	struct v_send_wr *next;
	struct v_sge *sges;
	int num_sge, opcode;
	unsigned flags;
	uint32_t imm; /* or the rkey to invalidate */
	uint64_t remote[4];
	uint64_t xrc;
	struct {
		struct v_mw *mw;
		uint32_t rkey;
		struct v_mw_bind_info info;
	} bind;
};

/* struct ibv_cq and, from comp_mask on, struct ibv_cq_ex */
#define V_CQ                                                                                                               \
	struct v_context *context;                                                                                         \
	struct v_channel *channel;                                                                                         \
	void *cq_context;                                                                                                  \
	uint32_t handle;                                                                                                   \
	int cqe;                                                                                                           \
	pthread_mutex_t mutex;                                                                                             \
	pthread_cond_t cond;                                                                                               \
	uint32_t comp_events_completed, async_events_completed
struct v_cq {
	V_CQ;
};
struct v_poll_cq_attr {
	uint32_t comp_mask;
};
struct v_cq_ex {
	V_CQ;
	uint32_t comp_mask;
	int status;
	uint64_t wr_id;
	int (*start_poll)(struct v_cq_ex *, struct v_poll_cq_attr *);
	int (*next_poll)(struct v_cq_ex *);
	void (*end_poll)(struct v_cq_ex *);
	int (*read_opcode)(struct v_cq_ex *);
	uint32_t (*read_vendor_err)(struct v_cq_ex *);
	uint32_t (*read_byte_len)(struct v_cq_ex *);
	uint32_t (*read_imm_data)(struct v_cq_ex *); /* network order; or the rkey that was invalidated */
	uint32_t (*read_qp_num)(struct v_cq_ex *);
	uint32_t (*read_src_qp)(struct v_cq_ex *);
	unsigned (*read_wc_flags)(struct v_cq_ex *);
	uint32_t (*read_slid)(struct v_cq_ex *);
	uint8_t (*read_sl)(struct v_cq_ex *);
	uint8_t (*read_dlid_path_bits)(struct v_cq_ex *);
	void (*others[5])(void); /* read_completion_ts to read_completion_wallclock_ns: refused when the queue is created */
};
struct v_cq_init_attr_ex {
	uint32_t cqe;
	void *cq_context;
	struct v_channel *channel;
	uint32_t comp_vector;
	uint64_t wc_flags;
	uint32_t comp_mask, flags;
	struct v_pd *parent_domain;
};

struct v_qp {
	struct v_context *context;
	void *qp_context;
	struct v_pd *pd;
	struct v_cq *send_cq, *recv_cq;
	struct v_srq *srq;
	uint32_t handle, qp_num;
	int state, qp_type;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
};
struct v_qp_ex {
	struct v_qp base;
	uint64_t comp_mask;
	uint64_t wr_id;
	unsigned wr_flags;
	void (*wr_atomic_cmp_swp)(struct v_qp_ex *, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap);
	void (*wr_atomic_fetch_add)(struct v_qp_ex *, uint32_t rkey, uint64_t addr, uint64_t add);
	void (*wr_bind_mw)(struct v_qp_ex *, struct v_mw *, uint32_t rkey, const struct v_mw_bind_info *);
	void (*wr_local_inv)(struct v_qp_ex *, uint32_t rkey);
	void (*wr_rdma_read)(struct v_qp_ex *, uint32_t rkey, uint64_t addr);
	void (*wr_rdma_write)(struct v_qp_ex *, uint32_t rkey, uint64_t addr);
	void (*wr_rdma_write_imm)(struct v_qp_ex *, uint32_t rkey, uint64_t addr, uint32_t imm);
	void (*wr_send)(struct v_qp_ex *);
	void (*wr_send_imm)(struct v_qp_ex *, uint32_t imm);
	void (*wr_send_inv)(struct v_qp_ex *, uint32_t rkey);
	void (*wr_send_tso)(void);
	void (*wr_set_ud_addr)(struct v_qp_ex *, struct v_ah *, uint32_t qpn, uint32_t qkey);
	void (*wr_set_xrc_srqn)(void);
	void (*wr_set_inline_data)(struct v_qp_ex *, void *, size_t);
	void (*wr_set_inline_data_list)(struct v_qp_ex *, size_t n, const struct v_data_buf *);
	void (*wr_set_sge)(struct v_qp_ex *, uint32_t lkey, uint64_t addr, uint32_t length);
	void (*wr_set_sge_list)(struct v_qp_ex *, size_t n, const struct v_sge *);
	void (*wr_start)(struct v_qp_ex *);
	int (*wr_complete)(struct v_qp_ex *);
	void (*wr_abort)(struct v_qp_ex *);
	void (*others[2])(void); /* wr_atomic_write and, later than rdma-core 44, wr_flush: refused when the queue pair is created */
};
struct v_qp_init_attr_ex {
	void *qp_context;
	struct v_cq *send_cq, *recv_cq;
	struct v_srq *srq;
	struct {
		uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
	} cap;
	int qp_type, sq_sig_all;
	uint32_t comp_mask;
	struct v_pd *pd;
	void *xrcd;
	uint32_t create_flags;
	uint16_t max_tso_header;
	void *rwq_ind_tbl;
	struct {
		uint8_t function, key_len;
		uint8_t *key;
		uint64_t fields;
	} rx_hash_conf;
	uint32_t source_qpn;
	uint64_t send_ops_flags;
};

struct v_td {
	struct v_context *context;
};
struct v_td_init_attr {
	uint32_t comp_mask;
};
struct v_parent_domain_init_attr {
	struct v_pd *pd;
	struct v_td *td;
	uint32_t comp_mask;
	void *alloc, *free, *pd_context; /* there is nothing to allocate: queues are not in the program's memory */
};

struct v_context_ops {
	void *before[7];
	struct v_mw *(*alloc_mw)(struct v_pd *, int type);
	int (*bind_mw)(struct v_qp *, struct v_mw *, struct v_mw_bind *);
	int (*dealloc_mw)(struct v_mw *);
	void *create_cq;
	void *poll_cq, *req_notify_cq;
	void *between[7];
	void *post_srq_recv;
	void *qps[4];
	int (*post_send)(struct v_qp *, struct v_send_wr *, struct v_send_wr **bad);
	void *after[6];
};
struct v_context {
	void *device;
	struct v_context_ops ops;
	int cmd_fd, async_fd, num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;
};

/* The end of struct verbs_context, which grows at its front: sz says how much of it there is. */
struct v_extended {
	struct v_pd *(*alloc_parent_domain)(struct v_context *, struct v_parent_domain_init_attr *);
	int (*dealloc_td)(struct v_td *);
	struct v_td *(*alloc_td)(struct v_context *, struct v_td_init_attr *);
	void *queues[8]; /* modify_cq to query_rt_values */
	struct v_cq_ex *(*create_cq_ex)(struct v_context *, struct v_cq_init_attr_ex *);
	void *flows[7]; /* priv to open_qp */
	struct v_qp *(*create_qp_ex)(struct v_context *, struct v_qp_init_attr_ex *);
	void *shared[5]; /* get_srq_num to the last placeholder */
	size_t sz;
	struct v_context context;
};
#define V_EXTENDED ((void *)UINTPTR_MAX) /* of abi_compat */

/* A command: its header, and where its answer goes. Of driver_data, what is ours is what rdmacore/internal/uabi/driver.go has. */
enum { ALLOC_PD = 3, REREG_MR = 11, ALLOC_MW = 14, DEALLOC_MW = 16, CREATE_CQ = 18, POLL_CQ = 21, CREATE_QP = 24, DESTROY_QP = 27, POST_SEND = 28 };
struct v_header {
	uint32_t command;
	uint16_t in_words, out_words;
	uint64_t response;
};
#define V_HEADER(number, command, answer)                                                                                  \
	(struct v_header) { number, sizeof(command) / 4, sizeof(answer) / 4, (uint64_t)(uintptr_t)&(answer) }

struct v_wc { /* struct ib_uverbs_wc */
	uint64_t wr_id;
	uint32_t status, opcode, vendor_err, byte_len, imm, qp_num, src_qp, wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits, port_num, reserved;
};
struct v_wqe { /* struct ib_uverbs_send_wr */
	uint64_t wr_id;
	uint32_t num_sge, opcode, flags, imm;
	uint64_t remote[4];
};
struct v_post { /* struct ib_uverbs_post_send, behind which the requests and their elements are */
	struct v_header header;
	uint32_t qp, wrs, sges, wqe_size;
};

/* verbs.c */
/* Writes the n octets of a command: 0, or an errno. */
int v_command(const struct v_context *context, const void *command, size_t n);
/* Whether a context is one of the device: a program may have hardware, too. */
bool v_ours(const struct v_context *context);
/* The engine's handle of the device, whose rings (ring.c) have what needs no command; -1: there is none any more, as commands say. */
int v_ring(const struct v_context *context);
/* The function of the libibverbs that who calls means: a process may have two, of different releases. Or NULL. */
void *v_next(const char *name, const void *caller);
EXPORT struct v_context *ibv_open_device(void *device);
EXPORT struct v_qp_ex *ibv_qp_to_qp_ex(struct v_qp *qp);
EXPORT int ibv_rereg_mr(struct v_mr *mr, int flags, struct v_pd *pd, void *addr, size_t length, int access);

/* dl.c */
void *v_dlsym(void *handle, const char *name); /* the dlsym behind ours */

/* cq_ex.c */
struct v_cq_ex *v_create_cq_ex(struct v_context *context, struct v_cq_init_attr_ex *attr);

/* qp_ex.c, wr_build.c */
struct qp_ex { /* made by malloc, and freed by the provider */
	struct v_qp_ex v;
	struct qp_ex *next; /* with the same place in the table of qp_ex.c */
	int open;
	pthread_mutex_t building; /* from wr_start to its end */
	uint32_t max_wr, max_sge, max_inline;
	uint32_t wrs, sges; /* built */
	int error;          /* the first of a builder */
	struct v_post *post; /* max_wr requests behind it; NULL: the program wants no functions */
	struct v_sge *sge;   /* max_sge a request */
	char *inlined;       /* max_inline octets a request */
};
struct v_qp *v_create_qp_ex(struct v_context *context, struct v_qp_init_attr_ex *attr);
extern _Atomic unsigned v_qps; /* that are in the table */
void v_qp_gone(int open, uint32_t handle); /* DESTROY_QP has succeeded */
void v_set_builders(struct v_qp_ex *v);

/* mw.c */
enum { BY_VERB = 1, BY_REQUEST }; /* ibv_bind_mw, which is for windows of type 1, or a request, for type 2 */
void v_windows(struct v_context *context);
void v_bind(struct v_wqe *w, const struct v_mw *mw, uint32_t rkey, const struct v_mw_bind_info *info, int how);

/* domain.c */
void v_domains(struct v_extended *e);

#endif
