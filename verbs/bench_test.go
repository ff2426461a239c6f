package verbs_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// pollOne polls until there is a completion. The peer of a benchmark lives in
// the same process: now and then it needs the processor.
func pollOne(b *testing.B, cq *verbs.CQ, buf []verbs.Completion) int {
	for spin := 1; ; spin++ {
		if n := cq.Poll(buf); n > 0 {
			for _, c := range buf[:n] {
				if c.Status != verbs.StatusSuccess {
					b.Fatal(c.Op, c.Status)
				}
			}
			return n
		}
		if spin%64 == 0 {
			runtime.Gosched()
		}
	}
}

func benchPair(b *testing.B) (x, y *node) {
	x, y = newNode(b, verbs.QPConfig{SendDepth: 1024, RecvDepth: 1024}), newNode(b, verbs.QPConfig{SendDepth: 256, RecvDepth: 1024})
	join(b, x.qp, y.qp, false)
	b.ReportAllocs()
	return x, y
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPingPong is a Send of 64 octets and its answer, both sides polled by
// one goroutine.
func BenchmarkPingPong(b *testing.B) {
	x, y := benchPair(b)
	var buf [4]verbs.Completion
	recvX, recvY := verbs.Recv{SGL: x.mr.SGL(0, 64)}, verbs.Recv{SGL: y.mr.SGL(0, 64)}
	ping := verbs.Request{Flags: verbs.Unsignaled, SGL: x.mr.SGL(64, 64)}
	pong := verbs.Request{Flags: verbs.Unsignaled, SGL: y.mr.SGL(64, 64)}
	step := func(from, to *node, w verbs.Request, r verbs.Recv) {
		_, err := to.qp.PostRecv(r)
		must(b, err)
		_, err = from.qp.PostSend(w)
		must(b, err)
		pollOne(b, to.cq, buf[:1])
	}
	for b.Loop() {
		step(x, y, ping, recvY)
		step(y, x, pong, recvX)
	}
}

// BenchmarkWait is the same with two sleepers.
func BenchmarkWait(b *testing.B) {
	x, y := benchPair(b)
	ctx, cancel := context.WithCancel(b.Context())
	answered := make(chan error, 1)
	recv := verbs.Recv{SGL: y.mr.SGL(0, 64)}
	_, err := y.qp.PostRecv(recv)
	must(b, err)
	go func() {
		var buf [1]verbs.Completion
		pong := verbs.Request{Flags: verbs.Unsignaled, SGL: y.mr.SGL(64, 64)}
		for {
			if _, err := y.cq.Wait(ctx, buf[:]); err != nil {
				answered <- nil
				return
			}
			if _, err := y.qp.PostRecv(recv); err != nil {
				answered <- err
				return
			}
			if _, err := y.qp.PostSend(pong); err != nil {
				answered <- err
				return
			}
		}
	}()
	var buf [1]verbs.Completion
	mine := verbs.Recv{SGL: x.mr.SGL(0, 64)}
	ping := verbs.Request{Flags: verbs.Unsignaled, SGL: x.mr.SGL(64, 64)}
	for b.Loop() {
		_, err := x.qp.PostRecv(mine)
		must(b, err)
		_, err = x.qp.PostSend(ping)
		must(b, err)
		_, err = x.cq.Wait(ctx, buf[:])
		must(b, err)
	}
	cancel()
	require.NoError(b, <-answered)
}

// BenchmarkStream sends 64 octets again and again, receives being posted ahead.
func BenchmarkStream(b *testing.B) {
	x, y := benchPair(b)
	const window = 512
	var buf [window]verbs.Completion
	recv := verbs.Recv{SGL: y.mr.SGL(0, 64)}
	w := verbs.Request{Flags: verbs.Unsignaled, SGL: x.mr.SGL(0, 64)}
	b.SetBytes(64)
	credit := 0
	for b.Loop() {
		if credit == 0 {
			for range window {
				_, err := y.qp.PostRecv(recv)
				must(b, err)
			}
			credit = window
		}
		_, err := x.qp.PostSend(w)
		must(b, err)
		if credit--; credit == 0 {
			x.cq.Poll(buf[:])
			for got := 0; got < window; {
				got += pollOne(b, y.cq, buf[:])
			}
		}
	}
}

// BenchmarkBulk moves messages, one at a time, by each operation.
func BenchmarkBulk(b *testing.B) {
	for _, size := range []int{64, 64 << 10, 1 << 20} {
		for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpRead} {
			b.Run(fmt.Sprintf("%v/%d", op, size), func(b *testing.B) {
				x, y := benchPair(b)
				w := verbs.Request{Op: op, SGL: x.mr.SGL(0, size), Local: x.mr.SGE(0, size), Remote: y.mr.Remote(0)}
				recv := verbs.Recv{SGL: y.mr.SGL(0, size)}
				var buf [1]verbs.Completion
				b.SetBytes(int64(size))
				for b.Loop() {
					if op == verbs.OpSend {
						_, err := y.qp.PostRecv(recv)
						must(b, err)
					}
					_, err := x.qp.PostSend(w)
					must(b, err)
					pollOne(b, x.cq, buf[:])
					if op == verbs.OpSend {
						pollOne(b, y.cq, buf[:])
					}
				}
			})
		}
	}
}

// BenchmarkSegments moves 1 MiB by Sends in segments as large as those on an Ethernet
// and those on a loopback, with and without CRC.
func BenchmarkSegments(b *testing.B) {
	const size = 1 << 20
	for _, segment := range []int{1440, 0} {
		for _, crc := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/crc=%v", segment, crc), func(b *testing.B) {
				tuning := qp.Tuning{Segment: segment}
				x, y := newTuned(b, tuning), newTuned(b, tuning)
				join(b, x.qp, y.qp, crc)
				recv, w := verbs.Recv{SGL: y.mr.SGL(0, size)}, verbs.Request{SGL: x.mr.SGL(0, size)}
				var buf [1]verbs.Completion
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					_, err := y.qp.PostRecv(recv)
					must(b, err)
					_, err = x.qp.PostSend(w)
					must(b, err)
					pollOne(b, x.cq, buf[:])
					pollOne(b, y.cq, buf[:])
				}
			})
		}
	}
}

// BenchmarkPaths is one request, or one pair, of every kind after the other: data
// through regions, windows and shared receive queues, and memory operations.
func BenchmarkPaths(b *testing.B) {
	p := newPaths(b)
	for _, path := range p.all() {
		b.Run(path.name, func(b *testing.B) {
			b.ReportAllocs()
			spin := 0
			idle := func() {
				if spin++; spin%64 == 0 {
					runtime.Gosched()
				}
			}
			for b.Loop() {
				must(b, path.run(idle))
			}
		})
	}
}
