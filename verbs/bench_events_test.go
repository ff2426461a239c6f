package verbs_test

import (
	"net"
	"testing"

	"github.com/softrnic/softrnic/internal/test/abbench"
	"github.com/softrnic/softrnic/verbs"
)

// await is a way to wait for one completion at n.
type await func(l *loopPair, n *node, wc []verbs.Completion) error

func byWait(l *loopPair, n *node, wc []verbs.Completion) error {
	_, err := n.cq.Wait(l.b.Context(), wc)
	return err
}

// byEvents asks for a notification, polls, and waits for the token, as the draft has it.
func byEvents(l *loopPair, n *node, wc []verbs.Completion) error {
	for {
		if err := n.cq.Notify(verbs.NotifyNext); err != nil {
			return err
		}
		if n.cq.Poll(wc) > 0 {
			return nil
		}
		select {
		case <-n.cq.Events():
		case <-l.b.Context().Done():
			return l.b.Context().Err()
		}
		if n.cq.Poll(wc) > 0 {
			return nil
		}
	}
}

// byWaitEvent is the same without the channel: what is there need not be polled for between.
func byWaitEvent(l *loopPair, n *node, wc []verbs.Completion) error {
	for {
		armed, err := n.cq.Arm(verbs.NotifyNext)
		if armed && err == nil {
			err = n.cq.WaitEvent(l.b.Context())
		}
		if err != nil || n.cq.Poll(wc) > 0 {
			return err
		}
	}
}

// BenchmarkLoopNotify is requests and replies, each end behind what the name says, on so
// many active connections in turn.
func BenchmarkLoopNotify(b *testing.B) {
	for _, c := range []struct {
		name  string
		conns int
		by    await
	}{
		{"wait", 1, byWait},
		{"wait16", 16, byWait},
		{"waitevent", 1, byWaitEvent},
		{"waitevent16", 16, byWaitEvent},
		{"events", 1, byEvents},
		{"events16", 16, byEvents},
	} {
		b.Run(c.name, func(b *testing.B) { loopNotify(b, c.conns, c.by) })
	}
}

func loopNotify(b *testing.B, n int, by await) {
	l := newLoopPair(b)
	qps, conns := []*verbs.QP{l.x.qp}, []net.Conn{l.p}
	peers := map[verbs.QPID]*verbs.QP{l.y.qp.ID(): l.y.qp}
	echo := func(c net.Conn) {
		arrived(c, func(p []byte) { _, _ = c.Write(p) })
	}
	echo(l.q)
	for len(qps) < n {
		x, y := l.x.newQP(b, verbs.QPConfig{}), l.y.newQP(b, verbs.QPConfig{})
		join(b, x, y, false)
		for range 4 {
			l.postRecv(l.y, y)
		}
		p, q := plainPair(b)
		echo(q)
		qps, conns, peers[y.ID()] = append(qps, x), append(conns, p), y
	}
	go func() {
		var wc [1]verbs.Completion
		for by(l, l.y, wc[:]) == nil && wc[0].Status == verbs.StatusSuccess {
			l.postRecv(l.y, peers[wc[0].QP])
			l.postSend(l.y, peers[wc[0].QP], verbs.Unsignaled)
		}
	}()
	turns := 0
	abbench.Run(b, "conn", abbench.Timed(func() {
		turns++
		qp := qps[turns%n]
		l.postRecv(l.x, qp)
		l.postSend(l.x, qp, verbs.Unsignaled)
		must(b, by(l, l.x, l.wc[:]))
	}), abbench.Timed(func() {
		turns++
		l.write(conns[turns%n])
		l.read(conns[turns%n])
	}))
}
