package cases

import (
	"io"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

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
