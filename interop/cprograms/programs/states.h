/* The states of a queue pair that is brought up by hand, with ibv_modify_qp: what each change sets. */
#ifndef STATES_H
#define STATES_H

#include "must.h"

enum { REMOTE_RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

/* What the two changes behind INIT say of lost packets and of a receiver without receives. */
struct patience {
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
};

static const struct patience retries = {.timeout = 14, .retry_cnt = 3, .rnr_retry = 7, .min_rnr_timer = 12};

static inline struct ibv_qp_attr to_init(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = REMOTE_RIGHTS,
	};
}

enum {
	INIT_MASK = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RTS_MASK = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

static inline struct ibv_qp_attr to_rtr(const union ibv_gid *to, uint32_t qpn, struct patience p)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = qpn, .max_dest_rd_atomic = 4, .min_rnr_timer = p.min_rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *to, .hop_limit = 1}},
	};
}

static inline struct ibv_qp_attr to_rts(struct patience p)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = p.timeout, .retry_cnt = p.retry_cnt, .rnr_retry = p.rnr_retry, .max_rd_atomic = 4,
	};
}

static inline void bring(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask) { MUST((errno = ibv_modify_qp(qp, &attr, mask)) == 0); }

static inline void bring_to_init(struct ibv_qp *qp) { bring(qp, to_init(), INIT_MASK); }

static inline void bring_to_rtr(struct ibv_qp *qp, const union ibv_gid *to, uint32_t qpn, struct patience p) { bring(qp, to_rtr(to, qpn, p), RTR_MASK); }

static inline void bring_to_rts(struct ibv_qp *qp, struct patience p) { bring(qp, to_rts(p), RTS_MASK); }

#endif
