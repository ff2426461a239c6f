//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
	send := uabi.SendWR{WRID: 1, Opcode: uabi.WRSend}
	uv(client, uabi.CmdPostSend, &uabi.PostSend{
		Response: client.resp(), QPHandle: client.handle(cqp), WRCount: 1, WQESize: uint32(len(umem.Bytes(&send))),
	}, 4, umem.Bytes(&send)...)
	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)
	assert.Equal(t, s, server.expect(uabi.CMEventDisconnected).ID)
	assert.Equal(t, verbs.StateRTS, server.state(sqp), "nothing has ended it")
	recv := uabi.RecvWR{WRID: 2}
	uv(server, uabi.CmdPostRecv, &uabi.PostRecv{
		Response: server.resp(), QPHandle: server.handle(sqp), WRCount: 1, WQESize: uint32(len(umem.Bytes(&recv))),
	}, 4, umem.Bytes(&recv)...)
	client.expect(uabi.CMEventDisconnected)
	<-d.uv.QP(sqp).Verbs().Done()
	wc := make([]byte, 8+len(umem.Bytes(&uabi.WC{})))
	uv(server, uabi.CmdPollCQ, &uabi.PollCQ{Response: server.resp(), CQHandle: server.cq, NE: 1}, len(wc))
	assert.EqualValues(t, uabi.WCSuccess, got[struct {
		uabi.PollCQResp
		uabi.WC
	}](server).Status)
	assert.EqualValues(t, 2, server.destroy(s), "ESTABLISHED, DISCONNECTED")
	assert.Zero(t, server.tokens())
}
