package endpoint

import (
	"io"
	"net"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

type deafHandler struct{}

func (deafHandler) SendDone(*Result)    {}
func (deafHandler) ReceiveDone(*Result) {}
func (deafHandler) Event(Event)         {}
func (deafHandler) Ended(*EndError)     {}

// eventCounter counts events.
type eventCounter struct {
	deafHandler
	events int
}

func (c *eventCounter) Event(Event) { c.events++ }

// Memory goes away while a batch with several segments of an answer is being filled: those
// before it has gone are sent, and the next is the last. There is one event.
func TestAnswerFailsOnce(t *testing.T) {
	const n, longest = 10000, 5000
	for framed := range 3 { // segments, when the memory goes
		x, y := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, y) }()
		table, h := stag.NewTable(stag.Config{}), &eventCounter{}
		user := stag.User{PD: 1}
		e, err := New(x, Config{Level: segment.ReliableDelivery, MTU: n, Segment: longest, STags: table, User: user, Handler: h})
		require.NoError(t, err)
		buf := make([]byte, n)
		info, err := table.Register(stag.RegionConfig{PD: 1, Memory: buf, Access: wr.LocalRead | wr.RemoteRead})
		require.NoError(t, err)
		a := slot(&e.inReads)
		a.number, a.length = 1, n
		require.True(t, a.mem.one(uint64(uintptr(unsafe.Pointer(&buf[0]))), info.STag, n, table, user, wr.RemoteRead))
		e.unsent++

		b := newBatch()
		var s outgoing
		for i := 0; e.choose(&s); i++ {
			if i == framed {
				require.NoError(t, table.Deallocate(info.STag))
			}
			b.add(&s, false)
			e.framed(&s)
		}
		writeAll(e, b)
		require.True(t, e.ended)
		require.Equal(t, CauseInbound, e.cause)
		require.Equal(t, 1, h.events, "%d framed", framed)
		_ = e.conn.Close() // which ends the reading of y
	}
}

// writeAll sends b, and what the end leaves of it.
func writeAll(e *Endpoint, b *batch) {
	e.tx.b = b
	for e.pump() {
	}
	if e.tx.b != nil && !e.tx.dead {
		e.writeRest(b, true)
	}
	e.deliver()
}

// Memory goes away when a part of a long segment has been placed there: the rest is not, and the connection ends.
func TestRevokedWithinASegment(t *testing.T) {
	x, y := net.Pipe()
	defer y.Close()
	table, user := stag.NewTable(stag.Config{}), stag.User{PD: 1}
	e, err := New(x, Config{Level: segment.ReliableDelivery, MTU: 1000, STags: table, User: user, Handler: deafHandler{}})
	require.NoError(t, err)
	defer e.conn.Close()
	buf := make([]byte, 8)
	info, err := table.Register(stag.RegionConfig{PD: 1, Memory: buf, Access: wr.LocalWrite | wr.RemoteWrite})
	require.NoError(t, err)
	r := &e.rx
	require.True(t, r.in.target.one(uint64(uintptr(unsafe.Pointer(&buf[0]))), info.STag, 8, table, user, wr.RemoteWrite))
	r.sink, r.header.Length, r.away = &r.in.target, segment.SegmentHeader+8, 8
	fetch := func() (on bool) {
		for got := false; !got; {
			got, on = e.fetch()
		}
		return on
	}
	go func() { _, _ = y.Write([]byte("here")) }()
	for r.away > 4 {
		require.True(t, fetch())
	}
	require.NoError(t, table.Deallocate(info.STag))
	go func() { _, _ = y.Write([]byte("gone")) }()
	require.False(t, fetch())
	require.Equal(t, "here\x00\x00\x00\x00", string(buf))
	require.Equal(t, CauseInbound, e.cause)
}
