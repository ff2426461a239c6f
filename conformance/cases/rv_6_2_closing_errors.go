package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_closing_errors is how a close goes wrong: verbs draft 6.2.5.
var rv6_2_closing_errors = []conformance.Case{
	upperCase("6.2.5/errors", closingErrors,
		"RV-6.2.5-M12", "RV-6.2.5-M18", "RV-6.2.5-M19", "PV-6.2.5-M1", "PV-6.2.5-M2", "PV-6.2.5-M3"),
	apiCase("6.2.5/error-resets", onNode(closingErrorResets), "RV-6.2.5-M15", "RV-6.2.5-M16", "RV-6.2.5-M17", "PV-6.2.5-M3"),
	upperCase("6.2.5/timeout", closingTimeout, "RV-6.2.5-M13", "RV-6.2.5-M14", "PV-6.2.5-M1"),
}

// closingErrors has all that can go wrong in a close. RV-6.2.5-M12: a lost LLP is LLP
// Connection Lost, and figure 11 has Bad Close for the rest.
func closingErrors(t *conformance.T) {
	for what, c := range named(t, "%s", map[string]struct {
		before func(*rig)
		do     func(*rig)
		event  verbs.EventID
	}{
		"a segment":                {nil, func(r *rig) { r.send(aWrite(0, 0, nil)) }, verbs.EventBadClose},
		"a part of a segment":      {nil, func(r *rig) { require.NoError(t, r.peer.Raw([]byte{0, 14})) }, verbs.EventBadClose},
		"an RDMA Read, unanswered": {func(r *rig) { r.outstandingRead(9) }, nil, verbs.EventBadClose},
		"an RDMA Read of the peer's": {func(r *rig) {
			b := r.register(upper.RegisterArgs{Len: 16 << 20, Access: allRights})
			r.send(aReadRequest(1, read{nowhere, nowhereTO, 16 << 20, b.tag(), b.at(0)}))
			r.next()
		}, nil, verbs.EventBadClose},
		"the peer resets": {
			nil, func(r *rig) { require.NoError(t, r.peer.Reset()) },
			verbs.EventLLPLost, // 6.2.5 and figure 11: a reset too
		},
	}) {
		r := open(t, twoCQs())
		r.recv(2, 16)
		if c.before != nil {
			c.before(r)
		} else {
			r.settled()
		}
		r.close()
		if c.do != nil {
			require.Equal(t, endFIN, r.gone())
			c.do(r)
		}
		q := r.ended(verbs.StateError)
		require.False(t, q.Stream)
		r.events(c.event)
		r.completionsOf(r.RecvCQ, flushedRecvs(1, 2)...)
		if what == "an RDMA Read, unanswered" {
			r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
		}
	}
}

// closingErrorResets looks at what is there when the handler is told of a bad close:
// the reset has gone out, there is no stream, and the state is Error (6.2.5: in order).
func closingErrorResets(t *conformance.T, n *node) {
	l := n.veiledLine(verbs.QPConfig{})
	conn := l.stream().Conn
	type seen struct {
		state    verbs.State
		released bool
		err      error
	}
	at := make(chan seen, 8)
	require.NoError(t, n.nic.SetEventHandler(func(e verbs.Event) {
		assert.Equal(t, verbs.Event{ID: verbs.EventBadClose, QP: l.id}, e)
		a, err := l.qp.Query()
		assert.NoError(t, err)
		_, err = l.peer.Conn.Read(make([]byte, 1))
		at <- seen{a.State, a.Stream == nil, err}
	}))
	l.modify(verbs.StateClosing)
	l.finished()
	l.tell(aSend(1, nil))
	s := receive(t, at, "there is no event")
	require.Equal(t, verbs.StateError, s.state)
	require.True(t, s.released, "Query QP has no stream")
	require.Error(t, s.err, "the peer's socket")
	released(t, conn)
	require.Error(t, l.peer.Send(aSend(2, nil)), "the stream was reset")
	require.NoError(t, n.nic.SetEventHandler(nil))
	l.again()
	l.settle()
}

func closingTimeout(t *conformance.T) {
	s := twoCQs()
	s.qp.CloseTimeout = shortly
	r := open(t, s)
	r.recv(1, 16)
	r.settled()
	r.close()
	q := r.ended(verbs.StateError)
	require.False(t, q.Stream)
	r.events(verbs.EventLLPLost)
	r.completionsOf(r.RecvCQ, flushedRecvs(1)...)
}
