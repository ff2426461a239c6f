/* Memory windows and parent domains, and both in children: `windows MODE HOST` prints "MODE: ok" and ends with 0, or says
   which line did not hold. */
#define _GNU_SOURCE
#include "extended.h"

#include <sys/wait.h>

/* Writes 8 octets through a window of b, and tells how it went. With iWARP a Write that is refused has completed: a Read tells. */
static enum ibv_wc_status through(struct end *a, struct end *b, uint32_t rkey, size_t at)
{
	ibv_wr_rdma_read(begin(a, 99), rkey, (uintptr_t)b->memory + at);
	set(a, 0, 8);
	MUST(ibv_wr_complete(a->x) == 0);
	return next(a).status;
}

/* What a RoCE adapter says of an access that the peer refuses, and an RNIC. */
static enum ibv_wc_status refused(void)
{
	return device->device->transport_type == IBV_TRANSPORT_IWARP ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR;
}

static struct ibv_mw_bind_info part(struct end *e, size_t at, size_t n)
{
	return (struct ibv_mw_bind_info){e->mr, (uintptr_t)e->memory + at, n, IBV_ACCESS_REMOTE_READ};
}

static void windows(void)
{
	for (int how = 0; how < 4; how++) { /* a refused access ends the connection */
		struct end a = {0}, b = {0};
		struct ibv_device_attr d;
		MUST(ibv_query_device(device, &d) == 0 && d.max_mw > 1000 && (d.device_cap_flags & IBV_DEVICE_MEM_WINDOW));
		make(&a, IBV_QPT_RC);
		make(&b, IBV_QPT_RC);
		up(&a, &b);
		struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1), *two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
		MUST(one && two);
		REFUSED(ibv_alloc_mw(b.pd, 3), EINVAL);
		strcpy(b.memory + 256, "windows");
		if (how == 0) { /* type 1, bound twice and then to nothing */
			uint32_t key = 0;
			for (int i = 0; i < 2; i++) {
				struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = part(&b, 256, 64)};
				MUST(ibv_bind_mw(b.qp, one, &bind) == 0 && one->rkey != key);
				key = one->rkey;
				good(&b, 1, IBV_WC_BIND_MW);
				MUST(through(&a, &b, key, 256) == IBV_WC_SUCCESS && strcmp(a.memory, "windows") == 0);
			}
			struct ibv_mw_bind none = {.wr_id = 2, .send_flags = IBV_SEND_SIGNALED};
			MUST(ibv_bind_mw(b.qp, one, &none) == 0);
			good(&b, 2, IBV_WC_BIND_MW);
			MUST(through(&a, &b, one->rkey, 256) == refused());
		} else { /* type 2, bound in both ways and invalidated in both */
			uint32_t key = ibv_inc_rkey(two->rkey);
			struct ibv_mw_bind_info info = part(&b, 256, 64);
			ibv_wr_bind_mw(begin(&b, 3), two, key, &info);
			MUST(ibv_wr_complete(b.x) == 0);
			good(&b, 3, IBV_WC_BIND_MW);
			MUST(through(&a, &b, key, 256) == IBV_WC_SUCCESS && strcmp(a.memory, "windows") == 0);
			ibv_wr_local_inv(begin(&b, 4), key);
			MUST(ibv_wr_complete(b.x) == 0);
			good(&b, 4, IBV_WC_LOCAL_INV);
			key = ibv_inc_rkey(key);
			struct ibv_send_wr send = {.wr_id = 6, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
			struct ibv_send_wr wr = {.wr_id = 5, .next = &send, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED, .bind_mw = {two, key, part(&b, 256, 64)}};
			receive(&a, 6, 512, 8);
			MUST(ibv_post_send(b.qp, &wr, &bad) == 0);
			good(&b, 5, IBV_WC_BIND_MW);
			good(&b, 6, IBV_WC_SEND);
			good(&a, 6, IBV_WC_RECV);
			MUST(through(&a, &b, key, 256) == IBV_WC_SUCCESS);
			receive(&b, 7, 512, 8);
			ibv_wr_send_inv(begin(&a, 7), key);
			MUST(how != 1 || ibv_wr_complete(a.x) == 0);
			if (how == 1) {
				good(&a, 7, IBV_WC_SEND);
				struct ibv_wc w = good(&b, 7, IBV_WC_RECV);
				MUST((w.wc_flags & IBV_WC_WITH_INV) && w.invalidated_rkey == key);
			} else {
				ibv_wr_abort(a.x);
				if (how == 2) { /* with the window */
					MUST(ibv_dealloc_mw(two) == 0);
					two = NULL;
				} else { /* bound, and outlived by nothing */
					MUST(ibv_dereg_mr(b.mr) == EBUSY && ibv_destroy_qp(b.qp) == 0);
					b.qp = NULL;
				}
			}
			if (how < 3)
				MUST(through(&a, &b, key, 256) == refused());
		}
		MUST(ibv_dealloc_pd(b.pd) == EBUSY && ibv_dealloc_mw(one) == 0 && (!two || ibv_dealloc_mw(two) == 0));
		destroy(&a);
		destroy(&b);
	}
}

/* domains: everything is made in parent domains of one protection domain. */
static void domains(void)
{
	struct end e[2] = {{0}, {0}};
	struct ibv_pd *of = ibv_alloc_pd(device);
	struct ibv_td_init_attr none = {0};
	struct ibv_td *td = ibv_alloc_td(device, &none);
	struct ibv_mr *mr;
	char *memory;
	MUST(of && td);
	MUST(posix_memalign((void **)&memory, 4096, SIZE) == 0 && (mr = ibv_reg_mr(of, memory, SIZE, IBV_ACCESS_LOCAL_WRITE)));
	for (int i = 0; i < 2; i++) {
		struct ibv_parent_domain_init_attr attr = {.pd = of, .td = td, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT, .pd_context = e};
		MUST(e[i].pd = ibv_alloc_parent_domain(device, &attr));
		struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = DEPTH, .max_sge = 1}, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD, .srq_type = IBV_SRQT_BASIC, .pd = e[i].pd};
		MUST(e[i].srq = ibv_create_srq_ex(device, &srq));
		struct ibv_cq_init_attr_ex cq = {.cqe = 4 * DEPTH, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD, .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED, .wc_flags = IBV_WC_STANDARD_FLAGS, .parent_domain = e[i].pd};
		MUST(e[i].cq = ibv_create_cq_ex(device, &cq));
		make(&e[i], IBV_QPT_RC);
	}
	REFUSED(ibv_alloc_parent_domain(device, &(struct ibv_parent_domain_init_attr){.pd = of, .comp_mask = 1 << 5}), EOPNOTSUPP);
	up(&e[0], &e[1]);
	strcpy(memory, "in common");
	receive(&e[1], 1, 0, 64);
	ibv_wr_send(begin(&e[0], 1));
	ibv_wr_set_sge(e[0].x, mr->lkey, (uintptr_t)memory, 10);
	MUST(ibv_wr_complete(e[0].x) == 0);
	good(&e[0], 1, IBV_WC_SEND);
	good(&e[1], 1, IBV_WC_RECV);
	MUST(strcmp(e[1].memory, "in common") == 0);
	MUST(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(of) == EBUSY);
	destroy(&e[0]);
	MUST(ibv_dealloc_pd(of) == EBUSY);
	destroy(&e[1]);
	MUST(ibv_dealloc_pd(of) == 0 && ibv_dealloc_td(td) == 0);
	free(memory);
}

/* children: a child of fork opens the device again, and has extended objects of its own beside those that it cannot use. */
static void children(void)
{
	struct end a = {0}, b = {0};
	make(&a, IBV_QPT_RC);
	make(&b, IBV_QPT_RC);
	up(&a, &b);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child == 0) {
			ibv_wr_send(begin(&a, 1));
			MUST(ibv_wr_complete(a.x) != 0);
			open_device();
			windows();
			domains();
			_exit(0);
		}
		int status;
		MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
		a_send(&a, &b, 1);
		good(&a, 1, IBV_WC_SEND);
		good(&b, 1, IBV_WC_RECV);
	}
	destroy(&a);
	destroy(&b);
}

int main(int argc, char **argv)
{
	static const struct mode modes[] = {{"windows", windows}, {"domains", domains}, {"children", children}, {0}};
	return run(argc, argv, modes);
}
