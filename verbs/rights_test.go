package verbs_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// shared is eight octets of n with all rights.
func (n *node) shared(t testing.TB) verbs.Remote {
	word := new([1]uint64)
	mr, err := n.pd.Register(unsafe.Slice((*byte)(unsafe.Pointer(word)), 8), allRights|verbs.RemoteAtomic)
	require.NoError(t, err)
	return mr.Remote(0)
}

// TestModifyRights: a right holds from when Modify has taken it away or given it, with a stream and without one, and
// Query tells. A request without its right ends the stream.
func TestModifyRights(t *testing.T) {
	refused, granted := true, false
	for name, c := range map[string]struct {
		without, with verbs.ModifyQP
		request       func(a *node, to verbs.Remote) verbs.Request
		event         verbs.EventID
	}{
		"Read": {
			verbs.ModifyQP{NoInboundRead: &refused}, verbs.ModifyQP{NoInboundRead: &granted, NoInboundWrite: &refused, NoInboundAtomic: &refused},
			func(a *node, to verbs.Remote) verbs.Request {
				return verbs.Request{Op: verbs.OpRead, Remote: to, Local: a.mr.SGE(0, 8)}
			}, verbs.EventReadNotEnabled,
		},
		"Write": {
			verbs.ModifyQP{NoInboundWrite: &refused}, verbs.ModifyQP{NoInboundRead: &refused, NoInboundWrite: &granted, NoInboundAtomic: &refused},
			func(a *node, to verbs.Remote) verbs.Request {
				return verbs.Request{Op: verbs.OpWrite, Remote: to, SGL: a.mr.SGL(0, 8)}
			}, verbs.EventWriteNotEnabled,
		},
		"Atomic": {
			verbs.ModifyQP{NoInboundAtomic: &refused}, verbs.ModifyQP{NoInboundRead: &refused, NoInboundWrite: &refused, NoInboundAtomic: &granted},
			func(_ *node, to verbs.Remote) verbs.Request {
				return verbs.Request{Op: verbs.OpFetchAdd, Remote: to, Atomic: verbs.FetchAdd(1)}
			}, verbs.EventAtomicNotEnabled,
		},
	} {
		for _, early := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				config := verbs.QPConfig{Extensions: true, ReadIntoLocal: true, IRD: 4, ORD: 4}
				a, b := newNode(t, config), newNode(t, config)
				to := b.shared(t)
				events := make(chan verbs.Event, 4)
				require.NoError(t, b.nic.SetEventHandler(func(e verbs.Event) { events <- e }))
				modify := func(m verbs.ModifyQP) {
					m.Next = b.qp.State()
					require.NoError(t, b.qp.Modify(m))
				}
				post := func() verbs.Completion {
					require.NoError(t, second(a.qp.PostSend(c.request(a, to))))
					return waitOne(t, a.cq)
				}
				if early {
					modify(c.with)
				}
				join(t, a.qp, b.qp, false)
				require.NoError(t, post().Err())
				modify(c.with)
				require.NoError(t, post().Err())
				modify(c.without)
				q, err := b.qp.Query()
				require.NoError(t, err)
				assert.True(t, q.NoInboundRead && q.NoInboundWrite && q.NoInboundAtomic)
				require.NoError(t, second(a.qp.PostSend(c.request(a, to))))
				assert.Equal(t, verbs.Event{ID: c.event, QP: b.qp.ID()}, bare(<-events))
				<-b.qp.Done()
				m := c.with
				m.Next = verbs.StateIdle
				assert.ErrorIs(t, b.qp.Modify(m), verbs.ErrInvalidModifier, "from Error to Idle")
			})
		}
	}
}
