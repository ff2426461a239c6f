/* A program that is linked with no libibverbs: it opens that, and looks up what it calls, with and without a version. It has
   the extended verbs like any other. `lookup` prints "lookup: ok". */
#define _GNU_SOURCE
#include "must.h"

#include <dlfcn.h>

#define FIND(name) MUST((name##_ = (__typeof__(name) *)(version ? dlvsym(lib, #name, version) : dlsym(lib, #name))) && !dlerror())

static void use(void *lib, const char *version)
{
	__typeof__(ibv_get_device_list) *ibv_get_device_list_;
	__typeof__(ibv_open_device) *ibv_open_device_;
	__typeof__(ibv_close_device) *ibv_close_device_;
	__typeof__(ibv_alloc_pd) *ibv_alloc_pd_;
	__typeof__(ibv_dealloc_pd) *ibv_dealloc_pd_;
	__typeof__(ibv_destroy_cq) *ibv_destroy_cq_;
	__typeof__(ibv_destroy_qp) *ibv_destroy_qp_;
	FIND(ibv_get_device_list);
	FIND(ibv_open_device);
	FIND(ibv_close_device);
	FIND(ibv_alloc_pd);
	FIND(ibv_dealloc_pd);
	FIND(ibv_destroy_cq);
	FIND(ibv_destroy_qp);
	__typeof__(ibv_qp_to_qp_ex) *to_ex = (__typeof__(to_ex))dlsym(lib, "ibv_qp_to_qp_ex");
	struct ibv_device **list = ibv_get_device_list_(NULL);
	MUST(to_ex && list && list[0]);
	struct ibv_context *device = ibv_open_device_(list[0]);
	MUST(device);
	struct ibv_pd *pd = ibv_alloc_pd_(device);
	struct ibv_cq_init_attr_ex wanted = {.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(device, &wanted);
	MUST(pd && cq && ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}) == ENOENT);
	struct verbs_context *v = verbs_get_ctx(device);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq), .qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd, .send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = v->create_qp_ex(device, &attr);
	MUST(qp && &to_ex(qp)->qp_base == qp);
	MUST(ibv_destroy_qp_(qp) == 0 && ibv_destroy_cq_(ibv_cq_ex_to_cq(cq)) == 0 && ibv_dealloc_pd_(pd) == 0 && ibv_close_device_(device) == 0);
}

int main(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	MUST(lib);
	use(lib, NULL);
	use(lib, "IBVERBS_1.1");
	puts("lookup: ok");
	return 0;
}
