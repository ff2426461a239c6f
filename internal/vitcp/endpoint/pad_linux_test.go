package endpoint

import (
	"io"
	"net"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
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

// Memory goes away when the socket has taken any number of octets of a message: what
// the peer gets is whole segments with the transmit error at their end, or, if the last
// segment had begun, a stream that is cut off.
func TestPadAtAnyOctet(t *testing.T) {
	const n, longest = 600, 256 // three segments, the last one of 136 octets
	for _, op := range []Op{OpSend, OpWrite} {
		head := segment.SegmentHeader
		if op == OpWrite {
			head += segment.RDMAHeader
		}
		payload := longest - head
		size := n + 3*head
		if n > 2*payload+payload {
			size += head
		}
		for cut := range size {
			padAt(t, op, cut, size, head, payload, n)
		}
	}
}

func padAt(t *testing.T, op Op, cut, size, head, payload, n int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	y, err := l.Accept()
	require.NoError(t, err)
	defer y.Close()
	table := stag.NewTable(stag.Config{})
	e, err := New(x, Config{Level: segment.ReliableDelivery, MTU: 1000, Segment: head + payload, STags: table,
		User: stag.User{PD: 1}, Handler: deafHandler{}})
	require.NoError(t, err)
	require.True(t, e.tx.inPlace)
	buf := make([]byte, n)
	for i := range buf {
		buf[i] = 0xaa
	}
	info, err := table.Register(stag.RegionConfig{PD: 1, Memory: buf, Access: wr.LocalRead | wr.LocalWrite})
	require.NoError(t, err)
	r := &Request{Op: op, Spans: []Span{{uint64(uintptr(unsafe.Pointer(&buf[0]))), info.STag, uint32(n)}}}
	require.NoError(t, e.PostSend(r))
	require.NoError(t, e.PostSend(&Request{Op: OpSend}))

	b := newBatch()
	fillInPlace(e, b)
	require.Equal(t, size+segment.SegmentHeader, b.Size())
	b.Seal()
	stream := make([]byte, 0, size)
	for _, p := range b.Next() {
		stream = append(stream, p...)
	}
	stream = stream[:cut]
	b.Advance(cut)
	require.NoError(t, table.Deallocate(info.STag))
	for i := range buf {
		buf[i] = 0x55
	}
	writeAll(e, b)
	torn := e.tx.torn
	q := *e.sq.front()
	require.Equal(t, FlawProtection|FlawPartial, q.flaws)
	require.True(t, e.ended)
	require.Equal(t, CauseRequest, e.cause)
	_ = e.conn.Close()

	rest := make([]byte, 2*size)
	k := 0
	for {
		m, err := y.Read(rest[k:])
		k += m
		if err != nil {
			break
		}
	}
	stream = append(stream, rest[:k]...)
	assert.NotContains(t, string(stream), "\x55")
	c := segment.NewCutter(segment.MaxSegment, false)
	c.Advance(copy(c.Space(), stream))
	for got := uint32(0); ; {
		s, ok, fault := c.Next()
		require.Equal(t, segment.FaultNone, fault)
		if !ok {
			last := cut > size-(n-(n-1)/payload*payload)-head
			require.Equal(t, last, torn, "at %d", cut)
			require.True(t, torn, "no end at %d", cut)
			return
		}
		require.Equal(t, got, s.Offset)
		got += uint32(s.Size())
		if s.Last() {
			require.True(t, s.Failed())
			require.Zero(t, c.Buffered(), "nothing behind it")
			require.False(t, torn)
			return
		}
	}
}

// eventCounter counts events.
type eventCounter struct {
	deafHandler
	events int
}

func (c *eventCounter) Event(Event) { c.events++ }

// Memory goes away while a batch with several segments of an answer is being filled: those
// that name it cannot be sent, and the last one knows already. There is one event.
func TestAnswerFailsOnce(t *testing.T) {
	const n, longest = 10000, 5000
	for named := range 3 { // segments that name the memory when it goes
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
			if i == named {
				require.NoError(t, table.Deallocate(info.STag))
			}
			b.add(&s, false, true)
			e.framed(&s)
		}
		b.Seal()
		writeAll(e, b)
		require.True(t, e.ended)
		require.Equal(t, CauseInbound, e.cause)
		require.Equal(t, 1, h.events, "%d named", named)
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

// fillInPlace is fill, for segments of any size.
func fillInPlace(e *Endpoint, b *batch) {
	var s outgoing
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.choose(&s) {
		b.frame(&s, false, s.n > 0)
		e.framed(&s)
	}
}

// Nothing is received for memory that is gone.
func TestReadDirectWithoutMemory(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer x.Close()
	y, err := l.Accept()
	require.NoError(t, err)
	defer y.Close()
	_, err = y.Write([]byte("0123456789abcdef"))
	require.NoError(t, err)

	table := stag.NewTable(stag.Config{})
	buf := make([]byte, 8)
	info, err := table.Register(stag.RegionConfig{PD: 1, Memory: buf, Access: wr.LocalRead | wr.LocalWrite, VA: 64})
	require.NoError(t, err)
	var sink spans
	sink.set([]Span{{64, info.STag, 3}, {67, info.STag, 0}, {67, info.STag, 5}})
	require.True(t, sink.resolve(table, stag.User{PD: 1}, wr.LocalWrite))
	e, err := New(x, Config{Level: segment.ReliableDelivery, MTU: 1000, STags: table, Handler: deafHandler{}})
	require.NoError(t, err)
	defer e.Close()
	e.rx.sink, e.rx.away = &sink, 8
	space := make([]byte, 4)
	n, err := e.readDirect(space)
	require.NoError(t, err)
	require.Equal(t, 3, n, "one stretch at a time")
	e.rx.away = 4
	n, err = e.readDirect(space) // and some behind
	require.NoError(t, err)
	require.Equal(t, 8, n)
	assert.Equal(t, "0123456\x00", string(buf))
	assert.Equal(t, "789a", string(space))

	require.NoError(t, table.Deallocate(info.STag))
	e.rx.away = 1
	n, err = e.readDirect(space)
	require.ErrorIs(t, err, errRevoked)
	require.Zero(t, n)
	n, err = e.conn.TryRead(space)
	require.NoError(t, err)
	assert.Equal(t, "bcde", string(space[:n]))
	assert.Equal(t, "0123456\x00", string(buf))
}
