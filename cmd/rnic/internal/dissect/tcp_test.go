package dissect

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
)

var startupWithMarkers = mpa.Startup{Rev: 1, CRC: true, Markers: true}

// Random cuts, duplicates and order, across the wrap of sequence numbers: what
// comes out is what was sent.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		want := make([]byte, 1+rng.IntN(400))
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		start := uint32(0xFFFFFF80) + uint32(round)
		type piece struct{ from, to int }
		var pieces []piece
		for at := 0; at < len(want); {
			to := min(len(want), at+1+rng.IntN(60))
			// Some begin earlier than they must, and some come twice.
			for range 1 + rng.IntN(2) {
				pieces = append(pieces, piece{max(0, at-rng.IntN(20)), to})
			}
			at = to
		}
		rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		var o order
		o.begin(start)
		var got []byte
		for _, p := range pieces {
			o.put(start+uint32(p.from), want[p.from:p.to], sink{octets: func(b []byte) { got = append(got, b...) }})
		}
		require.Equal(t, want, got, "round %d", round)
		require.True(t, o.whole())
		require.Zero(t, o.held)
	}
}

// TestOrderGoesOn behind a hole: when too much waits behind it, when the peer has long had what is in it, and at the end.
func TestOrderGoesOn(t *testing.T) {
	for name, tc := range map[string]struct {
		size, n int
		acked   bool
		end     bool
	}{
		"too much waits": {1 << 20, 5, false, false},
		"acknowledged":   {10, patience + 1, true, false},
		"at the end":     {10, 2, false, true},
		"too many wait":  {10, maxPending/1024 + 1, false, false},
	} {
		var o order
		o.begin(0)
		got, missing := 0, uint64(0)
		to := sink{func(b []byte) { got += len(b) }, func(n uint64) { missing += n }}
		data := make([]byte, tc.size)
		for i := range tc.n {
			assert.Zero(t, got, name)
			if tc.acked {
				o.acknowledge(uint32(10 + i*tc.size))
			}
			o.put(uint32(10+i*tc.size), data, to)
		}
		if tc.end {
			assert.Zero(t, got)
			o.finish(to)
		}
		assert.Equal(t, tc.n*tc.size, got, name)
		assert.Equal(t, uint64(10), missing, name)
		assert.False(t, o.whole())
		assert.Empty(t, o.pending)
		o.put(0, data, to)
		assert.Equal(t, tc.n*tc.size, got, "too late")
	}
	var o order
	o.begin(0)
	o.acknowledge(8)
	missing := uint64(0)
	o.finish(sink{nil, func(n uint64) { missing = n }})
	assert.Equal(t, uint64(8), missing, "the peer has what never came")
}

func TestOrderWhole(t *testing.T) {
	var o order
	o.begin(100)
	to := sink{octets: func([]byte) {}}
	assert.True(t, o.whole())
	o.acknowledge(110)
	assert.False(t, o.whole(), "the peer has what the capture lacks")
	o.put(100, make([]byte, 10), to)
	assert.True(t, o.whole())
	o.put(120, make([]byte, 10), to)
	assert.False(t, o.whole(), "a hole")
}

// The link layers, each with the header it puts before IP.
func TestLinkTypes(t *testing.T) {
	tests := []struct {
		name   string
		link   layers.LinkType
		header []byte
		v6     bool
	}{
		{"raw", layers.LinkTypeRaw, nil, false},
		{"raw, IPv6", layers.LinkTypeRaw, nil, true},
		{"raw as 12", 12, nil, false},
		{"IPv4", layers.LinkTypeIPv4, nil, false},
		{"IPv6", layers.LinkTypeIPv6, nil, true},
		{"Ethernet", layers.LinkTypeEthernet, append(make([]byte, 12), 0x08, 0x00), false},
		{"Ethernet, IPv6", layers.LinkTypeEthernet, append(make([]byte, 12), 0x86, 0xDD), true},
		{"Ethernet, VLAN", layers.LinkTypeEthernet, append(make([]byte, 12), 0x81, 0x00, 0, 5, 0x08, 0x00), false},
		{"Linux cooked", layers.LinkTypeLinuxSLL, []byte{0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x08, 0x00}, false},
		{"Linux cooked 2", layers.LinkTypeLinuxSLL2, append([]byte{0x08, 0x00}, make([]byte, 18)...), false},
		{"BSD loopback", layers.LinkTypeNull, []byte{2, 0, 0, 0}, false},
		{"OpenBSD loopback, IPv6", layers.LinkTypeLoop, []byte{0, 0, 0, 24}, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript(t)
			s.link, s.v6 = tc.link, tc.v6
			s.wrap = func(ip []byte) []byte { return append(append([]byte(nil), tc.header...), ip...) }
			s.plain()
			s.fpdu(client, send(1))
			c := s.one()
			assert.Empty(t, broken(c))
			assert.Equal(t, 1, c.Streams[0].FPDUs)
			want := "192.0.2.1:50000"
			if tc.v6 {
				want = "[::1]:50000"
			}
			assert.Equal(t, want, c.Client)
			assert.Equal(t, c.Client, c.Streams[0].From)
			assert.Equal(t, c.Server, c.Streams[1].From)
		})
	}
}

// pcapng is the capture in the newer format, on the second of two interfaces of
// different link types.
func (s *script) pcapng() []byte {
	var buf bytes.Buffer
	w, err := pcapgo.NewNgWriter(&buf, layers.LinkTypeEthernet)
	require.NoError(s.t, err)
	id, err := w.AddInterface(pcapgo.NgInterface{LinkType: s.link, SnapLength: 262144})
	require.NoError(s.t, err)
	for _, p := range s.packets {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(p), Length: len(p), InterfaceIndex: id}
		require.NoError(s.t, w.WritePacket(info, p))
	}
	require.NoError(s.t, w.Flush())
	return buf.Bytes()
}

func TestPcapng(t *testing.T) {
	s := newScript(t)
	s.plain()
	s.fpdu(client, send(1))
	s.fpdu(client, send(3))
	r, err := Read(bytes.NewReader(s.pcapng()), nil)
	require.NoError(t, err)
	assert.Equal(t, s.read(), r)
	assert.Equal(t, []string{"client#2 ddp-msn"}, allBroken(r))
}

// FPDUs need not agree with TCP segments (R5044-5.1-M1).
func TestSegmentation(t *testing.T) {
	for size := 1; size < 80; size += 3 {
		s := newScript(t)
		s.start(startupWithMarkers, startupWithMarkers)
		var stream []byte
		for msn := uint32(1); msn < 6; msn++ {
			stream = append(stream, s.framed(client, send(msn, make([]byte, 250)...))...)
		}
		stream = stream[:len(stream)-7]
		for len(stream) > 0 {
			n := min(size, len(stream))
			s.send(client, stream[:n])
			stream = stream[n:]
		}
		c := s.one()
		assert.Empty(t, broken(c))
		assert.Equal(t, 4, c.Streams[0].FPDUs)
		assert.Equal(t, 4, c.Streams[0].CRC.OK)
		assert.Equal(t, map[string]int{"Send": 4}, c.Streams[0].Ops)
		last := 2 + 18 + 250 + 2 + 4 // without markers
		assert.GreaterOrEqual(t, c.Streams[0].Incomplete, last-7)
		assert.LessOrEqual(t, c.Streams[0].Incomplete, last-7+4)
	}
}

// Startup frames may come in pieces, and together with what follows.
func TestStartupInPieces(t *testing.T) {
	s := newScript(t)
	s.handshake()
	req := frame(t, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, IRD: 3, ORD: 4, PrivateData: []byte("hello")})
	for _, b := range req {
		s.send(client, []byte{b})
	}
	rep := frame(t, mpa.Startup{Reply: true, Rev: 2, Enhanced: true, IRD: 4, ORD: 3})
	s.send(server, rep[:15])
	s.send(server, rep[15:])
	s.frameWith(mpa.Startup{CRC: true}, mpa.Startup{})
	s.fpdu(client, send(1))
	c := s.one()
	assert.Empty(t, broken(c))
	assert.Equal(t, 5, c.MPA.Request.PrivateDataLen)
	assert.Equal(t, uint16(3), *c.MPA.Request.IRD)
	assert.Equal(t, uint16(4), *c.MPA.Reply.IRD)
	assert.Equal(t, 1, c.Streams[0].CRC.OK)
}

// MPA may start on a connection that carried something else before.
func TestMPAAfterStreaming(t *testing.T) {
	s := newScript(t)
	s.handshake()
	s.send(client, []byte("shall we?"))
	s.send(server, []byte("yes"))
	req, rep := mpa.Startup{Rev: 1, CRC: true}, mpa.Startup{Reply: true, Rev: 1}
	s.send(server, frame(t, req)[:7]) // roles need not follow TCP's
	s.send(server, frame(t, req)[7:])
	s.send(client, frame(t, rep))
	s.framers[server] = mpa.NewFramer(true, false)
	s.fpdu(server, send(1))
	c := s.one()
	assert.Empty(t, broken(c))
	assert.Equal(t, "192.0.2.2:4791", c.Client)
	assert.Equal(t, 1, c.Streams[0].CRC.OK)
}

// The first octets may come with the SYN (RFC 7413).
func TestDataInSYN(t *testing.T) {
	s := newScript(t)
	req := frame(t, mpa.Startup{Rev: 1, CRC: true})
	s.segment(client, flagSYN, s.seq[client], req)
	s.seq[client] += 1 + uint32(len(req))
	s.send(server, frame(t, mpa.Startup{Reply: true, Rev: 1, CRC: true}))
	s.frameWith(mpa.Startup{CRC: true}, mpa.Startup{})
	s.fpdu(client, send(1))
	c := s.one()
	assert.NotNil(t, c.MPA.Request)
	assert.Equal(t, 1, c.Streams[0].CRC.OK)
}

// A FIN takes a sequence number: after it, all the same, nothing is missing.
func TestAfterFIN(t *testing.T) {
	s := newScript(t)
	s.plain()
	s.segment(client, flagFIN|flagACK, s.seq[client], nil)
	s.seq[client]++
	s.fpdu(server, send(1))
	assert.Equal(t, []string{"server#1 first-fpdu"}, broken(s.one()))
}

// A text that mentions the key is not MPA.
func TestKeyInOtherTraffic(t *testing.T) {
	s := newScript(t)
	s.handshake()
	s.send(client, []byte("GET /rfc5044.txt"))
	s.send(server, []byte(`the key is "MPA ID Req Frame" and so on`))
	assert.Empty(t, s.read().Connections)
}

// The same ports may be used again.
func TestPortsReused(t *testing.T) {
	s := newScript(t)
	s.plain()
	s.fpdu(client, send(1))
	s.seq = [2]uint32{500000, 600000}
	s.plain()
	s.fpdu(client, send(1))
	s.fpdu(client, send(2))
	r := s.read()
	require.Len(t, r.Connections, 2)
	assert.Empty(t, allBroken(r))
	assert.Equal(t, 1, r.Connections[0].Streams[0].FPDUs)
	assert.Equal(t, 2, r.Connections[1].Streams[0].FPDUs)
}

// Without the Request, what can be decoded is.
func TestReplyOnly(t *testing.T) {
	s := newScript(t)
	s.send(server, frame(t, mpa.Startup{Reply: true, Rev: 1, CRC: true}))
	s.frameWith(mpa.Startup{CRC: true}, mpa.Startup{})
	s.fpdu(client, send(1))
	s.fpdu(server, send(1))
	c := s.one()
	assert.Nil(t, c.MPA.Request)
	assert.NotNil(t, c.MPA.Reply)
	assert.Equal(t, 1, c.Streams[0].FPDUs)
	assert.Equal(t, 1, c.Streams[1].FPDUs)
	assert.Empty(t, broken(c))
}

// A packet of which only the beginning was captured leaves a hole.
func TestShortSnapshots(t *testing.T) {
	s := newScript(t)
	s.plain()
	s.fpdu(client, send(1))
	s.fpdu(client, send(2, make([]byte, 100)...))
	last := len(s.packets) - 1
	s.packets[last] = s.packets[last][:80]
	s.fpdu(client, send(3))
	c := s.one()
	assert.Empty(t, broken(c))
	assert.Equal(t, 2, c.Streams[0].FPDUs, "the third is found again")
	assert.Equal(t, []Gap{{FPDU: 1, Missing: 84, Skipped: 40, Found: true}}, c.Streams[0].Gaps)
	assert.Zero(t, c.Streams[0].Incomplete)
	assert.False(t, s.read().Cut, "the file itself is whole")
}
