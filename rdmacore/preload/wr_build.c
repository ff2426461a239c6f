/* The functions of an extended queue pair build one POST_SEND between wr_start and wr_complete, which posts it: all of its
   requests or, with an errno, none. What a builder cannot take is kept until then. */
#include "verbs.h"

#include <errno.h>
#include <string.h>

enum { WHOLE = 1u << 31 /* uabi.SendWhole, of the first request */, WORDS = UINT16_MAX /* of 4 octets, in a command */ };

static inline struct qp_ex *of(struct v_qp_ex *v) { return (struct qp_ex *)v; }
static inline struct v_wqe *wqes(struct qp_ex *x) { return (struct v_wqe *)(x->post + 1); }

static void wrong(struct qp_ex *x, int error)
{
	if (x->error == 0)
		x->error = error;
}

/* The next request, or NULL. */
static struct v_wqe *request(struct v_qp_ex *v, uint32_t opcode)
{
	struct qp_ex *x = of(v);
	if (x->wrs == x->max_wr)
		wrong(x, ENOMEM);
	if (x->error != 0)
		return NULL;
	struct v_wqe *w = &wqes(x)[x->wrs++];
	*w = (struct v_wqe){.wr_id = v->wr_id, .opcode = opcode, .flags = v->wr_flags & ~WHOLE};
	return w;
}

/* The request that what is set belongs to, or NULL. */
static struct v_wqe *last(struct qp_ex *x)
{
	if (x->wrs == 0)
		wrong(x, EINVAL);
	return x->error == 0 ? &wqes(x)[x->wrs - 1] : NULL;
}

static void remote(struct v_wqe *w, uint32_t rkey, uint64_t addr)
{
	if (w) {
		w->remote[0] = addr;
		w->remote[1] = rkey;
	}
}

static void atomic(struct v_wqe *w, uint32_t rkey, uint64_t addr, uint64_t compare_add, uint64_t swap)
{
	if (w)
		memcpy(w->remote, (uint64_t[]){addr, compare_add, swap, rkey}, sizeof w->remote);
}

static void immediate(struct v_wqe *w, uint32_t imm)
{
	if (w)
		w->imm = imm;
}

static void wr_cmp_swp(struct v_qp_ex *v, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	atomic(request(v, V_CMP_SWP), rkey, addr, compare, swap);
}
static void wr_fetch_add(struct v_qp_ex *v, uint32_t rkey, uint64_t addr, uint64_t add) { atomic(request(v, V_FETCH_ADD), rkey, addr, add, 0); }
static void wr_read(struct v_qp_ex *v, uint32_t rkey, uint64_t addr) { remote(request(v, V_READ), rkey, addr); }
static void wr_write(struct v_qp_ex *v, uint32_t rkey, uint64_t addr) { remote(request(v, V_WRITE), rkey, addr); }
static void wr_write_imm(struct v_qp_ex *v, uint32_t rkey, uint64_t addr, uint32_t imm)
{
	struct v_wqe *w = request(v, V_WRITE_IMM);
	remote(w, rkey, addr);
	immediate(w, imm);
}
static void wr_send(struct v_qp_ex *v) { request(v, V_SEND); }
static void wr_send_imm(struct v_qp_ex *v, uint32_t imm) { immediate(request(v, V_SEND_IMM), imm); }
static void wr_send_inv(struct v_qp_ex *v, uint32_t rkey) { immediate(request(v, V_SEND_INV), rkey); }
static void wr_local_inv(struct v_qp_ex *v, uint32_t rkey) { immediate(request(v, V_LOCAL_INV), rkey); }
static void wr_bind_mw(struct v_qp_ex *v, struct v_mw *mw, uint32_t rkey, const struct v_mw_bind_info *info)
{
	struct v_wqe *w = request(v, V_BIND_MW);
	if (w)
		v_bind(w, mw, rkey, info, BY_REQUEST);
}

static void set_ud_addr(struct v_qp_ex *v, struct v_ah *ah, uint32_t qpn, uint32_t qkey)
{
	remote(last(of(v)), qkey, (uint64_t)qpn << 32 | ah->handle);
}

static void set_sge_list(struct v_qp_ex *v, size_t n, const struct v_sge *list)
{
	struct qp_ex *x = of(v);
	struct v_wqe *w = last(x);
	if (w && n > x->max_sge)
		wrong(x, EINVAL);
	if (!w || n > x->max_sge)
		return;
	x->sges -= w->num_sge; /* what was set before */
	if (n > 0)
		memcpy(&x->sge[x->sges], list, n * sizeof *list);
	w->num_sge = (uint32_t)n;
	x->sges += w->num_sge;
}

static void set_sge(struct v_qp_ex *v, uint32_t lkey, uint64_t addr, uint32_t length)
{
	set_sge_list(v, 1, &(struct v_sge){addr, length, lkey});
}

/* The program may change what is inline as soon as it is set. */
static void set_inline_list(struct v_qp_ex *v, size_t n, const struct v_data_buf *list)
{
	struct qp_ex *x = of(v);
	struct v_wqe *w = last(x);
	if (!w)
		return;
	char *to = x->inlined + (size_t)x->max_inline * (x->wrs - 1);
	size_t total = 0;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length > x->max_inline - total) {
			wrong(x, ENOMEM);
			return;
		}
		if (list[i].length > 0)
			memcpy(to + total, list[i].addr, list[i].length);
		total += list[i].length;
	}
	w->flags |= V_INLINE;
	set_sge_list(v, total > 0, &(struct v_sge){(uintptr_t)to, (uint32_t)total, 0});
}

static void set_inline(struct v_qp_ex *v, void *addr, size_t length) { set_inline_list(v, 1, &(struct v_data_buf){addr, length}); }

static void start(struct v_qp_ex *v)
{
	struct qp_ex *x = of(v);
	pthread_mutex_lock(&x->building);
	x->wrs = x->sges = 0;
	x->error = 0;
}

static void give_up(struct v_qp_ex *v) { pthread_mutex_unlock(&of(v)->building); }

/* Posts what is built. A single request may wait in a ring (ring.c); its command is on the stack, as libibverbs has it, so that
   write knows it by that. */
static int post(struct qp_ex *x)
{
	uint32_t answer = 0;
	struct {
		struct v_post post;
		struct v_wqe wqe;
		struct v_sge sge;
	} one;
	size_t wrs = x->wrs * sizeof(struct v_wqe), sges = x->sges * sizeof(struct v_sge), n = sizeof(struct v_post) + wrs + sges;
	if (n > WORDS * 4)
		return ENOMEM;
	void *command = x->post;
	if (x->wrs == 1 && x->sges <= 1) {
		int open = v_ring(x->v.base.context);
		if (open >= 0 && x->sges && ring_send(open, x->v.base.handle, wqes(x), x->sge))
			return 0;
		command = &one;
		one.wqe = *wqes(x);
		one.sge = x->sges ? *x->sge : (struct v_sge){0};
	} else {
		wqes(x)->flags |= WHOLE;
		memmove((char *)(x->post + 1) + wrs, x->sge, sges);
	}
	*(struct v_post *)command = (struct v_post){
		{POST_SEND, (uint16_t)(n / 4), sizeof answer / 4, (uintptr_t)&answer}, x->v.base.handle, x->wrs, x->sges, sizeof(struct v_wqe),
	};
	return v_command(x->v.base.context, command, n);
}

static int complete(struct v_qp_ex *v)
{
	struct qp_ex *x = of(v);
	int r = x->error;
	if (r == 0 && x->wrs > 0)
		r = post(x);
	pthread_mutex_unlock(&x->building);
	return r;
}

void v_set_builders(struct v_qp_ex *v)
{
	v->wr_atomic_cmp_swp = wr_cmp_swp;
	v->wr_atomic_fetch_add = wr_fetch_add;
	v->wr_bind_mw = wr_bind_mw;
	v->wr_local_inv = wr_local_inv;
	v->wr_rdma_read = wr_read;
	v->wr_rdma_write = wr_write;
	v->wr_rdma_write_imm = wr_write_imm;
	v->wr_send = wr_send;
	v->wr_send_imm = wr_send_imm;
	v->wr_send_inv = wr_send_inv;
	v->wr_set_ud_addr = set_ud_addr;
	v->wr_set_inline_data = set_inline;
	v->wr_set_inline_data_list = set_inline_list;
	v->wr_set_sge = set_sge;
	v->wr_set_sge_list = set_sge_list;
	v->wr_start = start;
	v->wr_complete = complete;
	v->wr_abort = give_up;
}
