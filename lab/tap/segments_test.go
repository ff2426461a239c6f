package tap_test

import (
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/verbs"
)

// TestSameSegments: a tap, or a fault plan, leaves the segments of a stream as they are: those of long messages and short
// ones, and of what an RDMA Read asks for.
func TestSameSegments(t *testing.T) {
	const long = 1 << 20
	segments := func(t *testing.T, faults string, tp *tap.Tap, noCRC bool) map[string][]uint64 {
		var mu sync.Mutex
		sent := map[string][]uint64{}
		c := rnictest.Config{Loopback: true, Faults: faults, Recvs: 2, RecvSize: long}
		c.CM.NoCRC = noCRC
		if tp != nil {
			c.RNIC.Tap = tp
		}
		c.RNIC.Trace = func(r verbs.Record) {
			if r.Kind == verbs.RecordSent {
				mu.Lock()
				defer mu.Unlock()
				sent[r.Name] = append(sent[r.Name], r.Octets)
			}
		}
		a, b := rnictest.Pair(t, c)
		_, mr := a.Memory(long)
		_, there := b.Memory(long)
		run := func(r verbs.Request) {
			a.Post(r)
			require.NoError(t, a.Wait().Err())
		}
		read := verbs.Request{Op: verbs.OpRead, Local: mr.SGE(0, long), Remote: there.Remote(0)}
		for range 8 { // TCP settles its segment size, either way
			run(verbs.Request{Op: verbs.OpWrite, SGL: mr.All(), Remote: there.Remote(0)})
			run(read)
		}
		mu.Lock()
		clear(sent)
		mu.Unlock()
		run(verbs.Request{SGL: mr.All()})
		run(verbs.Request{SGL: mr.SGL(0, 100)})
		run(read)
		require.NoError(t, a.NIC.Close())
		require.NoError(t, b.NIC.Close())
		return sent
	}
	for _, noCRC := range []bool{false, true} {
		bare := segments(t, "", nil, noCRC)
		require.Greater(t, len(bare["Send"]), 30)
		require.Greater(t, len(bare["ReadResponse"]), 30)
		tp := tap.New(io.Discard, tap.Config{})
		requireAlike(t, bare, segments(t, "", tp, noCRC))
		require.NoError(t, tp.Close())
		requireAlike(t, bare, segments(t, "message 1000 out: drop", nil, noCRC))
	}
}

// requireAlike: as many segments, of the same sizes, but for some octets by which that of a loopback's TCP moves.
func requireAlike(t *testing.T, want, got map[string][]uint64) {
	t.Helper()
	for name := range want {
		require.Len(t, got[name], len(want[name]), name)
		for i, n := range want[name] {
			if n > 1000 { // the last of a message has what is left
				require.InDelta(t, n, got[name][i], 32, name)
			}
		}
	}
}
