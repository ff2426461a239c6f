package verbs

import (
	"github.com/softrnic/softrnic/qp"
)

// silent is the error of a wait that its context has ended. If a queue pair of the CQ has a stream on which the program
// that dialled has to speak first, and has not, it says so: both sides would wait for ever (RFC 5044 7.1.2).
func (c *CQ) silent(err error) error {
	c.rnic.mu.Lock()
	defer c.rnic.mu.Unlock()
	for q := range c.tied {
		why := Reason{Err: err, QP: q.ID(), Rule: "RFC 5044 7.1.2"}
		switch q.q.FirstToSpeak() {
		case qp.ThisSide:
			why.What = "this side dialled, and the peer may send nothing before this side has"
			why.Remedy = "send first there, if only an empty RDMA Write; or dial with revision 2, peer to peer"
		case qp.PeerSide:
			why.What = "this side accepted, and its posts wait for the dialling side's first message"
			why.Remedy = "have the program there send first, or dial with revision 2 and cm.PeerToPeer"
		case qp.EitherSide:
			continue
		}
		return &why
	}
	return err
}

// tie makes the CQ know a work queue's queue pair, with rnic.mu held.
func (c *CQ) tie(q *QP) {
	c.refs++
	if c.tied == nil {
		c.tied = map[*QP]struct{}{}
	}
	c.tied[q] = struct{}{}
}
