package qp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// TestResetSeenByEither: the system tells one call of a reset, the other learns of
// it all the same.
func TestResetSeenByEither(t *testing.T) {
	for name, firstRead := range map[string]bool{"read": true, "write": false} {
		t.Run("first to a "+name, func(t *testing.T) {
			near, far, err := rawpeer.Pair()
			require.NoError(t, err)
			defer func() { _ = near.Close() }()
			var l llp
			require.NoError(t, l.init(near, nil))
			l.conn.Take()
			require.NoError(t, far.(*net.TCPConn).SetLinger(0))
			require.NoError(t, far.Close())

			defer l.conn.Reset()
			var in intake
			defer in.drop()
			read := func() outcome {
				for {
					if _, out := l.read(&in); out != ioAgain {
						return out
					}
				}
			}
			write := func() outcome {
				for {
					b := newBatch()
					at := len(b.Arena)
					b.Arena = append(b.Arena, 1)
					b.framed(at)
					_, out := l.write(b)
					b.free()
					if out != ioDone { // the RST may be on its way
						return out
					}
				}
			}
			if firstRead {
				require.Equal(t, ioReset, read())
				require.Equal(t, ioReset, write())
			} else {
				require.Equal(t, ioReset, write())
				require.Equal(t, ioReset, read())
			}
		})
	}
}

// TestRevokedBehindAnother: memory of a batch is gone, and nothing is written. What is in front of it is not kept.
func TestRevokedBehindAnother(t *testing.T) {
	r := newRig(t, setup{})
	b := newBatch()
	defer b.free()
	for _, s := range []*slab{r.full, r.private} {
		ref, f := r.tab.Resolve(s.stag, s.at(0), 2000, r.s.user, wr.LocalRead)
		require.Equal(t, stag.OK, f)
		require.True(t, b.Memory(ref, 0, 2000))
	}
	require.NoError(t, r.tab.Deallocate(r.private.stag))
	r.whileHeld(func() {
		n, out := r.s.llp.write(b)
		require.Zero(t, n)
		require.Equal(t, ioRevoked, out)
	})
	promptly(t, "deregistration", func() { assert.NoError(t, r.tab.Deallocate(r.full.stag)) })
}
