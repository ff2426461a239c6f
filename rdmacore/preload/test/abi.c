/* Holds ../verbs.h against <infiniband/verbs.h> where that is installed, of whatever release: to be compiled. */
#if __has_include(<infiniband/verbs.h>)
#define ibv_open_device ours_open_device /* the header has them with its own types */
#define ibv_qp_to_qp_ex ours_to_qp_ex
#define ibv_rereg_mr ours_rereg_mr
#include "../verbs.h"
#undef ibv_open_device
#undef ibv_qp_to_qp_ex
#undef ibv_rereg_mr
#include <infiniband/verbs.h>

#define SAME(ours, our, theirs, their)                                                                                     \
	_Static_assert(offsetof(struct ours, our) == offsetof(struct theirs, their), #ours "." #our " is " #theirs "." #their);  \
	_Static_assert(sizeof(((struct ours *)0)->our) == sizeof(((struct theirs *)0)->their), "size of " #ours "." #our)
#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(struct theirs), "size of " #ours)
#define FROM_END(member)                                                                                                   \
	_Static_assert(sizeof(struct v_extended) - offsetof(struct v_extended, member) ==                                   \
			       sizeof(struct verbs_context) - offsetof(struct verbs_context, member),                       \
		       "verbs_context." #member)
#define VALUE(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #ours)

FROM_END(alloc_parent_domain);
FROM_END(dealloc_td);
FROM_END(alloc_td);
FROM_END(create_cq_ex);
FROM_END(create_qp_ex);
FROM_END(sz);
FROM_END(context);
SIZE(v_context, ibv_context);
SAME(v_context, cmd_fd, ibv_context, cmd_fd);
SAME(v_context, mutex, ibv_context, mutex);
SAME(v_context, abi_compat, ibv_context, abi_compat);
SIZE(v_context_ops, ibv_context_ops);
SAME(v_context_ops, alloc_mw, ibv_context_ops, alloc_mw);
SAME(v_context_ops, bind_mw, ibv_context_ops, bind_mw);
SAME(v_context_ops, dealloc_mw, ibv_context_ops, dealloc_mw);
SAME(v_context_ops, post_send, ibv_context_ops, post_send);

SIZE(v_pd, ibv_pd);
SAME(v_pd, handle, ibv_pd, handle);
SIZE(v_td, ibv_td);
SIZE(v_ah, ibv_ah);
SAME(v_ah, handle, ibv_ah, handle);
SIZE(v_mr, ibv_mr);
SAME(v_mr, lkey, ibv_mr, lkey);
SIZE(v_mw, ibv_mw);
SAME(v_mw, rkey, ibv_mw, rkey);
SAME(v_mw, handle, ibv_mw, handle);
SAME(v_mw, type, ibv_mw, type);
SIZE(v_mw_bind_info, ibv_mw_bind_info);
SAME(v_mw_bind_info, length, ibv_mw_bind_info, length);
SAME(v_mw_bind_info, access, ibv_mw_bind_info, mw_access_flags);
SIZE(v_mw_bind, ibv_mw_bind);
SAME(v_mw_bind, send_flags, ibv_mw_bind, send_flags);
SAME(v_mw_bind, info, ibv_mw_bind, bind_info);
SAME(v_srq, handle, ibv_srq, handle);
SIZE(v_channel, ibv_comp_channel);
SAME(v_channel, fd, ibv_comp_channel, fd);
SAME(v_channel, refcnt, ibv_comp_channel, refcnt);
SIZE(v_sge, ibv_sge);
SAME(v_sge, lkey, ibv_sge, lkey);
SIZE(v_data_buf, ibv_data_buf);
SAME(v_data_buf, length, ibv_data_buf, length);
SIZE(v_send_wr, ibv_send_wr);
SAME(v_send_wr, next, ibv_send_wr, next);
SAME(v_send_wr, opcode, ibv_send_wr, opcode);
SAME(v_send_wr, flags, ibv_send_wr, send_flags);
SAME(v_send_wr, imm, ibv_send_wr, imm_data);
SAME(v_send_wr, bind.mw, ibv_send_wr, bind_mw.mw);
SAME(v_send_wr, bind.rkey, ibv_send_wr, bind_mw.rkey);
SAME(v_send_wr, bind.info, ibv_send_wr, bind_mw.bind_info);

SIZE(v_cq, ibv_cq);
SAME(v_cq, handle, ibv_cq, handle);
SAME(v_cq, cqe, ibv_cq, cqe);
SAME(v_cq, mutex, ibv_cq, mutex);
SAME(v_cq, cond, ibv_cq, cond);
SAME(v_cq, async_events_completed, ibv_cq, async_events_completed);
SIZE(v_cq_ex, ibv_cq_ex);
SAME(v_cq_ex, status, ibv_cq_ex, status);
SAME(v_cq_ex, wr_id, ibv_cq_ex, wr_id);
SAME(v_cq_ex, start_poll, ibv_cq_ex, start_poll);
SAME(v_cq_ex, end_poll, ibv_cq_ex, end_poll);
SAME(v_cq_ex, read_opcode, ibv_cq_ex, read_opcode);
SAME(v_cq_ex, read_imm_data, ibv_cq_ex, read_imm_data);
SAME(v_cq_ex, read_wc_flags, ibv_cq_ex, read_wc_flags);
SAME(v_cq_ex, read_dlid_path_bits, ibv_cq_ex, read_dlid_path_bits);
SAME(v_cq_ex, others[0], ibv_cq_ex, read_completion_ts);
SAME(v_cq_ex, others[4], ibv_cq_ex, read_completion_wallclock_ns);
SIZE(v_cq_init_attr_ex, ibv_cq_init_attr_ex);
SAME(v_cq_init_attr_ex, wc_flags, ibv_cq_init_attr_ex, wc_flags);
SAME(v_cq_init_attr_ex, flags, ibv_cq_init_attr_ex, flags);
SAME(v_cq_init_attr_ex, parent_domain, ibv_cq_init_attr_ex, parent_domain);
SIZE(v_poll_cq_attr, ibv_poll_cq_attr);

SIZE(v_qp, ibv_qp);
SAME(v_qp, qp_type, ibv_qp, qp_type);
SAME(v_qp, mutex, ibv_qp, mutex);
SAME(v_qp, events_completed, ibv_qp, events_completed);
SAME(v_qp_ex, wr_id, ibv_qp_ex, wr_id);
SAME(v_qp_ex, wr_flags, ibv_qp_ex, wr_flags);
SAME(v_qp_ex, wr_atomic_cmp_swp, ibv_qp_ex, wr_atomic_cmp_swp);
SAME(v_qp_ex, wr_bind_mw, ibv_qp_ex, wr_bind_mw);
SAME(v_qp_ex, wr_rdma_write_imm, ibv_qp_ex, wr_rdma_write_imm);
SAME(v_qp_ex, wr_send_inv, ibv_qp_ex, wr_send_inv);
SAME(v_qp_ex, wr_set_ud_addr, ibv_qp_ex, wr_set_ud_addr);
SAME(v_qp_ex, wr_set_sge_list, ibv_qp_ex, wr_set_sge_list);
SAME(v_qp_ex, wr_abort, ibv_qp_ex, wr_abort);
SAME(v_qp_ex, others[0], ibv_qp_ex, wr_atomic_write);
_Static_assert(sizeof(struct v_qp_ex) >= sizeof(struct ibv_qp_ex), "this release has more of ibv_qp_ex");
SIZE(v_qp_init_attr_ex, ibv_qp_init_attr_ex);
SAME(v_qp_init_attr_ex, cap, ibv_qp_init_attr_ex, cap);
SAME(v_qp_init_attr_ex, comp_mask, ibv_qp_init_attr_ex, comp_mask);
SAME(v_qp_init_attr_ex, pd, ibv_qp_init_attr_ex, pd);
SAME(v_qp_init_attr_ex, create_flags, ibv_qp_init_attr_ex, create_flags);
SAME(v_qp_init_attr_ex, send_ops_flags, ibv_qp_init_attr_ex, send_ops_flags);
SIZE(v_parent_domain_init_attr, ibv_parent_domain_init_attr);
SAME(v_parent_domain_init_attr, comp_mask, ibv_parent_domain_init_attr, comp_mask);
SIZE(v_td_init_attr, ibv_td_init_attr);

VALUE(V_RC, IBV_QPT_RC);
VALUE(V_UD, IBV_QPT_UD);
VALUE(V_FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
VALUE(V_BIND_MW, IBV_WR_BIND_MW);
VALUE(V_SEND_INV, IBV_WR_SEND_WITH_INV);
VALUE(V_INLINE, IBV_SEND_INLINE);
VALUE(V_QP_PD, IBV_QP_INIT_ATTR_PD);
VALUE(V_QP_CREATE_FLAGS, IBV_QP_INIT_ATTR_CREATE_FLAGS);
VALUE(V_QP_SEND_OPS, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
VALUE(V_CQ_FLAGS, IBV_CQ_INIT_ATTR_MASK_FLAGS);
VALUE(V_CQ_PD, IBV_CQ_INIT_ATTR_MASK_PD);
VALUE(V_CQ_SINGLE_THREADED, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
#else
#pragma message "no <infiniband/verbs.h> here to hold verbs.h against"
#endif

typedef int not_empty;
