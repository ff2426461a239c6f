//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// TestLeaving: a program without receives is told that the peer has disconnected, though a Send is before; the Send is there for a
// receive that comes after all, and the end is told once.
func TestLeaving(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	c, s, cqp, sqp := pair(client, server)
	client.posts(cqp, uabi.WRSend)
	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)
	assert.Equal(t, s, server.expect(uabi.CMEventDisconnected).ID)
	assert.Equal(t, verbs.StateRTS, server.state(sqp), "nothing has ended it")
	recv := uabi.RecvWR{WRID: 2}
	uv(server, uabi.CmdPostRecv, &uabi.PostRecv{
		Response: server.resp(), QPHandle: server.handle(sqp), WRCount: 1, WQESize: uint32(len(umem.Bytes(&recv))),
	}, 4, umem.Bytes(&recv)...)
	client.expect(uabi.CMEventDisconnected)
	<-d.uv.QP(sqp).Verbs().Done()
	server.completes(uabi.WCSuccess)
	assert.EqualValues(t, 2, server.destroy(s), "ESTABLISHED, DISCONNECTED")
	assert.Zero(t, server.tokens())
}

// posts posts a request of nothing.
func (p *program) posts(qpn, opcode uint32) {
	w := uabi.SendWR{WRID: 1, Opcode: opcode}
	uv(p, uabi.CmdPostSend, &uabi.PostSend{
		Response: p.resp(), QPHandle: p.handle(qpn), WRCount: 1, WQESize: uint32(len(umem.Bytes(&w))),
	}, 4, umem.Bytes(&w)...)
}

// completes waits for a completion with that status.
func (p *program) completes(status uint32) {
	p.t.Helper()
	var r struct {
		uabi.PollCQResp
		uabi.WC
	}
	require.Eventually(p.t, func() bool {
		uv(p, uabi.CmdPollCQ, &uabi.PollCQ{Response: p.resp(), CQHandle: p.cq, NE: 1}, len(umem.Bytes(&r)))
		r = got[struct {
			uabi.PollCQResp
			uabi.WC
		}](p)
		return r.Count == 1
	}, 30*time.Second, time.Millisecond)
	assert.EqualValues(p.t, status, r.Status)
}

// TestLeavesASend: a program that has disconnected posts no receive any more, so that a Send which waits for one does not hold up
// the end for as long as a close may take, though an RDMA Read waits for its answer behind the Send.
func TestLeavesASend(t *testing.T) {
	d := newDevice(t)
	d.ucm.Patient(time.Hour)
	client, server := d.program(), d.program()
	c, s, cqp, sqp := pair(client, server)
	server.posts(sqp, uabi.WRSend)
	client.posts(cqp, uabi.WRRDMARead)
	uv(client, uabi.CmdModifyQP, &uabi.ModifyQP{QPHandle: client.handle(cqp), AttrMask: uabi.QPState, QPState: uabi.QPSSQD}, 0)
	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)
	assert.Equal(t, c, client.expect(uabi.CMEventDisconnected).ID)
	assert.Equal(t, s, server.expect(uabi.CMEventDisconnected).ID)
}
