package vipl

import (
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/test/abbench"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// verbsEnd is a queue pair that is connected.
type verbsEnd struct {
	b  *testing.B
	cq *verbs.CQ
	qp *verbs.QP
	mr *verbs.MR
}

func newVerbsEnd(b *testing.B) *verbsEnd {
	nic, err := verbs.Open(verbs.Config{})
	must(b, err)
	b.Cleanup(func() { _ = nic.Close() })
	pd, err := nic.AllocatePD()
	must(b, err)
	e := &verbsEnd{b: b}
	e.cq, err = nic.CreateCQ(verbs.CQConfig{Entries: 64})
	must(b, err)
	e.qp, err = nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: e.cq, RecvCQ: e.cq})
	must(b, err)
	e.mr, err = pd.Register(make([]byte, 2*pingSize), verbs.LocalRead|verbs.LocalWrite)
	must(b, err)
	return e
}

func (e *verbsEnd) postRecv() {
	_, err := e.qp.PostRecv(verbs.Recv{SGL: e.mr.SGL(0, pingSize)})
	must(e.b, err)
}

func (e *verbsEnd) postSend() {
	_, err := e.qp.PostSend(verbs.Request{Flags: verbs.Unsignaled, SGL: e.mr.SGL(pingSize, pingSize)})
	must(e.b, err)
}

// poll polls until something has come.
func (e *verbsEnd) poll() {
	var wc [1]verbs.Completion
	for e.cq.Poll(wc[:]) == 0 {
	}
	if wc[0].Status != verbs.StatusSuccess {
		e.b.Error(wc[0].Status)
	}
}

// verbsPing measures round trips between two programs that poll.
func verbsPing(b *testing.B) func() time.Duration {
	x, y := newVerbsEnd(b), newVerbsEnd(b)
	p, q := plainPair(b)
	must(b, y.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &verbs.StreamConfig{Conn: q, Role: mpa.Responder}}))
	must(b, x.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &verbs.StreamConfig{Conn: p, Role: mpa.Initiator}}))
	turn := make(chan struct{})
	b.Cleanup(func() { close(turn) })
	y.postRecv()
	go func() {
		for range turn {
			y.poll()
			y.postRecv()
			y.postSend()
		}
	}()
	ping := abbench.Timed(func() {
		x.postRecv()
		x.postSend()
		x.poll()
	})
	return func() time.Duration {
		turn <- struct{}{}
		return ping()
	}
}
