package cases

import (
	"io"
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// viPeer is a raw peer of a VI: it sends what it is told, right or wrong, and reads
// segments by itself.
type viPeer struct {
	t    *conformance.T
	conn net.Conn
	crc  bool // the connection has CRCs
	// number is that of its last message.
	number uint32
	// subject is that of the other end's segment of establishment.
	subject uint32
}

// newVIPeer is a raw peer on a connection, which ends with the case.
func newVIPeer(t *conformance.T, c net.Conn) *viPeer {
	t.Cleanup(func() { _ = c.Close() })
	return &viPeer{t: t, conn: t.Trace().Conn(c), number: 0x70FFFFFF}
}

func (p *viPeer) says(b []byte) { require.NoError(p.t, second(p.conn.Write(b)), "sending") }

// put sends a segment.
func (p *viPeer) put(s viSegment) { p.says(s.octets(p.crc)) }

// message gives a segment the number of the next message.
func (p *viPeer) message(s viSegment) viSegment {
	p.number++
	s.number = p.number
	return s
}

// send sends a Send of one segment, and returns its number.
func (p *viPeer) send(payload string) uint32 {
	p.put(p.message(viSegment{kind: viSend, flags: viLast, payload: []byte(payload)}))
	return p.number
}

// rdmaWrite sends an RDMA Write of one segment.
func (p *viPeer) rdmaWrite(to viRDMA, payload string) uint32 {
	to.length = uint32(len(payload))
	p.put(p.message(viSegment{kind: viWrite, flags: viLast, rdma: to, payload: []byte(payload)}))
	return p.number
}

// rdmaRead sends an RDMA Read Request.
func (p *viPeer) rdmaRead(from viRDMA) uint32 {
	p.put(p.message(viSegment{kind: viReadRequest, flags: viLast, rdma: from}))
	return p.number
}

// nop sends a NOP with these fields.
func (p *viPeer) nop(s viSegment) {
	s.kind, s.flags, s.number = viNOP, viLast, p.number
	p.put(s)
}

// raw reads the octets of one segment.
func (p *viPeer) raw() ([]byte, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(patience(p.t)))
	b := make([]byte, 4)
	if _, err := io.ReadFull(p.conn, b); err != nil {
		return nil, err
	}
	n := int(b[2])<<8 | int(b[3])
	require.GreaterOrEqual(p.t, n, viHeaderLen, "Segment Length")
	b = append(b, make([]byte, n-len(b))...)
	_, err := io.ReadFull(p.conn, b[4:])
	return b, err
}

// next is the next segment.
func (p *viPeer) next() viSegment {
	b, err := p.raw()
	if err != nil {
		p.t.Fatalf("instead of a segment: %s", failure(err))
	}
	s, err := readVI(b, p.crc)
	require.NoError(p.t, err, "% x", b)
	return s
}

// get is the next segment, of a kind.
func (p *viPeer) get(kind byte) viSegment {
	s := p.next()
	require.Equal(p.t, kind, s.kind, "%v", &s)
	return s
}

// whole is the next message, of a kind: all its segments.
func (p *viPeer) whole(kind byte) (parts []viSegment, payload []byte) {
	payload = []byte{}
	for s := p.get(kind); ; s = p.get(kind) {
		require.Equal(p.t, uint32(len(payload)), s.offset, "Data Offset of %v", &s)
		if len(parts) > 0 {
			require.Equal(p.t, parts[0].number, s.number, "Message Number of %v", &s)
		}
		parts = append(parts, s)
		payload = append(payload, s.payload...)
		if s.last() {
			return parts, payload
		}
	}
}

// answer is the answer to an RDMA Read. NOPs may come before it.
func (p *viPeer) answer(number uint32) []byte {
	s := p.next()
	for s.kind == viNOP {
		s = p.next()
	}
	var payload []byte
	for {
		require.Equal(p.t, []any{byte(viReadResponse), number, uint32(len(payload))}, []any{s.kind, s.number, s.offset}, "%v", &s)
		require.Zero(p.t, s.flags&viError, "Transmit Error")
		if payload = append(payload, s.payload...); s.last() {
			return payload
		}
		s = p.next()
	}
}

// over says that the connection ends, with nothing before that but a NOP.
func (p *viPeer) over() {
	for {
		b, err := p.raw()
		if err == nil && b[1]&0x1F == viNOP {
			continue
		}
		if err == nil {
			p.t.Fatalf("instead of the end: % x", b)
		}
		if !ended(err) {
			p.t.Fatalf("instead of the end: %s", failure(err))
		}
		_ = p.conn.Close()
		return
	}
}

// last is the NOP that an end at Reliable Reception says good-bye with, and the end.
func (p *viPeer) last() viSegment {
	s := p.get(viNOP)
	for {
		b, err := p.raw()
		if err != nil {
			require.True(p.t, ended(err), "%v", err)
			_ = p.conn.Close()
			return s
		}
		s, err = readVI(b, p.crc)
		require.NoError(p.t, err)
		require.Equal(p.t, byte(viNOP), s.kind, "%v", &s)
	}
}
