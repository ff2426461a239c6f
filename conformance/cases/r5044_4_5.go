package cases

import (
	"io"
	"math"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_4_5 is how long FPDUs are: RFC 5044 3 and 4.5.
var r5044_4_5 = []conformance.Case{
	apiCase("4.5/mulpdu-formula", mulpduFormula, "R5044-3-M3", "R5044-4.5-M1", "R5044-4.5-M2", "R5044-4.5-M3"),
	apiCase("4.5/mulpdu-used", onHost(mulpduUsed), "R5044-3-M2", "R5044-3-M5", "R5044-4.5-M1", "R5044-4.5-M2"),
	apiCase("4.5/mulpdu-least", onHost(mulpduLeast), "R5044-3-M3", "R5044-4.5-M3"),
	apiCase("3/mulpdu-most", onHost(mulpduMost), "R5044-3-M3", "R5044-3-M4"),
	apiCase("4.5/nothing-cut-to-fit", onHost(nothingCutToFit), "R5044-4.5-M4"),
	upperCase("3/mulpdu-of-the-connection", mulpduOfConnection, "R5044-3-M2", "R5044-3-M5"),
}

// mulpduFormula works 4.5's formula out for itself.
func mulpduFormula(t *conformance.T) {
	for emss := range 70_000 {
		plain := emss - 6 - emss%4
		marked := plain - 4*(emss/512)
		if emss%512 != 0 {
			marked -= 4
		}
		for _, x := range []struct {
			markers bool
			want    int
		}{{false, plain}, {true, marked}} {
			want := x.want
			if want < 128 {
				want = 128
			}
			if want > 64768 {
				want = 64768
			}
			if got := mpa.MULPDU(emss, x.markers); got != want {
				t.Fatalf("EMSS %d, markers %v: MULPDU %d, not %d", emss, x.markers, got, want)
			}
		}
	}
	for _, emss := range []int{math.MinInt / 2, -1, 131_072, math.MaxInt/2 + 4} {
		for _, markers := range []bool{false, true} {
			want := either(emss > 0, 64768, 128)
			require.Equal(t, want, mpa.MULPDU(emss, markers), "EMSS %d", emss)
		}
	}
}

// lengths are the ULPDUs of a message of n octets in ULPDUs of at most mulpdu, each
// with a header.
func lengths(n, header, mulpdu int) (list []int) {
	for n > mulpdu-header {
		list = append(list, mulpdu)
		n -= mulpdu - header
	}
	return append(list, n+header)
}

// sentIn reads the ULPDUs of messages, up to one that has the L bit.
func sentIn(w *peer) (list []int) {
	for {
		f := w.take()
		list = append(list, len(f.ulpdu))
		if f.ulpdu[0]&0x40 != 0 {
			return list
		}
	}
}

// cutInto has a queue pair send messages of each kind, whose lengths are around
// multiples of what a segment takes.
func cutInto(t *conformance.T, n *host, emss int, markers bool, mulpdu int) {
	l := n.linkOfEMSS(emss, markers)
	for k, octets := range []int{0, 1, mulpdu - 18, mulpdu - 17, mulpdu - 14, mulpdu - 13, 3*(mulpdu-18) + 1, 20_000} {
		t.Part("EMSS %d, markers %v, %d octets", emss, markers, octets)
		sge := l.mr.SGL(0, octets)
		post(t, l.qp,
			verbs.Request{ID: 1, SGL: sge},
			verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: sge, Remote: theirs},
		)
		require.Equal(t, lengths(octets, 18, mulpdu), sentIn(l.peer), "the Send")
		require.Equal(t, lengths(octets, 14, mulpdu), sentIn(l.peer), "the RDMA Write")
		from := l.mr.Remote(0)
		l.send(aReadRequest(uint32(k+1), read{nowhere, nowhereTO, uint32(octets), uint32(from.STag), from.TO}))
		require.Equal(t, lengths(octets, 14, mulpdu), sentIn(l.peer), "the RDMA Read Response")
		completes(t, l.sq, l.sentAs(1, verbs.OpSend, 0), l.sentAs(2, verbs.OpWrite, 0))
	}
	require.NoError(t, l.qp.Destroy())
}

// mulpduUsed compares with the values of the wire reference.
func mulpduUsed(t *conformance.T, n *host) {
	for _, x := range []struct{ emss, plain, marked int }{
		{536, 530, 522}, {1220, 1214, 1202}, {1448, 1442, 1430}, {1460, 1454, 1442}, {8960, 8954, 8882},
	} {
		cutInto(t, n, x.emss, false, x.plain)
		cutInto(t, n, x.emss, true, x.marked)
	}
}

// mulpduLeast: below 134 octets MULPDU does not follow EMSS down. A message that
// must not be cut is not.
func mulpduLeast(t *conformance.T, n *host) {
	for _, emss := range []int{1, 40, 64, 127, 128, 133} {
		cutInto(t, n, emss, false, 128)
		cutInto(t, n, emss, true, 128)
		l := n.linkOfEMSS(emss, false)
		post(t, l.qp, l.aRead(1))
		l.expect(l.asks(1))
	}
}

// mulpduMost: no path is wide enough for ULPDUs above 64768 octets, and nobody else
// can give MPA one.
func mulpduMost(t *conformance.T, n *host) {
	big := n.register(1<<20, allRights)
	for _, markers := range []bool{false, true} {
		for _, emss := range []int{65483, 131_072, 1 << 30} {
			t.Part("EMSS %d, markers %v", emss, markers)
			l := n.linkOfEMSS(emss, markers)
			post(t, l.qp,
				verbs.Request{ID: 1, SGL: big.SGL(0, 1<<20)},
				verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: big.SGL(0, 1<<20), Remote: theirs},
			)
			for _, header := range []int{18, 14} {
				octets := 0
				for _, k := range sentIn(l.peer) {
					require.LessOrEqual(t, k, 64768, "ULPDU_Length")
					octets += k - header
				}
				require.Equal(t, 1<<20, octets, "the message")
			}
			require.NoError(t, l.qp.Destroy())
		}
		f := mpa.NewFramer(true, markers)
		before := []byte("before")
		require.Equal(t, before, f.AppendFPDU(before, make([]byte, 64769)), "a ULPDU of 64769 octets")
		require.Equal(t, before, f.AppendFPDU(before, make([]byte, 18), make([]byte, 64751)), "and in pieces")
		require.Zero(t, f.Size(64769))
		good := f.AppendFPDU(nil, make([]byte, 18), make([]byte, 64750))
		w := newPeer(t, nil, framing{crc: true, markersIn: markers})
		w.early = good
		require.Len(t, w.next(), 64768, "one of 64768")
	}
}

// nothingCutToFit posts short and long messages in one list: FPDUs share a TCP
// segment, and none is cut below MULPDU because another is in it already.
func nothingCutToFit(t *conformance.T, n *host) {
	for _, markers := range []bool{false, true} {
		for _, x := range []struct{ emss, plain, marked int }{{64, 128, 128}, {536, 530, 522}, {1460, 1454, 1442}} {
			t.Part("EMSS %d, markers %v", x.emss, markers)
			mulpdu := either(markers, x.marked, x.plain)
			l := n.linkOfEMSS(x.emss, markers)
			var list []verbs.Request
			for i := range 60 {
				octets := []int{1, 100, 9000, 3}[i%4]
				list = append(list, verbs.Request{ID: uint64(i), SGL: l.mr.SGL(0, octets)})
			}
			post(t, l.qp, list...)
			for i := range list {
				require.Equal(t, lengths([]int{1, 100, 9000, 3}[i%4], 18, mulpdu), sentIn(l.peer), "message %d", i)
			}
			require.NoError(t, l.qp.Destroy())
		}
	}
}

// mulpduOfConnection offers TCP maximum segment sizes, and computes from what came
// of it how long segments have to be.
func mulpduOfConnection(t *conformance.T) {
	for mss := range inTurn(t, "TCP_MAXSEG %d", []int{536, 1460, 8960}) {
		for markers := range inTurn(t, "markers %v", []bool{false, true}) {
			r := openQP(t, tester(t), uppertester.OpenArgs{})
			var at uppertester.Listening
			require.NoError(t, r.up.Listen(uppertester.ConnectArgs{QP: r.QP, Rev: 1}, &at))
			nc, emss := dialSegments(t, at.Addr, mss)
			r.over(nc)
			flags, want := byte(frameC), emss-6-emss%4
			if markers {
				flags, want = frameC|frameM, emss-6-emss%4-4*((emss+511)/512)
			}
			r.raw(requestFrame(flags, 1, nil))
			r.frame()
			r.full(flags)
			r.send(aWrite(0, 0, nil))
			b := r.region(60_000, allRights)
			r.posts(b, 60_000)
			require.Equal(t, lengths(60_000, 18, want), r.wholeMessage(aSend(1, nil), b.first), "EMSS %d", emss)
		}
	}
}

// dialSegments connects with a maximum segment size, and returns what is in use.
func dialSegments(t *conformance.T, addr string, mss int) (net.Conn, int) {
	d := net.Dialer{Control: offerSegments(mss)}
	c := must(d.DialContext(t.Context(), "tcp", addr))(t)
	t.Cleanup(func() { _ = c.Close() })
	emss := segments(c.(*net.TCPConn))
	if emss == 0 || emss > mss {
		t.Skipf("this system does not let a program choose TCP's maximum segment size")
	}
	return c, emss
}

// r5044_7_api is what of RFC 5044 7.1 shows to a program that has the connection
// before and after MPA.
var r5044_7_api = []conformance.Case{
	apiCase("7.1/same-octet", onHost(sameOctet), "R5044-7.1-M1"),
	apiCase("7.1/queue-pair-first", onHost(queuePairFirst), "R5044-7.1-M2"),
	apiCase("7.1.2/tcp-open-after-rejecting", openAfterRejecting, "R5044-7.1.2-M4"),
	apiCase("7.1.2/tcp-open-after-rejection", onIdleLink(openAfterRejection), "R5044-7.1.2-M7"),
}

// byHand is a TCP connection, one end of which is played by hand.
func byHand(t *conformance.T) (*peer, net.Conn) {
	x, y := tcpPair(t)
	return newPeer(t, t.Trace().Conn(x), withCRC), y
}

// sameOctet has text go both ways, and behind it a startup frame and an FPDU. The
// program has read some octets more than its text, from none to all of them: each is
// used once, as what it is.
func sameOctet(t *conformance.T, n *host) {
	for play := range inTurn(t, "the peer is the %s", bothRoles) {
		const text = "iWARP from here on."
		var lane mpaLane
		lane.crc = true
		behind := requestFrame(frameC, 1, []byte("priv"))
		if play == conformance.Responder {
			behind = replyFrame(frameC, 1, []byte("priv"))
		}
		behind = append(behind, lane.fpdu(aSend(1, []byte("first")))...)
		for k := range counted(t, "%d octets were read", len(behind)+1) {
			w, y := byHand(t)
			l := n.idleLink(verbs.QPConfig{})
			l.recv(1)
			post(t, l.qp, l.aSend(2))
			w.raw(append([]byte(text), behind...))
			early := make([]byte, len(text)+k)
			require.NoError(t, second(io.ReadFull(y, early)))
			require.Equal(t, text, string(early[:len(text)]))
			require.NoError(t, second(y.Write([]byte("Yes."))))

			var st *mpa.Stream
			cfg := mpa.Config{Rev: 1, Early: early[len(text):]}
			if play == conformance.Initiator {
				o := must(mpa.Await(t.Context(), y, cfg))(t)
				require.Equal(t, "priv", string(o.Request.PrivateData))
				st = must(o.Accept(cfg))(t)
			} else {
				st = must(mpa.Initiate(t.Context(), y, cfg))(t)
				require.Equal(t, "priv", string(st.PrivateData))
			}
			begin(t, l.qp, verbs.StreamConfig{Conn: st.Conn, Role: st.Role, CRC: st.CRC, MarkersIn: st.MarkersIn, MarkersOut: st.MarkersOut, Early: st.Early})
			require.Equal(t, "Yes.", string(w.octets(4)))
			w.frame()
			require.Contains(t, []string{"MPA ID Rep Frame", "MPA ID Req Frame"}, string(w.theirs[:16]))
			completes(t, l.rq, l.got(1, 5))
			require.Equal(t, "first", string(n.mr.Bytes()[64:69]))
			w.expect(aSend(1, n.mr.Bytes()[:4]))
			require.NoError(t, l.qp.Destroy())
		}
	}
}

// queuePairFirst: Full Operation takes a queue pair that is Idle, and a queue pair
// takes a stream.
func queuePairFirst(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{})
	require.ErrorIs(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS}), verbs.ErrInvalidLLPStream)
	l.recv(1)
	for s := range inTurn(t, "a queue pair in %v", []verbs.State{verbs.StateRTS, verbs.StateClosing, verbs.StateTerminate, verbs.StateError}) {
		busy := n.into(s, verbs.QPConfig{})
		w, y := byHand(t)
		w.raw(requestFrame(frameC, 1, nil))
		req := must(cm.Await(t.Context(), y, cm.Config{}))(t)
		require.ErrorIs(t, second(req.Accept(t.Context(), busy.qp, cm.Config{})), verbs.ErrInvalidState)
		w.mute()
		if s == verbs.StateError {
			require.NoError(t, second(req.Accept(t.Context(), l.qp, cm.Config{})))
			require.Equal(t, replyFrame(frameC, 1, nil), w.frame())
			w.send(aSend(1, []byte("at once")))
			completes(t, l.rq, l.got(1, 7))
		}

		w, y = byHand(t)
		require.ErrorIs(t, second(cm.Connect(t.Context(), y, busy.qp, cm.Config{})), verbs.ErrInvalidState)
		w.silent("the end")
	}
}

// talks says that a connection carries octets both ways still.
func talks(t *conformance.T, w *peer, c net.Conn) {
	w.raw([]byte("plan B?"))
	b := make([]byte, 7)
	require.NoError(t, second(io.ReadFull(c, b)))
	require.Equal(t, "plan B?", string(b))
	require.NoError(t, second(c.Write([]byte("fine"))))
	require.Equal(t, "fine", string(w.octets(4)))
	w.mute()
}

// openAfterRejecting: a Responder that refuses has the TCP connection back.
func openAfterRejecting(t *conformance.T) {
	for n := range inTurn(t, "private data of %d octets", []int{0, 1, 508, 512}) {
		w, y := byHand(t)
		w.raw(requestFrame(frameC, 1, []byte("please")))
		o := must(mpa.Await(t.Context(), y, mpa.Config{}))(t)
		data := uppertester.Pattern(2, n)
		require.NoError(t, o.Reject(data))
		require.Equal(t, replyFrame(frameC|frameR, 1, data), w.frame())
		talks(t, w, y)
	}
	// A program that goes by cm closes it.
	w, y := byHand(t)
	w.raw(requestFrame(frameC, 1, nil))
	req := must(cm.Await(t.Context(), y, cm.Config{}))(t)
	require.NoError(t, req.Reject([]byte("no")))
	require.Equal(t, replyFrame(frameC|frameR, 1, []byte("no")), w.frame())
	w.silent("the end")
}

// openAfterRejection: so has an Initiator that is refused.
func openAfterRejection(t *conformance.T, l *link) {
	post(t, l.qp, l.aSend(1))
	for k := range inTurn(t, "private data of %d octets", []int{0, 1, 508, 512}) {
		w, y := byHand(t)
		data := uppertester.Pattern(2, k)
		w.raw(replyFrame(frameC|frameR, 1, data)) // ahead of its Request, which is no matter
		_, err := cm.Connect(t.Context(), y, l.qp, cm.Config{Rev: 1})
		var refusal *cm.RejectedError
		require.ErrorAs(t, err, &refusal)
		same(t, data, refusal.PrivateData, "the private data")
		require.Equal(t, requestFrame(frameC, 1, nil), w.frame())
		w.mute() // no FPDU
		talks(t, w, y)
		require.Equal(t, verbs.StateIdle, l.qp.State())
	}
	empty(t, l.sq)
	l.join()
	l.expect(aSend(1, l.mr.Bytes()[:4]))
}
