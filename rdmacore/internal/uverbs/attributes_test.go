//go:build linux && (amd64 || arm64)

package uverbs

import (
	"math/bits"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// until takes a side to a state.
func (s *side) until(state uint8) {
	s.t.Helper()
	for i := uint8(uabi.QPSInit); i <= state; i++ {
		require.NoError(s.t, s.to(i))
	}
}

// TestAttributesOfAdapters: with the RoCE presentation each attribute that a change needs has to be there, and no other may. An
// RNIC takes all.
func TestAttributesOfAdapters(t *testing.T) {
	for _, state := range []uint8{uabi.QPSInit, uabi.QPSRTR, uabi.QPSRTS} {
		s, said := roceAt(t)
		s.until(state - 1)
		whole := s.whole(state)
		w := waysRC[way{state - 1, state}]
		for bit := uint32(1); bit <= uabi.QPDestQPN; bit <<= 1 {
			m := whole
			m.AttrMask ^= bit
			if bit == uabi.QPState || w.allowed&bit != 0 {
				continue
			}
			before := len(said.all())
			assert.Equal(t, syscall.EINVAL, errnoOf(t, s.modify(m)), "to %s, mask %#x", stateName(state), m.AttrMask)
			require.Len(t, said.all(), before+1)
			assert.Contains(t, said.all()[before], "IBV_QP_"+attrNames[bits.TrailingZeros32(bit)])
			assert.EqualValues(t, state-1, s.query().QPState)
		}
		whole.AttrMask |= w.allowed &^ (uabi.QPCurState | uabi.QPAltPath)
		assert.NoError(t, s.modify(whole))
		assert.EqualValues(t, state, s.query().QPState)
	}
	s := at(t, addr1)
	for _, state := range []uint8{uabi.QPSInit, uabi.QPSRTR, uabi.QPSRTS} {
		assert.NoError(t, s.modify(uabi.ModifyQP{AttrMask: uabi.QPState | uabi.QPQkey, QPState: state}))
	}
	require.NoError(t, s.to(uabi.QPSErr))
}

// TestValuesOfAdapters: values that are none.
func TestValuesOfAdapters(t *testing.T) {
	for name, c := range map[string]struct {
		state  uint8
		change func(*uabi.ModifyQP)
		says   string
	}{
		"no GRH":             {uabi.QPSRTR, func(m *uabi.ModifyQP) { m.Dest.IsGlobal = 0 }, "is_global"},
		"another GID":        {uabi.QPSRTR, func(m *uabi.ModifyQP) { m.Dest.SGIDIndex = 1 }, "sgid_index 1"},
		"no MTU":             {uabi.QPSRTR, func(m *uabi.ModifyQP) { m.PathMTU = 0 }, "path_mtu 0"},
		"an MTU in octets":   {uabi.QPSRTR, func(m *uabi.ModifyQP) { m.PathMTU = 6 }, "path_mtu 6"},
		"too many Reads":     {uabi.QPSRTR, func(m *uabi.ModifyQP) { m.MaxDestRdAtomic = maxReads + 1 }, "max_dest_rd_atomic 129"},
		"too many own Reads": {uabi.QPSRTS, func(m *uabi.ModifyQP) { m.MaxRdAtomic = maxReads + 1 }, "max_rd_atomic 129"},
		"unknown rights":     {uabi.QPSInit, func(m *uabi.ModifyQP) { m.QPAccessFlags = 1 << 10 }, "qp_access_flags 0x400"},
		"another P_Key":      {uabi.QPSInit, func(m *uabi.ModifyQP) { m.PkeyIndex = 1 }, "pkey_index 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, said := roceAt(t)
			s.until(c.state - 1)
			m := s.whole(c.state)
			c.change(&m)
			assert.Equal(t, syscall.EINVAL, errnoOf(t, s.modify(m)))
			require.Len(t, said.all(), 1)
			assert.Contains(t, said.all()[0], c.says)
			assert.NoError(t, s.modify(s.whole(c.state)))
		})
	}
}

// TestAttributesOfDatagrams are those of UD queue pairs.
func TestAttributesOfDatagrams(t *testing.T) {
	for w, a := range waysUD {
		q := &QP{ud: newDatagrams()}
		assert.NoError(t, q.wrongAttributes(&uabi.ModifyQP{AttrMask: a.needed | uabi.QPState, QPState: w.to}, w.from))
		assert.Error(t, q.wrongAttributes(&uabi.ModifyQP{AttrMask: a.needed | uabi.QPState | uabi.QPTimeout, QPState: w.to}, w.from))
		if a.needed != 0 {
			assert.Error(t, q.wrongAttributes(&uabi.ModifyQP{AttrMask: uabi.QPState, QPState: w.to}, w.from))
		}
	}
}

// TestRemoteStatus: what the peer refuses has the status of adapters: of memory, of a queue pair's rights, of the request.
func TestRemoteStatus(t *testing.T) {
	for name, c := range map[string]struct {
		rights  uint32 // of the peer's queue pair
		request func(a, b *side) uabi.SendWR
		want    uint32
	}{
		"Write, another key": {allRights, func(_, b *side) uabi.SendWR {
			w := rdma(signaled(uabi.WRRDMAWrite, 1), b, 0)
			w.CompareAdd ^= 0x100
			return w
		}, uabi.WCRemAccessErr},
		"Read, beyond": {allRights, func(_, b *side) uabi.SendWR { return rdma(signaled(uabi.WRRDMARead, 1), b, sideBytes) }, uabi.WCRemAccessErr},
		"Read, no right": {uabi.AccessRemoteWrite, func(_, b *side) uabi.SendWR {
			return rdma(signaled(uabi.WRRDMARead, 1), b, 0)
		}, uabi.WCRemInvReqErr},
		"Write, no right": {uabi.AccessRemoteRead, func(_, b *side) uabi.SendWR {
			return rdma(signaled(uabi.WRRDMAWrite, 1), b, 0)
		}, uabi.WCRemAccessErr},
		"Atomic, not aligned": {allRights, func(_, b *side) uabi.SendWR {
			w := signaled(uabi.WRAtomicFetchAndAdd, 1)
			w.RemoteAddr, w.KeyOf = b.mem+1, uint64(b.mr.Rkey)
			return w
		}, uabi.WCRemOpErr}, // RFC 7306 8.2 has a catastrophe of it
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := rnrPair(t, RNRForever, 12)
			require.NoError(t, b.modify(uabi.ModifyQP{AttrMask: uabi.QPAccessFlags, QPAccessFlags: c.rights}))
			a.posted(c.request(a, b), a.sge(0, 8))
			assert.EqualValues(t, c.want, a.wait(1)[0].Status)
		})
	}
}

// TestTooLong: a message that does not fit its receive.
func TestTooLong(t *testing.T) {
	a, b, _ := rnrPair(t, RNRForever, 12)
	_, err := b.recv(1, b.sge(0, 8))
	require.NoError(t, err)
	a.posted(signaled(uabi.WRSend, 1), a.sge(0, 9))
	assert.EqualValues(t, uabi.WCLocLenErr, b.wait(1)[0].Status)
}
