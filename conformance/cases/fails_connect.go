package cases

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// failsConnect are connections that do not come about, by each cause and at each step, what programs agree on beside MPA.
var failsConnect = []conformance.Case{
	apiCase("7.1.2/why-not-connected", onHost(whyNotConnected), "R5044-7.1.2-M9", "RV-8.3.1-M1"),
	apiCase("7.1.2/configurations-refused", onHost(configurationsRefused), "R5044-7.1.1-M19"),
	apiCase("7.1.1/other-protocols", onHost(otherProtocols), "R5044-7.1.1-M2", "R5044-7.1.1-M4", "R5044-7.1.2-M9"),
	apiCase("7.1.2/extensions-offered", extensionsOffered, "R5044-7.1.2-M13"),
	apiCase("7.1.2/extensions-of-a-peer", onHost(extensionsOfPeer), "R5044-7.1.2-M13"),
	apiCase("9.1/offers-without-reads", onHost(offersWithoutReads), "R6581-9.1-M4"),
	apiCase("9.2/dials-again-as-a-client", onHost(dialsAgain), "R6581-9.2-M1"),
}

// plays is a raw peer that listens: play gets each connection, in turn, and the address is where.
func plays(t *conformance.T, play ...func(net.Conn)) string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for _, p := range play {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p(c)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// nobodyListens is an address at which nobody does, and which nobody gets while the case lasts: a client's.
func nobodyListens(t *conformance.T) net.Addr {
	client, _ := tcpPair(t)
	return client.LocalAddr()
}

// replies reads a Request and answers it.
func replies(s startup) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := readStartup(c); err == nil {
			_, _ = c.Write(s.octets())
			_, _ = io.Copy(io.Discard, c)
		}
	}
}

// whyNotConnected has Dial fail at each step, by each cause: it says which, and leaves the queue pair as it was.
func whyNotConnected(t *conformance.T, n *host) {
	past, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	nobody := nobodyListens(t).String()
	gone, busy := n.newQP(verbs.QPConfig{}), n.link(verbs.QPConfig{}).qp
	require.NoError(t, gone.Destroy())
	request := func(then func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = readStartup(c)
			then(c)
		}
	}
	before := n.nic.Stats()
	for _, w := range []struct {
		name    string
		ctx     context.Context
		addr    string
		qp      *verbs.QP
		c       cm.Config
		cause   cm.Cause
		step    cm.Step
		is      error
		refused bool
		counted bool
	}{
		{name: "no queue pair", cause: cm.CauseLocal, step: cm.StepQP, is: verbs.ErrInvalidQP},
		{name: "a destroyed one", qp: gone, cause: cm.CauseLocal, step: cm.StepQP, is: verbs.ErrInvalidQP},
		{name: "a busy one", qp: busy, cause: cm.CauseLocal, step: cm.StepQP, is: verbs.ErrInvalidState},
		{name: "nobody listens", qp: n.qp, addr: nobody, cause: cm.CauseUnreachable, step: cm.StepTCP},
		{name: "too late for TCP", ctx: past, qp: n.qp, addr: nobody, cause: cm.CauseTimeout, step: cm.StepTCP, is: context.DeadlineExceeded},
		{name: "canceled before TCP", ctx: canceled, qp: n.qp, addr: nobody, cause: cm.CauseCanceled, step: cm.StepTCP, is: context.Canceled},
		{name: "mute", qp: n.qp, addr: plays(t, request(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })), c: cm.Config{Timeout: shortly}, cause: cm.CauseTimeout, step: cm.StepReadReply, is: context.DeadlineExceeded, counted: true},
		{name: "closed", qp: n.qp, addr: plays(t, request(func(net.Conn) {})), cause: cm.CauseClosed, step: cm.StepReadReply, is: io.EOF, counted: true},
		{name: "reset", qp: n.qp, addr: plays(t, request(func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) })), cause: cm.CauseReset, step: cm.StepReadReply, counted: true},
		{name: "rejected", qp: n.qp, addr: plays(t, replies(startup{Reply: true, CRC: true, Reject: true, Rev: 2, PrivateData: []byte("not today")})), cause: cm.CauseRejected, step: cm.StepReadReply, refused: true},
		{name: "another key", qp: n.qp, addr: plays(t, request(func(c net.Conn) { _, _ = c.Write(make([]byte, 20)) })), cause: cm.CauseIncompatible, step: cm.StepReadReply, counted: true},
	} {
		t.In(w.name, func() {
			if w.ctx == nil {
				w.ctx = t.Context()
			}
			if w.addr == "" {
				w.addr = plays(t, func(net.Conn) {})
			}
			conn, err := cm.Dial(w.ctx, w.addr, w.qp, w.c)
			require.Nil(t, conn)
			var why *cm.ConnectError
			require.ErrorAs(t, err, &why)
			require.Equal(t, []any{cm.Dialing, w.cause, w.step, w.addr}, []any{why.Doing, why.Cause, why.Step, why.Remote}, "%v", err)
			require.Contains(t, err.Error(), w.addr)
			require.NotContains(t, why.Sentence(), w.addr, "the sentence without the peer")
			if w.is != nil {
				require.ErrorIs(t, err, w.is)
			}
			var late *cm.TimeoutError
			require.Equal(t, w.cause == cm.CauseTimeout, errors.As(err, &late))
			var timeout net.Error
			require.True(t, late == nil || errors.As(err, &timeout) && timeout.Timeout(), "it is a net.Error")
			if w.refused {
				require.Equal(t, "not today", string(why.PrivateData))
				require.Contains(t, why.Sentence(), "not today")
			}
			if w.qp == n.qp {
				require.Equal(t, verbs.StateIdle, n.qp.State(), "the queue pair is as it was")
			}
			after := n.nic.Stats()
			require.Equal(t, []uint64{before.ConnectsFailed + either[uint64](w.counted, 1, 0), before.ConnectsRefused + either[uint64](w.refused, 1, 0)},
				[]uint64{after.ConnectsFailed, after.ConnectsRefused}, "attempts that failed, and that were refused")
			before = after
		})
	}
	far, near := tcpPair(t)
	go replies(startup{Reply: true, CRC: true, Rev: 2, Enhanced: true, IRD: 4, ORD: 4})(far)
	require.NoError(t, second(cm.Connect(t.Context(), near, n.qp, cm.Config{Model: cm.ClientServer})), "and it can be connected")
}

// configurationsRefused has Connect and Accept refuse what cannot be: at the limit it goes, one beyond it does not.
func configurationsRefused(t *conformance.T, n *host) {
	for _, w := range []struct {
		name string
		good bool
		c    cm.Config
	}{
		{"508 octets", true, cm.Config{PrivateData: make([]byte, 508)}},
		{"509 octets", false, cm.Config{PrivateData: make([]byte, 509)}},
		{"512 octets, revision 1", true, cm.Config{Rev: 1, PrivateData: make([]byte, 512)}},
		{"513 octets, revision 1", false, cm.Config{Rev: 1, PrivateData: make([]byte, 513)}},
		{"500 octets beside an offer", true, cm.Config{Extensions: true, PrivateData: make([]byte, 500)}},
		{"501 octets beside an offer", false, cm.Config{Extensions: true, PrivateData: make([]byte, 501)}},
		{"504 octets beside an offer, revision 1", true, cm.Config{Extensions: true, Rev: 1, PrivateData: make([]byte, 504)}},
		{"505 octets beside an offer, revision 1", false, cm.Config{Extensions: true, Rev: 1, PrivateData: make([]byte, 505)}},
		{"revision 3", false, cm.Config{Rev: 3}},
		{"peer-to-peer of revision 1", false, cm.Config{Rev: 1, Model: cm.PeerToPeer}},
		{"an unknown RTR", false, cm.Config{RTR: 8}},
		{"a Read as the RTR, without Reads", false, cm.Config{RTR: cm.RTRRead, ORD: verbs.None}},
	} {
		t.In(w.name, func() {
			l, qp := listens(t, cm.ListenConfig{}), n.newQP(verbs.QPConfig{})
			done := make(chan error, 1)
			go func() {
				conn, err := cm.Dial(t.Context(), l.Addr().String(), qp, w.c)
				if err == nil {
					err = conn.Abort()
				}
				done <- err
			}()
			if !w.good {
				err := receive(t, done, "Dial does not end")
				var why *cm.ConnectError
				require.ErrorAs(t, err, &why)
				require.Equal(t, []any{cm.CauseLocal, cm.StepConfig}, []any{why.Cause, why.Step}, "%v", err)
				require.Equal(t, verbs.StateIdle, qp.State())
				return
			}
			req := must(l.Accept(t.Context()))(t)
			require.Equal(t, w.c.PrivateData, req.PrivateData(), "what the program is told")
			require.Equal(t, w.c.Extensions, req.Extensions())
			c := w.c
			c.PrivateData = append(c.PrivateData, 0)
			if w.c.Extensions {
				require.Error(t, second(req.Accept(t.Context(), n.qp, c)), "one octet more in the Reply")
				require.Equal(t, verbs.StateIdle, n.qp.State())
			}
			conn := must(req.Accept(t.Context(), n.newQP(verbs.QPConfig{}), w.c))(t, "the same in the Reply")
			require.NoError(t, receive(t, done, "Dial does not end"))
			receive(t, conn.Done(), "it ends")
			require.Error(t, second(req.Accept(t.Context(), n.qp, w.c)), "twice")
			require.Error(t, req.Reject(nil), "twice")
		})
	}
}

// otherProtocols has a peer of another protocol at the other end, on either side: the error names it, and a listener answers
// it in its own words, if it is told some.
func otherProtocols(t *conformance.T, n *host) {
	for speaks, octets := range named(t, "%s", map[string]string{
		"HTTP": "GET / HTTP/1.1\r\nHost: here\r\n\r\n", "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 20),
		"SSH": "SSH-2.0-OpenSSH_9.9\r\n" + strings.Repeat(" ", 20), "": strings.Repeat("\x16\x04\x01", 10),
	}) {
		said := either(speaks == "HTTP", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", octets)
		addr := plays(t, func(c net.Conn) {
			_, _ = readStartup(c)
			_, _ = c.Write([]byte(said))
			_, _ = io.Copy(io.Discard, c)
		})
		names := func(err error, doing cm.Doing) {
			var why *cm.ConnectError
			require.ErrorAs(t, err, &why)
			var unfit *cm.IncompatibleError
			require.ErrorAs(t, err, &unfit)
			require.Equal(t, []any{doing, cm.CauseIncompatible, speaks}, []any{why.Doing, why.Cause, unfit.Speaks}, "%v", err)
			require.NotEmpty(t, why.Remedy)
			require.Zero(t, why.Terminate)
		}
		names(second(cm.Dial(t.Context(), addr, n.qp, cm.Config{})), cm.Dialing)

		told := make(chan error, 1)
		l := listens(t, cm.ListenConfig{
			Answer:         func(p string) []byte { return []byte("no " + p) },
			OnStartupError: func(_ net.Addr, err error) { told <- err },
		})
		c := knocks(t, l, 0)
		require.NoError(t, second(c.Write([]byte(octets))))
		_ = c.(*net.TCPConn).CloseWrite() // of a connection that has ended, perhaps
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience(t))))
		got, err := io.ReadAll(c)
		if err == nil { // a reset may come first where nothing is said
			require.Equal(t, either(speaks == "", "", "no "+speaks), string(got), "what it is told")
		} else {
			require.Empty(t, speaks, "%v", err)
		}
		names(receive(t, told, "the program is not told"), cm.Awaiting)
		comesToHold(t, 0, "admission listener: place")
	}
}

// extensionsOffered has either program ask for RFC 7306, or not, whatever their queue pairs were made for: it is spoken where
// both do, and a request for it of before completes where it is not.
func extensionsOffered(t *conformance.T) {
	for bits := range counted(t, "%04b", uint32(16)) {
		w := newHostPair(t, hostPairConfig{Idle: true})
		asks, agrees, made := bits&1 != 0, bits&2 != 0, bits&4 != 0
		early := made && bits&8 != 0
		a, b := w.a.newQP(verbs.QPConfig{Extensions: made}), w.b.newQP(verbs.QPConfig{Extensions: made})
		if early {
			post(t, a, verbs.Request{ID: 1, Op: verbs.OpImmediate, Immediate: 7})
		}
		postRecv(t, b, verbs.Recv{ID: 2})
		l := listens(t, cm.ListenConfig{})
		dialled := make(chan *cm.Conn, 1)
		go func() {
			c, err := cm.Dial(t.Context(), l.Addr().String(), a, cm.Config{Extensions: asks, PrivateData: []byte("ask")})
			if err != nil {
				t.Errorf("Dial: %v", err)
			}
			dialled <- c
		}()
		req := must(l.Accept(t.Context()))(t)
		require.Equal(t, []any{"ask", asks}, []any{string(req.PrivateData()), req.Extensions()})
		y := must(req.Accept(t.Context(), b, cm.Config{Extensions: agrees, PrivateData: []byte("answer")}))(t)
		x := receive(t, dialled, "Dial does not end")
		require.NotNil(t, x)
		require.Equal(t, "answer", string(x.PrivateData()))
		require.Equal(t, []bool{asks && agrees, asks && agrees}, []bool{x.Extensions(), y.Extensions()}, "what was agreed")
		spoken, understood := either(asks, asks && agrees, made), either(agrees, asks && agrees, made)
		if !early || spoken && understood { // else the request ends the stream, and what was agreed with it
			require.Equal(t, spoken, attributes(t, a).Extensions, "of the Initiator's queue pair")
			require.Equal(t, understood, attributes(t, b).Extensions, "of the Responder's queue pair")
		}
		if early && spoken {
			completes(t, w.a.cq, verbs.Completion{ID: 1, QP: a.ID(), Op: verbs.OpImmediate})
		} else if early {
			completes(t, w.a.cq, verbs.Completion{ID: 1, QP: a.ID(), Op: verbs.OpImmediate, Status: verbs.StatusInvalidWQE})
		}
		require.NoError(t, a.Destroy())
		require.NoError(t, b.Destroy())
	}
}

// extensionsOfPeer has peers answer an offer of RFC 7306 with what is none: their private data is the program's, as it is.
func extensionsOfPeer(t *conformance.T, n *host) {
	const key = "RFC7306"
	for _, w := range []struct {
		name, reply, private string
		agreed               bool
	}{
		{"both", key + "\x83more", "more", true},
		{"both, and what is reserved", key + "\xFFmore", "more", true},
		{"both, and no private data", key + "\x83", "", true},
		{"Atomics alone", key + "\x82more", "more", false},
		{"Immediate Data alone", key + "\x81more", "more", false},
		{"what was sent, back", key + "\x03more", key + "\x03more", false},
		{"another key", "RFC7307\x83more", "RFC7307\x83more", false},
		{"a part of the key", key, key, false},
		{"nothing", "", "", false},
	} {
		t.In(w.name, func() {
			far, near := tcpPair(t)
			go replies(startup{Reply: true, CRC: true, Rev: 2, Enhanced: true, IRD: 4, ORD: 4, PrivateData: []byte(w.reply)})(far)
			qp := n.newQP(verbs.QPConfig{})
			c := must(cm.Connect(t.Context(), near, qp, cm.Config{Extensions: true, Model: cm.ClientServer, NoNudge: true}))(t)
			require.Equal(t, []any{w.private, w.agreed, w.agreed}, []any{string(c.PrivateData()), c.Extensions(), attributes(t, qp).Extensions})
			require.NoError(t, qp.Destroy())

			x, y := tcpPair(t)
			require.NoError(t, second(x.Write(startup{CRC: true, Rev: 2, PrivateData: []byte(w.reply)}.octets())))
			req := must(cm.Await(t.Context(), y, cm.Config{}))(t)
			mirrored := w.name == "what was sent, back" // an offer, from this side
			require.Equal(t, mirrored, req.Extensions(), "an offer in a Request has R clear")
			require.Equal(t, either(mirrored, "more", w.reply), string(req.PrivateData()))
			require.NoError(t, req.Reject(nil))
		})
	}
}

// offersWithoutReads connects queue pairs that answer no Reads, or have none: what they offer, and with what the Initiator
// begins.
func offersWithoutReads(t *conformance.T, n *host) {
	for _, w := range []struct {
		name     string
		qp       verbs.QPConfig
		c        cm.Config
		ird, ord uint16
		rtr      uint8 // C (2) and D (4) of the Request
	}{
		{"as it comes", verbs.QPConfig{IRD: 3, ORD: 5}, cm.Config{}, 3, 5, 6},
		{"no inbound Reads", verbs.QPConfig{IRD: 3, ORD: 5, NoInboundRead: true}, cm.Config{}, 0, 5, 2},
		{"no inbound Reads, but an IRD", verbs.QPConfig{IRD: 3, ORD: 5, NoInboundRead: true}, cm.Config{IRD: 2}, 2, 5, 2},
		{"none", verbs.QPConfig{IRD: 3, ORD: 5}, cm.Config{IRD: verbs.None, ORD: verbs.None}, 0, 0, 2},
		{"fewer", verbs.QPConfig{IRD: 3, ORD: 5}, cm.Config{IRD: 1, ORD: 2}, 1, 2, 6},
		{"more than there are", verbs.QPConfig{IRD: 3, ORD: 5}, cm.Config{IRD: 9, ORD: 9}, 3, 5, 6},
		{"a place for Writes", verbs.QPConfig{IRD: 3, ORD: 5, PlacedWrites: true}, cm.Config{}, 4, 6, 6},
		{"a place for Writes alone", verbs.QPConfig{NoReads: true, PlacedWrites: true}, cm.Config{}, 1, 1, 6},
	} {
		t.In(w.name, func() {
			far, near := tcpPair(t)
			qp := n.newQP(w.qp)
			done := make(chan error, 1)
			go func() { done <- second(cm.Connect(t.Context(), near, qp, w.c)) }()
			s := must(readStartup(far))(t)
			require.Equal(t, []any{w.ird, w.ord, w.rtr}, []any{s.IRD, s.ORD, s.RTR & 6}, "IRD, ORD and RTR")
			_ = far.Close()
			require.Error(t, receive(t, done, "Connect does not end"))
			require.NoError(t, qp.Destroy())
		})
	}
}

// dialsAgain has a peer that knows peer-to-peer mode, but none of this side's ready-to-receive frames: Dial comes again
// without the mode, once, if the program leaves it the choice.
func dialsAgain(t *conformance.T, n *host) {
	var second startup
	unfit := func(c net.Conn) {
		s, err := readStartup(c)
		if err != nil {
			return
		}
		_, _ = c.Write(startup{Reply: true, CRC: true, Rev: 2, Enhanced: true, IRD: s.ORD, ORD: s.IRD, P2P: true, RTR: 1}.octets())
		_, _ = io.Copy(io.Discard, c)
	}
	addr := plays(t, unfit, func(c net.Conn) {
		second, _ = readStartup(c)
		_, _ = c.Write(startup{Reply: true, CRC: true, Rev: 2, Enhanced: true, IRD: 4, ORD: 4}.octets())
		_, _ = io.Copy(io.Discard, c)
	})
	c := must(cm.Dial(t.Context(), addr, n.qp, cm.Config{NoNudge: true}))(t)
	require.False(t, c.P2P())
	require.False(t, second.P2P, "the second Request")
	require.NoError(t, c.Abort())
	_, err := cm.Dial(t.Context(), plays(t, unfit), n.newQP(verbs.QPConfig{}), cm.Config{Model: cm.PeerToPeer})
	var why *cm.ConnectError
	require.ErrorAs(t, err, &why)
	require.EqualValues(t, 0x2007, why.Terminate, "%v", err)
}
