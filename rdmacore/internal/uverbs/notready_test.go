//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// roceAt is a side of a RoCE device, with what its user is told.
func roceAt(t testing.TB) (*side, *told) {
	t.Helper()
	said := &told{}
	return newSide(started(t, Config{Addr: addr1, RoCE: true, CRC: true, Report: said.report}), allRights), said
}

// raiseRNR is raise with what both ends say of a receiver without receives.
func (s *side) raiseRNR(peer *side, retries, timer uint8) {
	s.t.Helper()
	require.NoError(s.t, s.to(uabi.QPSInit))
	m := s.whole(uabi.QPSRTR)
	m.DestQPNum, m.Dest.DGID, m.MinRNRTimer = peer.qp.QPN, peer.gid(), timer
	require.NoError(s.t, s.modify(m))
	m = s.whole(uabi.QPSRTS)
	m.RNRRetry = retries
	require.NoError(s.t, s.modify(m))
}

// rnrPair is two sides, of which the first allows so many retries.
func rnrPair(t *testing.T, retries, timer uint8) (a, b *side, said *told) {
	t.Helper()
	a, said = roceAt(t)
	b, _ = roceAt(t)
	a.raiseRNR(b, retries, timer)
	b.raiseRNR(a, RNRForever, timer)
	return a, b, said
}

// TestNotReady: the Send for which there is no receive says so, and the ones before it have arrived.
func TestNotReady(t *testing.T) {
	for _, retries := range []uint8{0, 1, 6} {
		a, b, said := rnrPair(t, retries, 14)
		a.fill(0, []byte("as sent"))
		for i := range uint64(2) {
			_, err := b.recv(i, b.sge(512, 8))
			require.NoError(t, err)
		}
		_, err := a.recv(20, a.sge(0, 8))
		require.NoError(t, err)
		a.posted(signaled(uabi.WRSend, 10), a.sge(0, 7))
		a.posted(uabi.SendWR{WRID: 11, Opcode: uabi.WRSend}, a.sge(0, 7))
		a.posted(rdma(signaled(uabi.WRRDMAWrite, 12), b, 0), a.sge(0, 7))
		a.posted(uabi.SendWR{WRID: 13, Opcode: uabi.WRSend}, a.sge(0, 7))
		a.posted(signaled(uabi.WRSend, 14), a.sge(0, 7))
		var order []uint64
		got := map[uint64]uint32{}
		for _, w := range a.wait(5) {
			got[w.WRID] = w.Status
			if w.WRID != 20 {
				order = append(order, w.WRID)
			}
		}
		assert.Equal(t, []uint64{10, 12, 13, 14}, order)
		assert.Equal(t, map[uint64]uint32{
			10: uabi.WCSuccess, 12: uabi.WCSuccess, 13: uabi.WCRNRRetryExcErr, 14: uabi.WCWRFlushErr, 20: uabi.WCWRFlushErr,
		}, got)
		assert.EqualValues(t, uabi.QPSErr, a.query().QPState)
		require.Len(t, said.all(), 1)
		assert.Contains(t, said.all()[0], "has posted no receive for a Send, and rnr_retry is ")
		assert.Len(t, b.wait(2), 2)
		assert.Equal(t, "as sent", string(b.read(0, 7)))
	}
}

// TestNotReadyTimes: the peer's min_rnr_timer lies between two of its words.
func TestNotReadyTimes(t *testing.T) {
	const timer = 26 // 81.92 ms
	a, _, _ := rnrPair(t, 2, timer)
	begun := time.Now()
	a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
	assert.EqualValues(t, uabi.WCRNRRetryExcErr, a.wait(1)[0].Status)
	assert.GreaterOrEqual(t, time.Since(begun), leastRNR+2*rnrTime(timer))
}

// TestNotReadyLong: a Send that is longer than what the system takes at once.
func TestNotReadyLong(t *testing.T) {
	a, b, _ := rnrPair(t, 0, 1)
	const n = 32 << 20
	mem, mr := a.region(a.pd, n, uabi.AccessLocalWrite)
	_, err := b.recv(1, b.sge(0, 8))
	require.NoError(t, err)
	a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
	a.posted(signaled(uabi.WRSend, 2), uabi.SGE{Addr: mem, Length: n, Lkey: mr.Lkey})
	w := a.wait(2)
	assert.Equal(t, [4]uint64{1, uabi.WCSuccess, 2, uabi.WCRNRRetryExcErr}, [4]uint64{w[0].WRID, uint64(w[0].Status), w[1].WRID, uint64(w[1].Status)})
}

// TestReadyLate: with 7 a Send waits for ever, and with fewer retries it does as long as they last.
func TestReadyLate(t *testing.T) {
	for _, retries := range []uint8{RNRForever, 6} {
		a, b, said := rnrPair(t, retries, 0) // 655 ms
		for i := range uint64(3) {
			a.posted(signaled(uabi.WRSend, int(i)), a.sge(0, 8))
			for end := time.Now().Add(time.Minute); b.waitsNot(); time.Sleep(time.Millisecond) { // there is no event to wait for
				require.True(t, time.Now().Before(end))
			}
			time.Sleep(3 * leastRNR) // the peer tells, once
			_, err := b.recv(i, b.sge(0, 8))
			require.NoError(t, err)
			b.one()
			assert.Equal(t, i, a.one().WRID)
		}
		assert.Empty(t, said.all())
		assert.EqualValues(t, uabi.QPSRTS, a.query().QPState)
	}
}

// waitsNot reports that no message waits for a receive.
func (s *side) waitsNot() bool {
	r := &s.verbs().ready
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since.IsZero()
}

// TestNotReadyIsTold: whoever lets a Send wait for a second is told, whatever the device presents.
func TestNotReadyIsTold(t *testing.T) {
	for _, roce := range []bool{false, true} {
		said := &told{}
		a := at(t, addr1)
		b := newSide(started(t, Config{Addr: addr2, RoCE: roce, Report: said.report}), allRights)
		a.raise(b)
		b.raise(a)
		a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
		for end := time.Now().Add(time.Minute); len(said.all()) == 0; time.Sleep(time.Millisecond) { // there is no event to wait for
			require.True(t, time.Now().Before(end))
		}
		assert.Contains(t, said.all()[0], "a Send of the peer's waits for a receive for a second")
		_, err := b.recv(1, b.sge(0, 8))
		require.NoError(t, err)
		b.one()
	}
}

func TestRNRTimes(t *testing.T) {
	assert.Equal(t, []time.Duration{655360 * time.Microsecond, 10 * time.Microsecond, 640 * time.Microsecond, 491520 * time.Microsecond},
		[]time.Duration{rnrTime(0), rnrTime(1), rnrTime(12), rnrTime(31)})
}
