package vipl

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/test/abbench"
)

// What a program does with VIs, beside the same over net.Conn, or over verbs (peers_test.go).
// The two take turns in one run (package abbench).

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

func plainPair(b *testing.B) (p, q net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	defer l.Close()
	p, err = net.Dial("tcp", l.Addr().String())
	must(b, err)
	q, err = l.Accept()
	must(b, err)
	b.Cleanup(func() { _, _ = p.Close(), q.Close() })
	return p, q
}

// benchEnd is a connected VI with a Descriptor for either queue.
type benchEnd struct {
	b          *testing.B
	h          *host
	v          *Vi
	cq         *CQ // of its receives, or nil
	send, recv *Descriptor
	out, in    DataSegment
}

func (e *benchEnd) postRecv() {
	e.recv.SetRecv(e.in)
	must(e.b, e.v.PostRecv(e.recv, e.h.dh))
}

func (e *benchEnd) postSend() {
	e.send.SetSend(e.out)
	must(e.b, e.v.PostSend(e.send, e.h.dh))
}

// sent takes the Send off, which completes with the post unless the socket is full.
func (e *benchEnd) sent() {
	if _, err := e.v.SendDone(); err != nil {
		_, err = e.v.SendWait(e.b.Context())
		must(e.b, err)
	}
}

func benchPair(b *testing.B, size int, tied bool, c Config) (x, y *benchEnd) {
	return benchPairAt(b, ServiceReliableDelivery, size, tied, c)
}

func benchPairAt(b *testing.B, level ReliabilityLevel, size int, tied bool, c Config) (x, y *benchEnd) {
	end := func() *benchEnd {
		h := newHost(b, c)
		e := &benchEnd{b: b, h: h, send: h.desc(), recv: h.desc(), out: h.data(0, size), in: h.data(size, size)}
		if tied {
			e.cq = h.cq(64)
		}
		e.v = h.vi(level, nil, e.cq)
		return e
	}
	x, y = end(), end()
	connect(b, x.h, x.v, y.h, y.v)
	return x, y
}

const pingSize = 64 // octets

// echo answers each message at y until the connection ends.
func (e *benchEnd) echo(received func() bool) {
	e.postRecv()
	go func() {
		for posted := false; received(); posted = true {
			for posted { // the last answer
				if _, err := e.v.SendDone(); err == nil {
					break
				}
				runtime.Gosched()
			}
			e.recv.SetRecv(e.in)
			e.send.SetSend(e.out)
			if e.v.PostRecv(e.recv, e.h.dh) != nil || e.v.PostSend(e.send, e.h.dh) != nil {
				return
			}
		}
	}()
}

// ping is a round trip.
func (e *benchEnd) ping(receive func()) func() {
	return func() {
		e.postRecv()
		e.postSend()
		receive()
		e.sent()
	}
}

func plainEcho(b *testing.B) func() {
	p, q := plainPair(b)
	go func() {
		var buf [pingSize]byte
		for {
			if _, err := io.ReadFull(q, buf[:]); err != nil {
				return
			}
			if _, err := q.Write(buf[:]); err != nil {
				return
			}
		}
	}()
	var buf [pingSize]byte
	return func() {
		_, err := p.Write(buf[:])
		must(b, err)
		_, err = io.ReadFull(p, buf[:])
		must(b, err)
	}
}

// BenchmarkPingRecvWait is a round trip of VIs without a CQ whose programs wait.
func BenchmarkPingRecvWait(b *testing.B) { benchRecvWait(b, ServiceReliableDelivery) }

// BenchmarkPingRecvWaitReception is the same where a Send completes with the peer's ACK.
func BenchmarkPingRecvWaitReception(b *testing.B) { benchRecvWait(b, ServiceReliableReception) }

func benchRecvWait(b *testing.B, level ReliabilityLevel) {
	x, y := benchPairAt(b, level, pingSize, false, Config{})
	y.echo(func() bool {
		d, err := y.v.RecvWait(b.Context())
		return err == nil && d.Control.Status.Errors() == 0
	})
	abbench.Run(b, "conn", abbench.Timed(x.ping(func() {
		_, err := x.v.RecvWait(b.Context())
		must(b, err)
	})), abbench.Timed(plainEcho(b)))
}

// BenchmarkPingCQWait is the same with CQs.
func BenchmarkPingCQWait(b *testing.B) {
	x, y := benchPair(b, pingSize, true, Config{})
	y.echo(func() bool {
		if _, _, err := y.cq.CQWait(b.Context()); err != nil {
			return false
		}
		d, err := y.v.RecvDone()
		return err == nil && d.Control.Status.Errors() == 0
	})
	abbench.Run(b, "conn", abbench.Timed(x.ping(func() {
		_, _, err := x.cq.CQWait(b.Context())
		must(b, err)
		_, err = x.v.RecvDone()
		must(b, err)
	})), abbench.Timed(plainEcho(b)))
}

// polled takes a receive off by CQDone in a loop.
func (e *benchEnd) polled() error {
	for {
		_, _, err := e.cq.CQDone()
		if err == nil {
			_, err = e.v.RecvDone()
			return err
		}
		if err != ErrNotDone || e.b.Context().Err() != nil { //nolint:errorlint // CQDone does not wrap it
			return err
		}
	}
}

// BenchmarkPingCQDone is a round trip of programs that poll, beside the same with verbs.
func BenchmarkPingCQDone(b *testing.B) {
	x, y := benchPair(b, pingSize, true, Config{})
	ping := verbsPing(b)
	turn := make(chan struct{}) // one pair polls at a time
	vi := abbench.Timed(x.ping(func() { must(b, x.polled()) }))
	y.postRecv()
	go func() {
		for range turn {
			must(b, y.polled())
			y.postRecv()
			y.postSend()
			y.sent()
		}
	}()
	defer close(turn)
	abbench.Run(b, "verbs", func() time.Duration {
		turn <- struct{}{}
		return vi()
	}, ping)
}

const streamSize = 64 << 10

// BenchmarkStream64K keeps 16 messages on their way.
func BenchmarkStream64K(b *testing.B) { benchStream(b, Config{}) }

// BenchmarkStream64KCRC is the same with CRCs, beside net.Conn without.
func BenchmarkStream64KCRC(b *testing.B) { benchStream(b, Config{CRC: true}) }

func benchStream(b *testing.B, c Config) {
	const depth, many = 16, 256 // messages under way, and of a step
	x, y := benchPair(b, streamSize, false, c)
	sends, recvs := make([]*Descriptor, depth), make([]*Descriptor, 2*depth)
	post := func(d *Descriptor) {
		d.SetRecv(y.in)
		must(b, y.v.PostRecv(d, y.h.dh))
	}
	for i := range sends {
		sends[i] = x.h.desc()
	}
	for i := range recvs {
		recvs[i] = y.h.desc()
		post(recvs[i])
	}
	credit, done := make(chan struct{}, depth), make(chan struct{}) // no flow control: y says what it has room for
	for range depth {
		credit <- struct{}{}
	}
	step := make(chan struct{})
	go func() {
		for range step {
			for range many {
				d, err := y.v.RecvWait(b.Context())
				if err != nil || d.Control.Status.Errors() != 0 {
					return
				}
				post(d)
				credit <- struct{}{}
			}
			done <- struct{}{}
		}
	}()
	defer close(step)
	p, q := plainPair(b)
	src, dst := make([]byte, streamSize), make([]byte, streamSize)
	plain := make(chan struct{})
	go func() {
		for range plain {
			for range many {
				if _, err := io.ReadFull(q, dst); err != nil {
					return
				}
			}
			done <- struct{}{}
		}
	}()
	defer close(plain)
	abbench.Run(b, "conn", abbench.Timed(func() {
		step <- struct{}{}
		posted := 0
		for i := range many {
			<-credit
			if posted == depth {
				d, err := x.v.SendDone()
				if err != nil {
					d, err = x.v.SendWait(b.Context())
				}
				must(b, err)
				sends[i%depth] = d
				posted--
			}
			d := sends[i%depth]
			d.SetSend(x.out)
			must(b, x.v.PostSend(d, x.h.dh))
			posted++
		}
		for ; posted > 0; posted-- {
			_, err := x.v.SendWait(b.Context())
			must(b, err)
		}
		<-done
	}), abbench.Timed(func() {
		plain <- struct{}{}
		for range many {
			_, err := p.Write(src)
			must(b, err)
		}
		<-done
	}))
}
