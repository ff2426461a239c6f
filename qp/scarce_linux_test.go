package qp

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/exhaustion"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// TestNoDescriptorForRTS: a Modify QP that finds too few descriptors changes nothing, leaves
// the connection as it was, and says what to do. With one for the connection and two for
// the group there are enough.
func TestNoDescriptorForRTS(t *testing.T) {
	exhaustion.Run(t, func(h *exhaustion.Hoard) {
		newRig(t, setup{}) // the runtime has all that it needs now
		r := newIdleRig(t, setup{})
		mine, theirs, err := rawpeer.Pair()
		require.NoError(t, err)
		defer mine.Close()
		st := &mpa.Stream{Conn: mine}
		for few := range 3 {
			h.Leave(few)
			err := r.q.Modify(Modify{Next: wr.StateRTS, Stream: st})
			require.ErrorIs(t, err, wr.ErrInsufficientResources, "%d left", few)
			require.NotErrorIs(t, err, wr.ErrInvalidLLPStream)
			require.ErrorIs(t, err, syscall.EMFILE)
			require.ErrorContains(t, err, "too many open files")
			require.ErrorContains(t, err, "ulimit -n")
			require.Equal(t, wr.StateIdle, r.q.State())
			h.Await(few)

			require.NoError(t, mine.SetReadDeadline(time.Now().Add(time.Millisecond)))
			_, err = mine.Read(make([]byte, 1))
			require.ErrorAs(t, err, new(net.Error), "the connection's deadlines work")
			_, err = mine.Write([]byte("x"))
			require.NoError(t, err)
			_, err = io.ReadFull(theirs, make([]byte, 1))
			require.NoError(t, err)
		}
		h.Leave(3)
		r.start(mine, theirs)
		require.Equal(t, 1, h.Leave(0), "that of the connection that was taken over")
		r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 16)})
		r.send(rawpeer.Send(1, []byte("hello")).Octets())
		require.Equal(t, []comp{{1, wr.StatusSuccess, 5}}, r.wait(r.rcq, 1))
	})
}

// TestEndsWithoutDescriptors: a stream ends as it does otherwise though no descriptor is to
// be had.
func TestEndsWithoutDescriptors(t *testing.T) {
	exhaustion.Run(t, func(h *exhaustion.Hoard) {
		for name, c := range map[string]struct {
			end   func(r *rig)
			state wr.State
		}{
			"a close of both sides": {func(r *rig) {
				require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
				r.requireEnd(rawpeer.FIN)
				require.NoError(t, r.peer.CloseWrite())
			}, wr.StateIdle},
			"a close of the peer": {func(r *rig) {
				require.NoError(t, r.peer.CloseWrite())
				r.requireEnd(rawpeer.FIN)
			}, wr.StateIdle},
			"Modify to Terminate": {func(r *rig) {
				require.NoError(t, r.q.Modify(Modify{Next: wr.StateTerminate}))
				require.Equal(t, terminate(uint16(faults[faultModifyTerminate].Code), echoNone, nil), r.next())
				r.requireEnd(rawpeer.FIN)
				require.NoError(t, r.peer.CloseWrite())
			}, wr.StateError},
			"a bad segment": {func(r *rig) {
				r.send(rawpeer.Write(uint32(r.gone), 0, filled(1)).Octets())
				require.Equal(t, byte(0x47), r.next()[1], "a Terminate Message")
				r.requireEnd(rawpeer.FIN)
				require.NoError(t, r.peer.CloseWrite())
			}, wr.StateError},
			"Modify to Error": {func(r *rig) {
				require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
				_, err := r.peer.Next()
				require.ErrorIs(t, err, syscall.ECONNRESET)
			}, wr.StateError},
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, setup{})
				defer h.Leave(64)
				h.Leave(0)
				c.end(r)
				r.over()
				require.Equal(t, c.state, r.q.State())
				h.Await(3) // the connection's, and the group's
			})
		}
	})
}
