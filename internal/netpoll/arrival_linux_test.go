package netpoll

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leveled is a Member without a descriptor.
type leveled struct{ on func() bool }

func (l *leveled) Drive(Ready) bool { return l.on() }
func (*leveled) Flush(bool)         {}

// TestArrivalBehindFruitlessDrive: what arrives between a Drive that finds nothing and the look at what the stream is ready
// for then is on the list before it is told. It wakes the server all the same.
func TestArrivalBehindFruitlessDrive(t *testing.T) {
	g := newGroup(t)
	var s *Socket
	var drives atomic.Int64
	m := &leveled{}
	m.on = func() bool {
		if drives.Add(1) == 1 {
			s.level.Store(uint32(In)) // as it comes; told below
			return false
		}
		s.level.Store(0)
		return true
	}
	s, err := g.Add(none, m)
	require.NoError(t, err)
	t.Cleanup(s.Remove)
	s.Begin()
	until(t, g, BackgroundPoller)
	s.level.Store(uint32(In))
	s.arrived()
	require.Eventually(t, func() bool { return drives.Load() == 1 && g.now().has(soon) }, patience, time.Millisecond)
	s.arrived()
	require.Eventually(t, func() bool { return drives.Load() == 2 }, patience, time.Millisecond)
}
