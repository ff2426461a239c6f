package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestLastFaultAsVerbStops: a segment that is found bad when a verb has just ended RTS
// is one that came while closing, also if it is the last thing that came and has no
// octet in the buffer.
func TestLastFaultAsVerbStops(t *testing.T) {
	empty := func(r *rig) []byte { return r.peer.Frame(nil) }
	revoked := func(r *rig) []byte {
		fpdu := r.peer.Frame(rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), filled(100)).Octets())
		require.NoError(t, r.peer.Raw(fpdu[:30]))
		r.untilBuffered(30)
		require.True(t, r.inTransit())
		r.writable.expect(0, filled(100))
		return fpdu[30:]
	}
	for name, begin := range map[string]func(*rig) []byte{"empty": empty, "in transit": revoked} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{config: direct})
			rest := begin(r)
			rx := &r.s.rx
			rx.mu.Lock() // as deliver from here on
			want := rx.in.Buffered() + len(rest)
			require.NoError(t, r.peer.Raw(rest))
			for rx.in.Buffered() < want {
				n, _ := r.s.llp.read(&rx.in)
				rx.in.Advance(n)
			}
			ulpdu, ok, err := rx.in.Next()
			require.NoError(t, err)
			require.True(t, ok)
			require.NoError(t, r.tab.Deallocate(r.writable.stag))
			modified := make(chan error, 1)
			go func() { modified <- r.q.Modify(Modify{Next: wr.StateClosing}) }()
			require.Eventually(t, r.s.stopping.Load, patience, time.Millisecond)
			require.True(t, r.s.rx.segment(ulpdu))
			require.True(t, rx.leftOver)
			rx.in.keep(ulpdu)
			rx.in.rest()
			rx.mu.Unlock()
			require.NoError(t, <-modified)
			_ = r.peer.CloseWrite() // what would make a good end of it
			r.requireSettled(wr.StateError, wr.EventBadClose)
			r.requireMemory()
		})
	}
}
