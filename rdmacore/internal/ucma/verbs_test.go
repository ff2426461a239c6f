//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// uv writes a legacy command of uverbs, which has to succeed.
func uv[T any](p *program, cmd uint32, q *T, out int, more ...byte) {
	p.t.Helper()
	body := append(append([]byte(nil), umem.Bytes(q)...), more...)
	binary.NativeEndian.PutUint32(p.arena, cmd)
	binary.NativeEndian.PutUint16(p.arena[4:], uint16((8+len(body))/4))
	binary.NativeEndian.PutUint16(p.arena[6:], uint16(out/4))
	n := 8 + copy(p.arena[8:], body)
	_, err := p.verbs.Write(p.at(0), n)
	require.NoError(p.t, err)
}

func (p *program) context() {
	p.t.Helper()
	uv(p, uabi.CmdGetContext, &uabi.GetContext{Response: p.resp()}, 8)
	async := int(got[uabi.GetContextResp](p).AsyncFD)
	p.t.Cleanup(func() { _ = unix.Close(async) })
	uv(p, uabi.CmdAllocPD, &uabi.AllocPD{Response: p.resp()}, 4)
	p.pd = got[uabi.AllocPDResp](p).PDHandle
	uv(p, uabi.CmdCreateCQ, &uabi.CreateCQ{Response: p.resp(), CQE: 64, CompChannel: -1}, 8)
	p.cq = got[uabi.CreateCQResp](p).CQHandle
}

// qp is the number of a new queue pair, in INIT.
func (p *program) qp() uint32 {
	p.t.Helper()
	uv(p, uabi.CmdCreateQP, &uabi.CreateQP{Response: p.resp(), QPConfig: uabi.QPConfig{
		PDHandle: p.pd, SendCQHandle: p.cq, RecvCQHandle: p.cq,
		MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1, QPType: uabi.QPTRC,
	}}, 32)
	r := got[uabi.CreateQPResp](p)
	p.handles[r.QPN] = r.QPHandle
	uv(p, uabi.CmdModifyQP, &uabi.ModifyQP{
		QPHandle: r.QPHandle, AttrMask: uabi.QPState | uabi.QPPkeyIndex | uabi.QPPort | uabi.QPAccessFlags, QPState: uabi.QPSInit, PortNum: 1,
		QPAccessFlags: uabi.AccessRemoteWrite | uabi.AccessRemoteRead | uabi.AccessRemoteAtomic,
	}, 0)
	return r.QPN
}

// state is that of the core's queue pair.
func (p *program) state(qpn uint32) verbs.State { return p.dev.uv.QP(qpn).Verbs().State() }

// handle is the handle of a queue pair.
func (p *program) handle(qpn uint32) uint32 { return p.handles[qpn] }
