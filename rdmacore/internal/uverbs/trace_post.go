//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// Names of the ABI's numbers, for --strace.
var (
	wrNames = [...]string{
		"RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM", "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD",
		"LOCAL_INV", "BIND_MW", "SEND_WITH_INV", "TSO", "RDMA_READ_WITH_INV", "MASKED_ATOMIC_CMP_AND_SWP", "MASKED_ATOMIC_FETCH_AND_ADD",
	}
	flagNames = [...]string{"FENCE", "SIGNALED", "SOLICITED", "INLINE", "IP_CSUM"}
	wcNames   = map[uint32]string{
		uabi.WCSend: "SEND", uabi.WCRDMAWrite: "RDMA_WRITE", uabi.WCRDMARead: "RDMA_READ", uabi.WCCompSwap: "COMP_SWAP", uabi.WCFetchAdd: "FETCH_ADD",
		uabi.WCBindMW: "BIND_MW", uabi.WCLocalInv: "LOCAL_INV", uabi.WCRecv: "RECV", uabi.WCRecvRDMAWithImm: "RECV_RDMA_WITH_IMM",
	}
	statusNames = [...]string{
		"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR",
		"REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR",
		"INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR",
	}
)

// named is the name of a number, or the number.
func named(names []string, n uint32) string {
	if int64(n) < int64(len(names)) {
		return names[n]
	}
	return fmt.Sprint(n)
}

// maxTraced is how many requests or completions of one command are told.
const maxTraced = 16

// tracePost decodes a list of requests, each but its elements by one.
func tracePost(c *call, object string, least int, one func(l *list, at []byte) (string, uint32)) string {
	h := view[uabi.PostSend](c.body)
	out := fmt.Sprintf("%s=%d, ", object, h.QPHandle)
	l, err := requests(c.body, h, least)
	if err != nil {
		return out + fmt.Sprintf("wr_count=%d, sge_count=%d, wqe_size=%d", h.WRCount, h.SGECount, h.WQESize)
	}
	var all []string
	for i := range min(l.n, maxTraced) {
		s, n := one(&l, l.wrs[i*l.stride:])
		if raw, err := l.elements(n); err != nil {
			s += fmt.Sprintf(", num_sge=%d", n)
		} else if n > 0 {
			s += ", sge=[" + traceElements(raw) + "]"
		}
		all = append(all, "{"+s+"}")
	}
	if l.n > maxTraced {
		all = append(all, "...")
	}
	return out + "[" + strings.Join(all, " ") + "]"
}

// traceElements tells elements as address+length:lkey.
func traceElements(raw []byte) string {
	var out []string
	for ; len(raw) > 0; raw = raw[sgeSize:] {
		g := view[uabi.SGE](raw)
		out = append(out, fmt.Sprintf("%#x+%d:%#x", g.Addr, g.Length, g.Lkey))
	}
	return strings.Join(out, " ")
}

func traceSends(c *call) string {
	return tracePost(c, "qp", size[uabi.SendWR](), func(_ *list, at []byte) (string, uint32) {
		w := view[uabi.SendWR](at)
		s := fmt.Sprintf("wr_id=%d, %s", w.WRID, named(wrNames[:], w.Opcode))
		for i, name := range flagNames {
			if w.SendFlags&(1<<i) != 0 {
				s += ", " + name
			}
		}
		switch w.Opcode {
		case uabi.WRRDMAWrite, uabi.WRRDMAWriteWithImm, uabi.WRRDMARead:
			s += fmt.Sprintf(", remote=%#x:%#x", w.RemoteAddr, w.RDMARkey())
		case uabi.WRAtomicCmpAndSwp, uabi.WRAtomicFetchAndAdd:
			s += fmt.Sprintf(", remote=%#x:%#x, compare_add=%#x, swap=%#x", w.RemoteAddr, w.AtomicRkey(), w.CompareAdd, w.Swap)
		}
		switch w.Opcode {
		case uabi.WRRDMAWriteWithImm, uabi.WRSendWithImm:
			s += fmt.Sprintf(", imm=%x", w.Ex)
		case uabi.WRSendWithInv, uabi.WRLocalInv:
			s += fmt.Sprintf(", invalidate=%#x", binary.NativeEndian.Uint32(w.Ex[:]))
		}
		return s, w.NumSGE
	})
}

func traceRecvs(object string) func(*call) string {
	return func(c *call) string {
		return tracePost(c, object, size[uabi.RecvWR](), func(_ *list, at []byte) (string, uint32) {
			w := view[uabi.RecvWR](at)
			return fmt.Sprintf("wr_id=%d", w.WRID), w.NumSGE
		})
	}
}

// tracePolled tells the completions that a poll has brought.
func tracePolled(c *call) string {
	p, _ := umem.Load[uabi.PollCQResp](c.resp)
	var all []string
	for i := range min(uint64(p.Count), maxTraced) {
		w, _ := umem.Load[uabi.WC](c.resp + uint64(size[uabi.PollCQResp]()) + i*uint64(size[uabi.WC]()))
		s := fmt.Sprintf("wr_id=%d, ", w.WRID)
		if op, ok := wcNames[w.Opcode]; ok {
			s += op
		}
		s += ", " + named(statusNames[:], w.Status)
		if w.VendorErr != 0 {
			s += fmt.Sprintf(" (%v)", verbs.Status(w.VendorErr))
		}
		s += fmt.Sprintf(", qpn=%#x", w.QPNum)
		if w.ByteLen > 0 {
			s += fmt.Sprintf(", byte_len=%d", w.ByteLen)
		}
		if w.WCFlags&uabi.WCWithImm != 0 {
			s += fmt.Sprintf(", imm=%x", w.Ex)
		}
		all = append(all, "{"+s+"}")
	}
	if p.Count > maxTraced {
		all = append(all, "...")
	}
	return strings.Join(append([]string{fmt.Sprintf("count=%d", p.Count)}, all...), " ")
}
