//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// TestPlaced: with the RoCE presentation a Write that has completed has been placed: the peer finds it though
// nobody polls there.
func TestPlaced(t *testing.T) {
	a, b := pair(t, Config{RoCE: true}, allRights)
	for i := range 300 {
		a.fill(0, []byte{byte(i), byte(i >> 8)})
		w := rdma(signaled(uabi.WRRDMAWrite, i), b, 1000)
		a.posted(w, a.sge(0, 2))
		w.SendFlags, w.WRID = 0, 1<<40
		a.posted(w, a.sge(0, 2))
		c := a.one()
		assert.Equal(t, [2]uint64{uint64(i), uabi.WCRDMAWrite}, [2]uint64{c.WRID, uint64(c.Opcode)})
		assert.Equal(t, []byte{byte(i), byte(i >> 8)}, b.read(1000, 2))
		a.posted(rdma(signaled(uabi.WRRDMARead, i), b, 1000), a.sge(64, 2))
		c = a.one()
		assert.Equal(t, [2]uint64{uint64(i), uabi.WCRDMARead}, [2]uint64{c.WRID, uint64(c.Opcode)})
	}
}

// TestPlacedFull: as many Writes as the program has asked elements for, in one list, twice.
func TestPlacedFull(t *testing.T) {
	a, b := pair(t, Config{RoCE: true}, allRights)
	for range 2 {
		n := int(a.qp.MaxSendWR)
		var wrs []uabi.SendWR
		var sges []uabi.SGE
		for i := range n {
			w := rdma(signaled(uabi.WRRDMAWrite, i), b, i)
			w.NumSGE = 1
			wrs, sges = append(wrs, w), append(sges, a.sge(i, 1))
		}
		r := must[uabi.PostResp](a.program, uabi.CmdPostSend, &uabi.PostSend{
			QPHandle: a.qp.QPHandle, WRCount: uint32(n), SGECount: uint32(n), WQESize: uint32(size[uabi.SendWR]()),
		}, umem.Octets(wrs), umem.Octets(sges))
		require.Zero(t, r.BadWR)
		for i, c := range a.wait(n) {
			assert.Equal(t, [3]uint64{uint64(i), uabi.WCRDMAWrite, uabi.WCSuccess}, [3]uint64{c.WRID, uint64(c.Opcode), uint64(c.Status)})
		}
	}
}

// TestPlacedFails: a Write that is at fault completes once, with its own status.
func TestPlacedFails(t *testing.T) {
	a, b := pair(t, Config{RoCE: true}, allRights)
	bad := a.sge(0, 8)
	bad.Lkey ^= 0xff00
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 0), bad)
	w := a.wait(1)
	assert.Equal(t, [3]uint64{1, uabi.WCRDMAWrite, uabi.WCLocProtErr}, [3]uint64{w[0].WRID, uint64(w[0].Opcode), uint64(w[0].Status)})
	assert.Empty(t, a.poll(4))
}

// TestSinkWithoutRemoteWrite: programs written for InfiniBand do not give it to the sink of a Read; the peer has no
// more of it than before.
func TestSinkWithoutRemoteWrite(t *testing.T) {
	a, b := pair(t, Config{}, uabi.AccessLocalWrite|uabi.AccessRemoteRead)
	b.fill(8, []byte("read"))
	a.posted(rdma(signaled(uabi.WRRDMARead, 1), b, 8), a.sge(0, 4))
	a.one()
	assert.Equal(t, "read", string(a.read(0, 4)))
	b.posted(rdma(signaled(uabi.WRRDMAWrite, 2), a, 0), b.sge(0, 4))
	assert.EqualValues(t, uabi.EventQPAccessErr, a.async().EventType)
	assert.Equal(t, "read", string(a.read(0, 4)))
}
