package tap

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// inside is a Tap as package verbs has it, which is instrument.Streams.
type inside struct{ *Tap }

// Stream puts the tap between. The startup frames are those of s, or are made of what was agreed on.
func (t inside) Stream(_ wr.QPID, s *mpa.Stream, preamble int) error {
	st := t.begin(s.Conn)
	if st == nil {
		return nil
	}
	if s.EMSS == 0 {
		s.EMSS = mpa.EMSS(s.Conn) // a wrapped connection does not show it
	}
	st.preamble = preamble
	st.initiator = s.Role == mpa.Initiator
	st.request, st.reply = startups(s)
	if !t.payload {
		st.frames(interpose.In).Begin(s.CRC, s.MarkersIn)
		st.frames(interpose.Out).Begin(s.CRC, s.MarkersOut)
	}
	st.dirs[0].early = s.Early
	s.Conn = interpose.New(s.Conn, nil, st).Offered()
	return nil
}

// Conn puts the tap between the caller and server, on which an MPA startup is to come: what the caller writes is what
// client, the Initiator, has sent. It is for a proxy.
func (t *Tap) Conn(client, server net.Conn) net.Conn {
	st := t.between(client, server)
	if st == nil {
		return server
	}
	return interpose.New(server, nil, st).Offered()
}

// between opens the stream of a proxy; nil as begin says.
func (t *Tap) between(client, server net.Conn) *capturedConn {
	st := t.begin(ends{server, client})
	if st == nil {
		return nil
	}
	st.initiator, st.begun = true, true
	if !t.payload {
		st.frames(interpose.In)
		st.frames(interpose.Out)
	}
	st.handshake(1)
	return st
}

// ends is a connection between the client of a proxy and its server.
type ends struct {
	net.Conn // to the server
	client   net.Conn
}

func (e ends) LocalAddr() net.Addr { return e.client.RemoteAddr() }

// startups are the frames that s came of.
func startups(s *mpa.Stream) (request, reply mpa.Startup) {
	if s.Request != nil && s.Reply != nil {
		return *s.Request, *s.Reply
	}
	depth := func(n int) uint16 {
		if n < 0 {
			return mpa.NotNegotiated
		}
		return uint16(min(n, mpa.NotNegotiated))
	}
	mine := mpa.Startup{CRC: s.CRC, Markers: s.MarkersIn, Rev: 1, Enhanced: s.Enhanced}
	peers := mine
	peers.Markers = s.MarkersOut
	if s.Enhanced {
		mine.Rev, peers.Rev = 2, 2
		mine.IRD, mine.ORD = depth(s.IRD), depth(s.ORD)
		peers.IRD, peers.ORD = depth(s.PeerIRD), depth(s.PeerORD)
		mine.P2P, peers.P2P = s.P2P, s.P2P
		mine.RTR, peers.RTR = s.RTR, s.RTR
	}
	if s.Role == mpa.Initiator {
		request, reply = mine, peers
	} else {
		request, reply = peers, mine
	}
	reply.Reply = true
	return request, reply
}

// capturedConn is one connection in the capture.
type capturedConn struct {
	t   *Tap
	key [2]string

	mu             sync.Mutex
	preamble       int // octets to come before the startup; guarded by mu, as all below
	initiator      bool
	request, reply mpa.Startup
	begun, over    bool
	dirs           [2]direction       // in, out
	startups       interpose.Startups // a proxy's
}

// direction is what one end sends.
type direction struct {
	from   netip.AddrPort
	seq    uint32
	frames *interpose.Frames // nil: octets are as they are
	early  []byte
	ended  bool
}

// frames has direction d cut into FPDUs, so that the program's octets can be left out.
func (st *capturedConn) frames(d interpose.Direction) *interpose.Frames {
	st.dirs[d].frames = interpose.NewFrames(st, d, &st.startups)
	return st.dirs[d].frames
}

// begin opens a stream on nc; nil if its other end is in the capture already, or the capture is closed.
func (t *Tap) begin(nc net.Conn) *capturedConn {
	local, peer := nc.LocalAddr(), nc.RemoteAddr()
	here, there := addressOf(local), addressOf(peer)
	st := &capturedConn{t: t, key: [2]string{here.String(), there.String()}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams++
	if t.closed {
		return nil
	}
	if !here.IsValid() || !there.IsValid() || here.Addr().Is4() != there.Addr().Is4() {
		// A pipe: addresses of documentation (RFC 5737), a port for each.
		port := uint16(1024 + t.streams%60000)
		here = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), port)
		there = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), port)
		st.key = [2]string{here.String(), there.String()}
	} else if t.open[[2]string{st.key[1], st.key[0]}] > 0 {
		return nil
	}
	t.open[st.key]++
	st.dirs[0].from, st.dirs[1].from = there, here
	return st
}

func addressOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// segment writes a packet of direction d; mu is held.
func (st *capturedConn) segment(d int, flags byte, payload []byte) {
	from, to := &st.dirs[d], &st.dirs[1-d]
	for first := true; first || len(payload) > 0; first = false {
		n := min(len(payload), maxSegment)
		st.t.record(packet(time.Now(), from.from, to.from, from.seq, to.seq, flags, payload[:n]))
		from.seq += uint32(n)
		payload = payload[n:]
	}
	if flags&(syn|fin) != 0 {
		from.seq++
	}
}

// connect begins the connection in the capture, and its MPA startup; mu is held.
func (st *capturedConn) connect() {
	st.begun = true
	first := 0
	if st.initiator {
		first = 1
	}
	if st.dirs[0].seq == 0 && st.dirs[1].seq == 0 {
		st.handshake(first)
	}
	st.frame(first, st.request)
	st.frame(1-first, st.reply)
	if early := st.dirs[0].early; len(early) > 0 {
		st.dirs[0].early = nil
		st.octets(0, early)
	}
}

// handshake is TCP's.
func (st *capturedConn) handshake(first int) {
	st.segment(first, syn, nil)
	st.segment(1-first, syn|ack, nil)
	st.segment(first, ack, nil)
}

// frame writes a startup frame.
func (st *capturedConn) frame(d int, s mpa.Startup) {
	if !st.t.payload {
		s.PrivateData = make([]byte, len(s.PrivateData))
	}
	if b, err := s.Append(nil); err == nil {
		st.segment(d, psh|ack, b)
	}
}

// Carry implements interpose.Observer.
func (st *capturedConn) Carry(d interpose.Direction, b []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over || st.dirs[d].ended || len(b) == 0 {
		return
	}
	if n := min(st.preamble, len(b)); d == interpose.Out && n > 0 {
		st.preamble -= n
		if st.dirs[1].seq == 0 {
			st.handshake(1)
		}
		what := b[:n]
		if !st.t.payload {
			what = make([]byte, n)
		}
		st.segment(1, psh|ack, what)
		b = b[n:]
	}
	if !st.begun && st.preamble == 0 {
		st.connect()
	}
	st.octets(d, b)
}

// octets writes what the program may see of b; mu is held.
func (st *capturedConn) octets(d interpose.Direction, b []byte) {
	f := st.dirs[d].frames
	switch {
	case len(b) == 0:
	case f == nil:
		st.segment(int(d), psh|ack, b)
	default:
		waiting := !f.Started()
		f.Feed(b)
		if waiting && f.Started() { // so the other direction need not wait either
			st.dirs[1-d].frames.Feed(nil)
		}
	}
}

// Startup implements interpose.Sink.
func (st *capturedConn) Startup(d interpose.Direction, s *mpa.Startup, raw []byte) {
	if s.Reject {
		st.Raw(d, raw)
		return
	}
	st.frame(int(d), *s)
}

// FPDU implements interpose.Sink.
func (st *capturedConn) FPDU(d interpose.Direction, u mpa.FPDU) {
	f := st.dirs[d].frames
	st.segment(int(d), psh|ack, f.Append(redacted(u.ULPDU), nil, f.Wrong(u)))
}

// Raw implements interpose.Sink: what is no FPDU is zeros. If MPA's startup was never whole, nothing of either end
// is one.
func (st *capturedConn) Raw(d interpose.Direction, b []byte) {
	st.segment(int(d), psh|ack, make([]byte, len(b)))
	if b = st.dirs[1-d].frames.GiveUp(); len(b) > 0 {
		st.segment(1-int(d), psh|ack, make([]byte, len(b)))
	}
}

// End implements interpose.Observer: an RST ends both directions.
func (st *capturedConn) End(d interpose.Direction, reset bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over || st.dirs[d].ended {
		return
	}
	if !st.begun {
		st.connect()
	}
	if f := st.dirs[d].frames; f != nil {
		if rest := f.Rest(); len(rest) > 0 {
			st.segment(int(d), psh|ack, make([]byte, len(rest)))
		}
	}
	flag := byte(fin)
	if reset {
		flag = rst
	}
	st.segment(int(d), flag|ack, nil)
	st.dirs[d].ended = true
	if reset || st.dirs[1-d].ended {
		st.finish()
	}
}

// Close implements interpose.Observer.
func (st *capturedConn) Close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.finish()
}

// finish removes the stream from the tap; mu is held.
func (st *capturedConn) finish() {
	if st.over {
		return
	}
	st.over = true
	st.t.mu.Lock()
	defer st.t.mu.Unlock()
	if st.t.open[st.key]--; st.t.open[st.key] == 0 {
		delete(st.t.open, st.key)
	}
}
