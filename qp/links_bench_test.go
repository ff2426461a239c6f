package qp_test

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// benchEnd is one end of a benchmark over a stream of some kind.
type benchEnd struct {
	pd *verbs.PD
	cq *verbs.CQ
	qp *verbs.QP
	mr *verbs.MR
}

func newBenchEnd(b *testing.B, size int) *benchEnd {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, nic.Close()) })
	e := &benchEnd{}
	e.pd, err = nic.AllocatePD()
	require.NoError(b, err)
	e.cq, err = nic.CreateCQ(verbs.CQConfig{})
	require.NoError(b, err)
	e.qp, err = nic.CreateQP(verbs.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq})
	require.NoError(b, err)
	e.mr, err = e.pd.Register(make([]byte, size), verbs.LocalRead|verbs.LocalWrite)
	require.NoError(b, err)
	return e
}

func (e *benchEnd) start(b *testing.B, c net.Conn, role mpa.Role) {
	require.NoError(b, e.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &verbs.StreamConfig{Conn: c, Role: role}}))
}

// BenchmarkLinks is a Send and its answer over LLP streams of all kinds, each end
// waiting: what is not a TCP socket is read and written by goroutines.
func BenchmarkLinks(b *testing.B) {
	links := map[string]func(testing.TB) (net.Conn, net.Conn){
		"TCP": linkTCP, "wrapped": linkWrapped, "TLS": linkTLS, "pipe": linkPipe,
	}
	for name, link := range links {
		for _, size := range []int{64, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				x, y := newBenchEnd(b, size), newBenchEnd(b, size)
				cx, cy := link(b)
				y.start(b, cy, mpa.Responder)
				x.start(b, cx, mpa.Initiator)
				benchEcho(b, x, y, size)
			})
		}
	}
}

// benchEcho sends from x to y and back.
func benchEcho(b *testing.B, x, y *benchEnd, size int) {
	var buf [1]verbs.Completion
	step := func(from, to *benchEnd) {
		_, errRecv := to.qp.PostRecv(verbs.Recv{SGL: to.mr.SGL(0, size)})
		_, errSend := from.qp.PostSend(verbs.Request{Flags: verbs.Unsignaled, SGL: from.mr.SGL(0, size)})
		_, errWait := to.cq.Wait(b.Context(), buf[:])
		if err := errors.Join(errRecv, errSend, errWait, buf[0].Err()); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(2 * size))
	for b.Loop() {
		step(x, y)
		step(y, x)
	}
}
