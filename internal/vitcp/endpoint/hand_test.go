package endpoint_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// hand is a peer that is driven by hand, segment by segment.
type hand struct {
	t    testing.TB
	conn net.Conn
	crc  bool
	rx   chan segment.Segment // what the endpoint sent
	end  chan error
}

// byHand makes an endpoint with a peer that is driven by hand. Their messages begin
// with 101 here and 201 at the hand, unless c says otherwise.
func byHand(t testing.TB, tr transport, c endpoint.Config) (*side, *hand) {
	t.Helper()
	s, h := byDeafHand(t, tr, c)
	h.hear()
	return s, h
}

// byDeafHand is byHand with a peer that does not read before hear.
func byDeafHand(t testing.TB, tr transport, c endpoint.Config) (*side, *hand) {
	t.Helper()
	x, y := tr.make(t)
	if c.OutboundReads == 0 {
		c.OutboundReads, c.InboundReads = 2, 2
	}
	if c.Number == 0 {
		c.Number, c.PeerNumber = 100, 200
	}
	s := newSide(t, x, c)
	h := &hand{t: t, conn: y, crc: c.CRC, rx: make(chan segment.Segment, 1<<12), end: make(chan error, 1)}
	t.Cleanup(func() { y.Close() })
	return s, h
}

// hear begins to read.
func (h *hand) hear() {
	ended := make(chan struct{})
	go h.listen(ended)
	h.t.Cleanup(func() {
		h.conn.Close()
		for range h.rx { // it may be full
		}
		<-ended
	})
}

func (h *hand) listen(ended chan struct{}) {
	defer close(ended)
	defer close(h.rx)
	var head [4]byte
	for {
		if _, err := io.ReadFull(h.conn, head[:]); err != nil {
			h.end <- err
			return
		}
		b := make([]byte, int(head[2])<<8|int(head[3]))
		copy(b, head[:])
		if _, err := io.ReadFull(h.conn, b[4:]); err != nil {
			h.end <- err
			return
		}
		s, fault := segment.Parse(b, h.crc)
		if fault != segment.FaultNone {
			h.end <- fault
			return
		}
		h.rx <- s
	}
}

// frame is a segment in octets.
func (h *hand) frame(hd segment.Header, rdma *segment.RDMA, payload []byte) []byte {
	hd.SetLength(len(payload), h.crc)
	b := hd.Append(nil)
	if hd.Type.HasRDMA() {
		b = rdma.Append(b)
	}
	b = append(b, payload...)
	if h.crc {
		b = segment.AppendCRC(b, 0)
	}
	return b
}

// write writes octets; the endpoint may have closed by then.
func (h *hand) write(b []byte) { _, _ = h.conn.Write(b) }

func (h *hand) put(hd segment.Header, rdma *segment.RDMA, payload []byte) {
	h.write(h.frame(hd, rdma, payload))
}

// get is the next segment that the endpoint sent.
func (h *hand) get() segment.Segment {
	h.t.Helper()
	select {
	case s, ok := <-h.rx:
		require.True(h.t, ok, "the connection has ended")
		return s
	case <-time.After(patience):
		require.FailNow(h.t, "the endpoint does not send")
		return segment.Segment{}
	}
}

// closed expects that the endpoint ends its half, with nothing more before that, and
// closes the connection.
func (h *hand) closed() {
	h.t.Helper()
	select {
	case s, ok := <-h.rx:
		require.False(h.t, ok, "sent in addition: %v", &s.Header)
	case <-time.After(patience):
		require.FailNow(h.t, "the endpoint does not close")
	}
	h.conn.Close()
}

// pattern fills b with octets that tell places and seeds apart.
func pattern(b []byte, seed int) {
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	var word [8]byte
	for len(b) > 0 {
		x = x*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(word[:], x^x>>32)
		b = b[copy(b, word[:]):]
	}
}

// replay is a connection of which some octets were read already.
type replay struct {
	net.Conn
	first []byte
}

func (r *replay) Read(b []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(b, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}
