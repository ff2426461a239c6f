package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
)

// TestDriveTakesItsShare: of a flood of small FPDUs one Drive takes what one buffer holds, and
// leaves the rest until the others have had their turn.
func TestDriveTakesItsShare(t *testing.T) {
	r := newIdleRig(t, setup{})
	mine, theirs, err := rawpeer.Pair()
	require.NoError(t, err)
	r.start(mine, theirs)
	r.s.sock.Remove() // nobody but this test drives
	fpdu := r.peer.Frame(rawpeer.Write(0, 0, nil).Octets())
	var flood []byte
	for len(flood) < 8*mpa.RecommendedBuffer {
		flood = append(flood, fpdu...)
	}
	sent := make(chan error, 1)
	go func() { sent <- r.peer.Raw(flood) }()
	taken, most := 0, 0
	for taken < len(flood) {
		before := r.arrived()
		r.s.Drive(netpoll.In)
		got := int(r.arrived() - before)
		taken, most = taken+got, max(most, got)
	}
	require.NoError(t, <-sent)
	require.LessOrEqual(t, most, mpa.RecommendedBuffer)
	require.Greater(t, most, 2*len(fpdu), "many at a time")
}

// arrived counts the octets that the receive side has taken.
func (r *rig) arrived() (n uint64) {
	r.s.rx.mu.Lock()
	defer r.s.rx.mu.Unlock()
	return r.s.rx.in.Position() + uint64(r.s.rx.in.Buffered())
}
