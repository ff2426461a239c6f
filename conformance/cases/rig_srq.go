package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// Receives of an S-RQ, and messages that use them up.

// receives posts receives with these IDs to an S-RQ, of 64 octets each.
func (n *node) receives(s *verbs.SRQ, ids ...uint64) {
	for _, id := range ids {
		postRecv(n.t, s, n.receive(id))
	}
}

func (n *node) receive(id uint64) verbs.Recv {
	return verbs.Recv{ID: id, SGL: n.mr.SGL(int(64*id), 64)}
}

// upTo are the numbers from one to another.
func upTo(from, to uint64) (ids []uint64) {
	for ; from <= to; from++ {
		ids = append(ids, from)
	}
	return ids
}

// says has the peer send one message, which the queue pair receives with that ID.
func (l *line) says(id uint64) {
	l.say([]byte{1, 2, 3})
	completes(l.t, l.rq, l.got(id, 3))
}

// unheard has the peer send one message too many: there is no receive for it.
func (l *line) unheard() {
	u := aSend(l.nextSend(), []byte{1})
	l.tell(u)
	l.terminated(0x1202, u, false)
	l.closesTo(verbs.StateError)
	l.raised(verbs.EventRQMSNRange)
}

// armed makes a queue pair of an S-RQ whose limit Modify QP has armed.
func (n *node) armed(s *verbs.SRQ, limit int) *line {
	l := n.loose(verbs.QPConfig{SRQ: s})
	require.NoError(n.t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle, RQLimit: ptr(limit), ArmRQLimit: true}))
	l.join()
	return l
}
