//go:build !race

package qp

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestReceiveAllocatesNothing posts, receives and reaps a message, with each
// source of receives, and with a pause before each message (under the race
// detector pools drop items on purpose).
func TestReceiveAllocatesNothing(t *testing.T) {
	for _, sharing := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("S-RQ=%v,late=%v", sharing, late), func(t *testing.T) {
				const runs, warm = 300, 100
				var shared *sharedQueue
				if sharing {
					shared = newShared(t, ownPD)
				}
				r := newRig(t, graceful(setup{}, shared))
				var fpdus [][]byte
				for msn := range uint32(runs + warm + 1) { // AllocsPerRun runs once more
					fpdus = append(fpdus, r.peer.Frame(rawpeer.Send(msn+1, filled(40)).Octets()))
				}
				post := r.q.PostRecv
				if sharing {
					post = shared.Post
				}
				list := []wr.Recv{{ID: 1, SGL: r.full.sgl(0, 64)}}
				var c [1]wr.Completion
				one := func() {
					if !late {
						_, _ = post(list...)
					}
					_, _ = r.peer.Conn.Write(fpdus[0])
					fpdus = fpdus[1:]
					if late {
						for !r.s.rx.locked(func(rx *receiver) bool { return rx.in.kept != nil }) {
							r.rcq.Poll(c[:])
							runtime.Gosched()
						}
						_, _ = post(list...)
					}
					for r.rcq.Poll(c[:]) == 0 {
						runtime.Gosched()
					}
				}
				for range warm {
					one()
				}
				// An average, rounded down: a garbage collection may empty a pool.
				assert.Zero(t, testing.AllocsPerRun(runs, one))
				require.Equal(t, wr.StatusSuccess, c[0].Status)
				require.Equal(t, wr.StateRTS, r.q.State())
			})
		}
	}
}
