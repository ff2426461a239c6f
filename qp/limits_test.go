package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// TestEmptyLastSegment ends a Read Response with an empty segment, whose STag is
// not looked at (RFC 5041 5.2).
func TestEmptyLastSegment(t *testing.T) {
	r := newRig(t, setup{})
	r.postSend(wr.Request{ID: 1, Op: wr.OpRead, Local: r.full.sge(readTO, readSize), Remote: wr.Remote{STag: 5, TO: 6}})
	r.next()
	r.send(halfResponse(readSize)(r)...)
	r.full.expect(readTO, filled(readSize))
	r.send(rawpeer.ReadResponse(0xDEAD, 0, nil).Octets())
	require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.scq, 1))
	r.requireMemory()
	require.Equal(t, wr.StateRTS, r.q.State())
}

// TestORDIsCappedByThePeer refuses to raise ORD above what was agreed (RFC 6581
// 9.1).
func TestORDIsCappedByThePeer(t *testing.T) {
	r := newRig(t, setup{stream: func(s *mpa.Stream) { s.Enhanced, s.IRD, s.ORD = true, 4, 1 }})
	set := func(ord int) error { return r.q.Modify(Modify{Next: wr.StateRTS, ORD: &ord}) }
	require.Equal(t, 1, r.q.Query().ORD)
	require.ErrorIs(t, set(2), wr.ErrORDExceeded)
	require.Equal(t, 1, r.q.Query().ORD)
	require.NoError(t, set(0))
	require.NoError(t, set(1))
}

func TestDestroyedSaysSo(t *testing.T) {
	r := newRig(t, setup{})
	require.NoError(t, r.q.Destroy())
	_, err := r.q.PostSend(wr.Request{})
	require.ErrorIs(t, err, wr.ErrInvalidQP)
	_, err = r.q.PostRecv(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrInvalidQP)
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateIdle}), wr.ErrInvalidQP)
}
