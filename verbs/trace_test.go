package verbs_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/verbs"
)

// tracedEnd is one end of a connection whose RNIC traces.
type tracedEnd struct {
	ring *trace.Ring
	nic  *verbs.RNIC
	qp   *verbs.QP
	mr   *verbs.MR
	conn *cm.Conn
}

func newTracedEnd(t testing.TB, on bool) *tracedEnd {
	e := &tracedEnd{ring: trace.NewRing(1000)}
	var c verbs.Config
	if on {
		c.Trace = e.ring.Add
	}
	var err error
	e.nic, err = verbs.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.nic.Close() })
	e.qp, err = e.nic.CreateEndpoint(verbs.QPConfig{})
	require.NoError(t, err)
	e.mr, err = e.qp.PD().Register(bytes.Repeat([]byte("secret!!"), 8192), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	require.NoError(t, err)
	return e
}

// tracedPair connects two over the loopback.
func tracedPair(t testing.TB, on bool) (a, b *tracedEnd) {
	a, b = newTracedEnd(t, on), newTracedEnd(t, on)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	defer l.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		req, err := l.Accept(t.Context())
		if err == nil {
			b.conn, err = req.Accept(t.Context(), b.qp, cm.Config{})
		}
		if err != nil {
			t.Error(err)
		}
	})
	a.conn, err = cm.Dial(t.Context(), l.Addr().String(), a.qp, cm.Config{NoNudge: true, Model: cm.ClientServer}) // a nudge, and a ready-to-receive frame, is a Write that nobody posted
	require.NoError(t, err)
	wg.Wait()
	return a, b
}

// find looks for records, in their order, that match each of what.
func find(t *testing.T, ring *trace.Ring, what ...func(*trace.Record) bool) {
	t.Helper()
	list, gone := ring.Records()
	require.Zero(t, gone)
	at := 0
	for i, match := range what {
		for at < len(list) && !match(&list[at]) {
			at++
		}
		if at == len(list) {
			var text bytes.Buffer
			_ = trace.Timeline(&text, list)
			t.Fatalf("no record %d:\n%s", i, text.String())
		}
		at++
	}
}

func is(k trace.Kind, name string, octets uint64) func(*trace.Record) bool {
	return func(r *trace.Record) bool { return r.Kind == k && r.Name == name && r.Octets == octets }
}

func becomes(next string) func(*trace.Record) bool {
	return func(r *trace.Record) bool { return r.Kind == trace.State && r.Next.String() == next }
}

// TestTrace has the way of a short Send, of a Write of several segments and of a Read told on both sides.
func TestTrace(t *testing.T) {
	a, b := tracedPair(t, true)
	const long = 200_000
	wide, err := a.qp.PD().Register(make([]byte, long), verbs.LocalRead)
	require.NoError(t, err)
	sink, err := b.qp.PD().Register(make([]byte, long), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	require.NoError(t, err)
	_, err = b.qp.PostRecv(verbs.Recv{ID: 7, SGL: b.mr.SGL(0, 100)})
	require.NoError(t, err)
	_, err = a.qp.PostSend(
		verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: wide.All(), Remote: sink.Remote(0)},
		verbs.Request{ID: 2, Op: verbs.OpRead, Local: a.mr.SGE(0, 64), Remote: sink.Remote(64)},
		verbs.Request{ID: 3, SGL: a.mr.SGL(0, 64)},
	)
	require.NoError(t, err)
	for range 3 {
		c, err := a.qp.SendCQ().WaitOne(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Err())
	}
	_, err = b.qp.RecvCQ().WaitOne(t.Context())
	require.NoError(t, err)
	require.NoError(t, a.conn.Close())
	<-b.conn.Done()

	find(t, a.ring,
		is(trace.Verb, "Create QP", 0), is(trace.Connection, "MPA startup, Initiator", 0), becomes("RTS"),
		is(trace.Posted, "Write", long), is(trace.Sent, "ReadRequest", 0), is(trace.Sent, "Send", 64), becomes("Closing"), becomes("Idle"))
	find(t, a.ring, is(trace.Posted, "Read", 64), is(trace.Received, "ReadResponse", 64), is(trace.Placed, "ReadResponse", 64), is(trace.Completed, "Read", 64))
	find(t, b.ring, is(trace.Connection, "MPA startup, Responder", 0), becomes("RTS"),
		is(trace.Received, "Send", 64), is(trace.Placed, "Send", 64), is(trace.Completed, "Recv", 64), becomes("Idle"))

	for name, ring := range map[string]*trace.Ring{"Sent": a.ring, "Received": b.ring} {
		octets, segments, last := uint64(0), 0, false
		list, _ := ring.Records()
		for _, r := range list {
			if r.Kind != trace.Sent && r.Kind != trace.Received || r.Name != "Write" {
				continue
			}
			require.Equal(t, sink.STag(), r.STag)
			require.Equal(t, sink.Remote(0).TO+octets, r.TO, "%s, in order", name)
			octets, segments, last = octets+r.Octets, segments+1, r.Last
		}
		require.EqualValues(t, long, octets, name)
		require.Greater(t, segments, 1)
		require.True(t, last)
	}
	var text bytes.Buffer
	require.NoError(t, b.ring.Dump(&text))
	require.NotContains(t, text.String(), "secret")
}

// TestTraceRefusal has the end of a stream told, with the Terminate Message, on both sides.
func TestTraceRefusal(t *testing.T) {
	a, b := tracedPair(t, true)
	_, err := a.qp.PostSend(verbs.Request{ID: 1, SGL: a.mr.SGL(0, 8)}) // nobody has posted a receive
	require.NoError(t, err)
	<-a.conn.Done()
	<-b.conn.Done()
	code := func(note string) func(*trace.Record) bool {
		return func(r *trace.Record) bool { return r.Kind == trace.State && r.Code == 0x1202 && r.Note == note }
	}
	find(t, b.ring, is(trace.Received, "Send", 8), code("Terminate sent"), becomes("Error"))
	find(t, a.ring, is(trace.Sent, "Send", 8), code("Terminate received"), becomes("Error"))
}

func BenchmarkTrace(b *testing.B) {
	for name, on := range map[string]bool{"off": false, "ring": true} {
		b.Run(name, func(b *testing.B) {
			x, y := tracedPair(b, on)
			var done [4]verbs.Completion
			recv, send := []verbs.Recv{{SGL: y.mr.SGL(0, 64)}}, []verbs.Request{{SGL: x.mr.SGL(0, 64)}}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = y.qp.PostRecv(recv...)
				_, _ = x.qp.PostSend(send...)
				for _, cq := range []*verbs.CQ{x.qp.SendCQ(), y.qp.RecvCQ()} {
					for cq.Poll(done[:]) == 0 {
					}
				}
			}
		})
	}
}
