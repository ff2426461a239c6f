package cases

import (
	"math"
	"net"

	"github.com/stretchr/testify/require"

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
