package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// Completion notifications, heard.

// bell is a completion event handler that a case listens to.
type bell struct {
	n     *node
	id    verbs.HandlerID
	calls chan *verbs.CQ
	other *verbs.CQ // of the same handler, for silent
}

func (n *node) bell() *bell {
	b := &bell{n: n, calls: make(chan *verbs.CQ, 1024)}
	b.id = must(n.nic.AddCompletionHandler(func(c *verbs.CQ) { b.calls <- c }))(n.t, "Set Completion Event Handler")
	b.other = b.cq(64)
	return b
}

// cq is a CQ of the handler.
func (b *bell) cq(entries int) *verbs.CQ {
	return must(b.n.nic.CreateCQ(verbs.CQConfig{Entries: entries, Handler: b.id}))(b.n.t, "Create CQ")
}

// silent says that no call is on its way: the handler is called in order, and the next
// call is one that this makes happen.
func (b *bell) silent() {
	notify(b.n.t, b.other, verbs.NotifyNext)
	require.NoError(b.n.t, b.n.flush(b.other, 1).Destroy())
	b.rings(b.other)
	<-b.other.Events()
	b.other.Poll(make([]verbs.Completion, 64))
}

// once says that there is one call about that CQ and no other.
func (b *bell) once(cq *verbs.CQ) {
	b.rings(cq)
	b.silent()
}

// notify is Request Completion Notification.
func notify(t *conformance.T, cq *verbs.CQ, k verbs.NotifyType) {
	require.NoError(t, cq.Notify(k), "Request Completion Notification")
}

// adds has a Send complete, which is on the CQ then.
func (l *line) adds(id uint64) {
	post(l.t, l.qp, l.aSend(id))
	l.heard()
	require.NoError(l.t, l.qp.Drain(l.t.Context()))
}

// gets has the peer send, with a control octet, and a receive complete.
func (l *line) gets(control byte) {
	var inv uint32
	if control == opSendInv || control == opSendSEInv {
		inv = uint32(l.register(8, allRights).STag())
	}
	postRecv(l.t, l.qp, verbs.Recv{ID: 7})
	l.tell(untagged(lastUntagged, control, inv, 0, l.nextSend(), 0, nil))
	l.settle()
}

// notified is a line both of whose queues have a CQ of a bell.
func (n *node) notified(b *bell) (*line, *verbs.CQ) {
	cq := b.cq(512)
	return n.line(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}), cq
}
