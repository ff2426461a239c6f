package verbs_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/test/abbench"
	"github.com/softrnic/softrnic/verbs"
)

// Loops that programs write, beside the same loops over net.Conn. The two take turns in
// one run (package abbench).

const loopSize = 64 // octets a message

// loopPair is two nodes that are connected, receives posted ahead at y, and two plain
// ends.
type loopPair struct {
	b    *testing.B
	x, y *node
	p, q net.Conn
	wc   [1]verbs.Completion // of x's goroutine
	buf  [loopSize]byte      // as well
}

func newLoopPair(b *testing.B) *loopPair {
	l := &loopPair{b: b, x: newNode(b, verbs.QPConfig{}), y: newNode(b, verbs.QPConfig{})}
	join(b, l.x.qp, l.y.qp, false)
	l.p, l.q = plainPair(b)
	for range 4 {
		l.postRecv(l.y, l.y.qp)
	}
	return l
}

func plainPair(b *testing.B) (p, q net.Conn) {
	p, q = tcpConns(b)
	b.Cleanup(func() { _, _ = p.Close(), q.Close() })
	return p, q
}

func (l *loopPair) postSend(n *node, qp *verbs.QP, flags verbs.Flags) {
	_, err := qp.PostSend(verbs.Request{Flags: flags, SGL: n.mr.SGL(0, loopSize)})
	must(l.b, err)
}

func (l *loopPair) postRecv(n *node, qp *verbs.QP) {
	_, err := qp.PostRecv(verbs.Recv{SGL: n.mr.SGL(loopSize, loopSize)})
	must(l.b, err)
}

func (l *loopPair) wait(n *node) {
	_, err := n.cq.Wait(l.b.Context(), l.wc[:])
	must(l.b, err)
	if l.wc[0].Status != verbs.StatusSuccess {
		l.b.Fatal(l.wc[0].Status)
	}
}

func (l *loopPair) write(c net.Conn) {
	_, err := c.Write(l.buf[:])
	must(l.b, err)
}

func (l *loopPair) read(c net.Conn) {
	_, err := io.ReadFull(c, l.buf[:])
	must(l.b, err)
}

// received calls f, in a goroutine of its own until the stream ends, for each Receive
// that completes at n.
func received(n *node, f func(verbs.Completion)) {
	go func() {
		var wc [1]verbs.Completion
		for {
			if _, err := n.cq.Wait(context.Background(), wc[:]); err != nil || wc[0].Status != verbs.StatusSuccess {
				return
			}
			if wc[0].Op == verbs.OpRecv {
				f(wc[0])
			}
		}
	}()
}

// arrived is the same for messages on c.
func arrived(c net.Conn, f func([]byte)) {
	go func() {
		var buf [loopSize]byte
		for {
			if _, err := io.ReadFull(c, buf[:]); err != nil {
				return
			}
			f(buf[:])
		}
	}()
}

// BenchmarkLoopOne posts, waits for the Receive at the other end, and waits for the
// Send, all in one goroutine.
func BenchmarkLoopOne(b *testing.B) {
	l := newLoopPair(b)
	abbench.Run(b, "conn", abbench.Timed(func() {
		l.postSend(l.x, l.x.qp, 0)
		l.wait(l.y)
		l.wait(l.x)
		l.postRecv(l.y, l.y.qp)
	}), abbench.Timed(func() {
		l.write(l.p)
		l.read(l.q)
	}))
}

// BenchmarkLoopTwo is the same with a goroutine at either end, which says by a channel
// that the message has come.
func BenchmarkLoopTwo(b *testing.B) {
	l := newLoopPair(b)
	came := make(chan struct{})
	received(l.y, func(verbs.Completion) {
		l.postRecv(l.y, l.y.qp)
		came <- struct{}{}
	})
	arrived(l.q, func([]byte) { came <- struct{}{} })
	abbench.Run(b, "conn", abbench.Timed(func() {
		l.postSend(l.x, l.x.qp, 0)
		l.wait(l.x)
		<-came
	}), abbench.Timed(func() {
		l.write(l.p)
		<-came
	}))
}

// BenchmarkLoopPaced is the way of unsignaled Sends, so many a second, from the post to
// a goroutine that waits for them.
func BenchmarkLoopPaced(b *testing.B) {
	for _, c := range []struct {
		name string
		rate time.Duration
	}{{"100", 100}, {"1000", 1000}, {"10000", 10_000}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLoopPair(b)
			came := make(chan time.Time, 1)
			received(l.y, func(verbs.Completion) {
				came <- time.Now()
				l.postRecv(l.y, l.y.qp)
			})
			arrived(l.q, func([]byte) { came <- time.Now() })
			due := time.Now()
			paced := func(send func()) func() time.Duration {
				return func() time.Duration {
					due = due.Add(time.Second / c.rate)
					for left := time.Until(due); left > 0; left = time.Until(due) {
						if left > 3*time.Millisecond { // a sleep may be a millisecond too long
							time.Sleep(left - 2*time.Millisecond)
						}
						runtime.Gosched()
					}
					begin := time.Now()
					due = begin // not two at once
					send()
					return (<-came).Sub(begin)
				}
			}
			abbench.Run(b, "conn", paced(func() { l.postSend(l.x, l.x.qp, verbs.Unsignaled) }), paced(func() { l.write(l.p) }))
		})
	}
}

// BenchmarkLoopReply is requests and replies over two connections in turn: the queue
// pairs of either end share a CQ.
func BenchmarkLoopReply(b *testing.B) {
	l := newLoopPair(b)
	qps := []*verbs.QP{l.x.qp, l.x.newQP(b, verbs.QPConfig{})}
	peers := map[verbs.QPID]*verbs.QP{l.y.qp.ID(): l.y.qp}
	other := l.y.newQP(b, verbs.QPConfig{})
	peers[other.ID()] = other
	join(b, qps[1], other, false)
	for range 4 {
		l.postRecv(l.y, other)
	}
	received(l.y, func(c verbs.Completion) {
		l.postRecv(l.y, peers[c.QP])
		l.postSend(l.y, peers[c.QP], verbs.Unsignaled)
	})
	conns := []net.Conn{l.p, nil}
	var q net.Conn
	conns[1], q = plainPair(b)
	for _, c := range []net.Conn{l.q, q} {
		arrived(c, func(p []byte) {
			_, err := c.Write(p)
			must(b, err)
		})
	}
	turns := 0
	abbench.Run(b, "conn", abbench.Timed(func() {
		turns++
		qp := qps[turns%2]
		l.postRecv(l.x, qp)
		l.postSend(l.x, qp, verbs.Unsignaled)
		l.wait(l.x)
	}), abbench.Timed(func() {
		turns++
		l.write(conns[turns%2])
		l.read(conns[turns%2])
	}))
}
