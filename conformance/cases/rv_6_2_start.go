package cases

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_start is the way from Idle to RTS: verbs draft 6.2.1.2, 6.2.2, 6.6.1.
var rv6_2_start = []conformance.Case{
	apiCase("6.2.1.2/idle-to-rts", onIdleLink(idleToRTS), "RV-6.2.1.2-M1"),
	apiCase("6.2.1.2/not-established", notEstablished, "RV-6.2.1.2-M2"),
	apiCase("6.2.1.2/last-message", onHost(lastMessageFirst), "RV-6.2.1.2-M3"),
	strict(apiCase("6.2.1.2/last-message-holds-receiving", onIdleLink(lastMessageHolds), "RV-6.2.1.2-S1")),
	apiCase("6.2.1.2/early-octets", onHost(earlyOctets), "RV-6.2.1.2-M4", "RV-6.2.1.2-M5"),
	apiCase("6.2.1.2/nothing-lost", onHost(nothingLost), "RV-6.2.1.2-M4", "RV-6.2.1.2-M5"),
	apiCase("6.2.2/connection-first", onIdleLink(connectionFirst), "RV-6.2.2-M2"),
	apiCase("6.2.2/sends-while-paused", sendsWhilePaused, "RV-6.2.2-M3"),
	apiCase("6.6.1/after-streaming-data", afterStreaming, "RV-6.6.1-M1"),
	apiCase("6.6.1/iwarp-only", onIdleHostPair(iwarpOnly), "RV-6.6.1-M2"),
	upperCase("6.6.1/foreign-octets", foreignOctets, "RV-6.6.1-M2"),
}

func idleToRTS(t *conformance.T, l *link) {
	s, peer := aStream(t)
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s}))
	a := attributes(t, l.qp)
	require.Equal(t, verbs.StateRTS, a.State)
	require.Same(t, s.Conn, a.Stream.Conn)
	l.peer = peer
	run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
	l.expect(aSend(1, l.mr.Bytes()[:4]))
}

// notEstablished offers connections that cannot carry data any more. What the system
// does not tell at once it tells by an event.
func notEstablished(t *conformance.T) {
	l := newIdleLink(t, verbs.QPConfig{})
	for what, as := range map[string]func(net.Conn) net.Conn{
		"a socket":            func(c net.Conn) net.Conn { return c },
		"what hides a socket": func(c net.Conn) net.Conn { return struct{ net.Conn }{c} },
	} {
		s, _ := aStream(t)
		s.Conn = as(s.Conn)
		require.NoError(t, s.Conn.Close())
		refuses(t, what+" that is closed here", verbs.ErrInvalidLLPStream, func() error {
			return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, ORD: ptr(2)})
		}, l.shown)
		require.Equal(t, verbs.StateIdle, l.qp.State())
	}

	s, peer := aStream(t)
	require.NoError(t, peer.Reset())
	err := l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s})
	if err != nil {
		require.ErrorIs(t, err, verbs.ErrInvalidLLPStream, "a connection that the peer has reset")
		require.Equal(t, verbs.StateIdle, l.qp.State())
		return
	}
	l.remains(verbs.StateError, verbs.EventLLPReset)
}

// lastMessageFirst starts iWARP with a last message, with and without markers, which
// are counted from the first FPDU.
func lastMessageFirst(t *conformance.T, n *host) {
	for _, markers := range []bool{false, true} {
		l := n.idleLink(verbs.QPConfig{})
		post(t, l.qp, l.aSend(1))
		s, peer := aStream(t)
		require.NoError(t, second(s.Conn.Write([]byte("hello, "))))
		s.MarkersOut = markers
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, LastMessage: []byte("now iWARP")}))
		peer.text("hello, now iWARP")
		l.peer = peer
		l.setFraming(framing{crc: true, markersIn: markers})
		l.expect(aSend(1, l.mr.Bytes()[:4]))
		l.settled()
	}
}

// lastMessageHolds has a peer that sends FPDUs as soon as it has a part of a large
// last message: they count as come after it.
func lastMessageHolds(t *conformance.T, l *link) {
	l.recv(1)
	s, peer := aStream(t)
	last := make([]byte, 16<<20) // more than the sockets hold
	done := make(chan error, 1)
	go func() { done <- l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, LastMessage: last}) }()
	peer.text(string(last[:1000]))
	l.peer = peer
	l.sendMessage([]byte("early"))
	l.quiet() // others work
	require.Equal(t, verbs.StateIdle, l.qp.State(), "the last message is not out")
	empty(t, l.rq)
	peer.text(string(last[1000:]))
	require.NoError(t, <-done)
	completes(t, l.rq, l.got(1, 5))
}

// earlyOctets has FPDUs come in one write with the last frame of the MPA startup.
func earlyOctets(t *conformance.T, n *host) {
	for round := range 3 {
		l := n.idleLink(verbs.QPConfig{})
		l.recv(1, 2, 3)
		x, y := tcpPair(t)
		c := t.Trace().Conn(x)
		ready := make(chan struct{})
		go func() {
			defer close(ready)
			assert.NoError(t, second(readStartup(c)))
			b := startup{Reply: true, CRC: true, Rev: 1}.octets()
			l.peer = newPeer(t, c, withCRC)
			for i := range 3 - round {
				b = append(b, l.peer.Frame(aSend(uint32(i+1), []byte{byte(i)}))...)
			}
			assert.NoError(t, l.peer.Raw(b))
		}()
		require.NoError(t, second(cm.Connect(t.Context(), y, l.qp, cm.Config{Rev: 1})))
		<-ready
		for i := range 3 - round {
			completes(t, l.rq, l.got(uint64(i+1), 1))
			require.Equal(t, byte(i), l.mr.Bytes()[64*(i+1)])
		}
	}
}

// nothingLost has the peer send before, while and after the queue pair goes to RTS.
func nothingLost(t *conformance.T, n *host) {
	for range counted(t, "round %d", 20) {
		l := n.idleLink(verbs.QPConfig{})
		s, peer := aStream(t)
		s.Role = asResponder
		const messages = 40
		before := t.Rand().IntN(messages)
		var early []byte
		for i := range uint64(messages) {
			postRecv(t, l.qp, verbs.Recv{ID: i, SGL: l.mr.SGL(int(i), 1)})
		}
		for i := range before {
			f := peer.Frame(aSend(uint32(i+1), []byte{byte(i)}))
			if i < before/2 {
				early = append(early, f...)
				continue
			}
			require.NoError(t, peer.Raw(f))
		}
		s.Early = early
		done := make(chan error, 1)
		go func() {
			var err error
			for i := before; i < messages; i++ {
				err = errors.Join(err, peer.Send(aSend(uint32(i+1), []byte{byte(i)})))
			}
			done <- err
		}()
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: s}))
		require.NoError(t, <-done)
		for i := range uint64(messages) {
			completes(t, l.rq, l.got(i, 1))
			require.Equal(t, byte(i), l.mr.Bytes()[i])
		}
		require.NoError(t, l.qp.Destroy())
	}
	n.quiet()
}

// connectionFirst tries to come to RTS without a connection, and with one whose
// startup fails.
func connectionFirst(t *conformance.T, l *link) {
	post(t, l.qp, l.aSend(1))
	require.ErrorIs(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS}), verbs.ErrInvalidLLPStream)
	require.Equal(t, verbs.StateIdle, l.qp.State())
	for what, reply := range map[string]string{"garbage": "HTTP/1.1 400 Bad Request\r\n\r\n", "the end": ""} {
		x, y := tcpPair(t)
		c := t.Trace().Conn(x)
		rest := make(chan []byte, 1)
		go func() {
			assert.NoError(t, second(readStartup(c)))
			_, _ = c.Write([]byte(reply))
			_ = c.(interface{ CloseWrite() error }).CloseWrite()
			b, _ := io.ReadAll(c)
			rest <- b
		}()
		require.Error(t, second(cm.Connect(t.Context(), y, l.qp, cm.Config{})), what)
		require.Equal(t, verbs.StateIdle, l.qp.State(), what)
		require.Nil(t, l.stream(), what)
		require.Empty(t, <-rest, "what follows the Request, after %s", what)
		empty(t, l.sq)
	}
	l.join()
	l.expect(aSend(1, l.mr.Bytes()[:4]))
}

// sendsWhilePaused has a stream wait for a receive and for room in its socket at once, in either order: what it has to
// send goes on when there is room, and what it waits to receive when there is a receive.
func sendsWhilePaused(t *conformance.T) {
	for pausedFirst := range inTurn(t, "paused first: %v", []bool{false, true}) {
		l := newIdleLink(t, verbs.QPConfig{GracefulReceive: true})
		far, near := tcpPair(t)
		begin(t, l.qp, verbs.StreamConfig{Conn: near, Role: asInitiator, CRC: true})
		l.peer = newPeer(t, far, withCRC) // too much for the trace
		pause := func() {
			l.sendMessage([]byte("text"))
			eventually(t, func() bool { return l.qp.Stats().ReceiveWaits > 0 }, "it waits for a receive")
		}
		if pausedFirst {
			pause()
		}
		mr := l.register(vast, allRights)
		fill(mr.Bytes(), 1)
		post(t, l.qp, verbs.Request{ID: 80, Op: verbs.OpWrite, SGL: mr.SGL(0, vast), Remote: theirs})
		l.full()
		if !pausedFirst {
			pause()
		}
		empty(t, l.sq)
		got := l.taggedMessage(opWrite, uint32(theirs.STag), theirs.TO).payload
		same(t, mr.Bytes(), got, "the RDMA Write")
		completes(t, l.sq, l.sentAs(80, verbs.OpWrite, verbs.StatusSuccess))
		empty(t, l.rq)
		l.recv(1)
		completes(t, l.rq, l.got(1, 4))
	}
}

// afterStreaming has two programs talk in a language of their own first. The side that
// starts iWARP does so with its last message (6.6.1.1); which of them opened the
// connection does not matter.
func afterStreaming(t *conformance.T) {
	for _, swap := range []bool{false, true} {
		w := newHostPair(t, hostPairConfig{Idle: true})
		x, y := tcpPair(t)
		if swap {
			x, y = y, x
		}
		talk := func(from, to net.Conn, text string) {
			require.NoError(t, second(from.Write([]byte(text))))
			b := make([]byte, len(text))
			require.NoError(t, second(io.ReadFull(to, b)))
			require.Equal(t, text, string(b))
		}
		talk(x, y, "EHLO can you do iWARP?")
		talk(y, x, "250 yes")
		const last = "STARTIWARP"
		active := verbs.StreamConfig{Conn: x, Role: asResponder, CRC: true}
		require.NoError(t, w.a.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &active, LastMessage: []byte(last)}))
		b := make([]byte, len(last))
		require.NoError(t, second(io.ReadFull(y, b)))
		require.Equal(t, last, string(b))
		begin(t, w.b.qp, verbs.StreamConfig{Conn: y, Role: asInitiator, CRC: true})
		moves(t, w.b.endpoint(), w.a.endpoint())
		moves(t, w.a.endpoint(), w.b.endpoint())
	}
}

// iwarpOnly keeps what two queue pairs send from RTS to a Terminate Message, and
// reads it as FPDUs with an opcode that RDMAP has.
func iwarpOnly(t *conformance.T, w *hostPair) {
	x, y := tcpPair(t)
	a, b := &capture{TCPConn: x.(*net.TCPConn)}, &capture{TCPConn: y.(*net.TCPConn)}
	s := verbs.StreamConfig{CRC: true, P2P: true, RTR: rtrWrite}
	s.Conn, s.Role = b, asResponder
	begin(t, w.b.qp, s)
	s.Conn, s.Role = a, asInitiator
	begin(t, w.a.qp, s)
	moves(t, w.a.endpoint(), w.b.endpoint())
	require.NoError(t, w.a.qp.Modify(verbs.ModifyQP{Next: verbs.StateTerminate}))
	ends(t, w.a.qp, verbs.StateError)
	ends(t, w.b.qp, verbs.StateError)
	for side, c := range map[string]*capture{"a": a, "b": b} {
		p := newRawEnd(&played{octets: c.octets}, withCRC)
		opcodes := map[byte]int{}
		var err error
		for {
			var u []byte
			if u, err = p.Next(); err != nil {
				break
			}
			require.LessOrEqual(t, u[1]&0x0F, byte(7), "an opcode of RFC 5040 4.1")
			opcodes[u[1]&0x0F]++
		}
		require.ErrorIs(t, err, io.EOF, "nothing but whole FPDUs from %s", side)
		require.NotZero(t, opcodes[3], "Sends from %s", side)
	}
}

// played is a connection that octets come from, and then nothing.
type played struct {
	net.Conn
	octets []byte
}

func (p *played) Read(b []byte) (int, error) {
	n := copy(b, p.octets)
	if p.octets = p.octets[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (p *played) SetReadDeadline(time.Time) error { return nil }

// foreignOctets has a peer that goes on in its own language.
func foreignOctets(t *conformance.T) {
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "\x00\x04QUIT\x00\x00\x00\x00\x00\x00"} {
		r := open(t, setup{})
		r.recv(1, 64)
		r.delivers(1, "abc")
		require.NoError(t, r.peer.Raw(append([]byte(text), make([]byte, 70000)...)))
		r.terminated(0x2002, nil, false) // its CRC is not one
		r.ended(verbs.StateError)
		r.events(verbs.EventBadCRC)
	}
}
