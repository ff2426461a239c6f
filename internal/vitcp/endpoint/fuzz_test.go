package endpoint_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/wr"
)

// FuzzEndpoint feeds an endpoint whatever a peer may send. It must end in time, with
// one result for everything posted, and have touched nothing but what was named.
func FuzzEndpoint(f *testing.F) {
	h := &hand{t: f}
	rdma := &segment.RDMA{Address: fuzzVA + 64, Handle: 0, Length: 32}
	seg := func(typ segment.Type, flags segment.Flags, number, offset uint32, n int) []byte {
		return h.frame(segment.Header{Type: typ, Flags: flags, Number: number, Offset: offset, Ack: 101, RxPosted: 3}, rdma, make([]byte, n))
	}
	join := func(all ...[]byte) (b []byte) {
		for _, s := range all {
			b = append(b, s...)
		}
		return b
	}
	f.Add(uint8(0), seg(segment.Send, eom, 201, 0, 10))
	f.Add(uint8(1), join(seg(segment.RDMAWrite, 0, 201, 0, 16), seg(segment.RDMAWrite, eom|idv, 201, 16, 16)))
	f.Add(uint8(2), join(seg(segment.RDMAReadRequest, eom, 201, 0, 0), seg(segment.Send, eom, 202, 0, 1)))
	f.Add(uint8(1), join(seg(segment.RDMAReadResponse, 0, 102, 0, 8), seg(segment.RDMAReadResponse, eom, 102, 8, 8)))
	f.Add(uint8(2), seg(segment.NOP, 0, 200, 0, 0))
	f.Add(uint8(6), h.frame(segment.Header{Type: segment.NOP, Ack: 101, Code: 7}, nil, nil))
	f.Add(uint8(2), join(seg(segment.Send, tre, 201, 0, 3), seg(segment.Send, eom|tre, 201, 3, 0)))
	f.Fuzz(func(t *testing.T, mode uint8, stream []byte) { fuzzEndpoint(t, mode, stream) })
}

const fuzzVA = 0x10000

func fuzzEndpoint(t *testing.T, mode uint8, stream []byte) {
	c := endpoint.Config{Level: levels[int(mode&3)%3], CRC: mode&4 != 0, FlowControl: mode&8 != 0, PeerFlowControl: mode&16 != 0,
		Linger: 20 * time.Millisecond, MTU: 1000, PeerPosted: 1}
	tr := transports[0]
	if mode&32 != 0 {
		tr = transports[1]
	}
	s, h := byDeafHand(t, tr, c)
	open := s.register(128, allRights)
	private := s.register(128, wr.LocalRead|wr.LocalWrite)
	fix(stream, c.CRC, open)
	s.recv(private.span(0, 16), private.span(32, 16))
	s.recv(private.span(64, 16))
	s.send(private.span(0, 8))
	if c.Level != segment.Unreliable {
		require.NoError(t, s.PostSend(&endpoint.Request{Op: endpoint.OpRead, Spans: []endpoint.Span{private.span(96, 16)}}))
	}
	s.send()
	go func() { _, _ = io.Copy(io.Discard, h.conn) }()
	s.Start()
	h.write(stream)
	h.conn.Close()
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the endpoint hangs")
	}
	sends, receives, ends := 2, 2, 1
	if c.Level != segment.Unreliable {
		sends++
	}
	close(s.calls)
	for c := range s.calls {
		switch c.kind {
		case "send":
			sends--
		case "receive":
			receives--
		case "ended":
			ends--
		}
	}
	require.Equal(t, [3]int{}, [3]int{sends, receives, ends}, "results left")
	for _, hole := range [][2]int{{16, 32}, {48, 64}, {80, 96}, {112, 128}} {
		require.Equal(t, make([]byte, hole[1]-hole[0]), private.buf[hole[0]:hole[1]], "touched")
	}
}

// fix makes segments of the fuzzer's octets go further: lengths and CRCs are right
// more often than not, and handle 0 is that of m, at fuzzVA.
func fix(b []byte, crc bool, m *memory) {
	for len(b) >= 24 {
		n := int(b[2])<<8 | int(b[3])
		if n < 24 || n > len(b) {
			return
		}
		s := b[:n]
		if typ := segment.Type(s[1] & 31); typ.HasRDMA() && n >= 40 && s[32]|s[33]|s[34]|s[35] == 0 {
			at := uint64(0)
			for _, v := range s[24:32] {
				at = at<<8 | uint64(v)
			}
			r := segment.RDMA{Address: at - fuzzVA + m.addr, Handle: uint32(m.handle), Length: uint32(s[36])<<24 | uint32(s[37])<<16 | uint32(s[38])<<8 | uint32(s[39])}
			r.Append(s[:24])
		}
		if crc && n >= 28 {
			segment.AppendCRC(s[:n-4], 0)
		}
		b = b[n:]
	}
}
