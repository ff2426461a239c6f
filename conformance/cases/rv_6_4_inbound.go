package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_4_inbound is stopping what arrives, and which fault counts: verbs draft 6.4.
var rv6_4_inbound = []conformance.Case{
	upperCase("6.4/inbound-stops", stopInbound, "RV-6.4-M8", "PV-6.4-M1"),
	upperCase("6.4/when-delivered", faultWhenDelivered, "RV-6.4-M14"),
	upperCase("6.4/first-fault-counts", firstFaultCounts, "RV-6.4-M15"),
	upperCase("6.4/others-do-not-wait", othersDoNotWait, "RV-6.4-M16"),
}

// faultWhenDelivered sends a bad segment up to the last octets of its CRC.
func faultWhenDelivered(t *conformance.T) {
	r := open(t, twoCQs())
	g := r.region(64, allRights)
	r.settled()
	f := r.peer.Frame(badSTag)
	require.NoError(t, r.peer.Raw(f[:len(f)-2]))
	for i := range uint32(20) {
		r.post(verbs.Request{ID: uint64(i), SGL: g.sgl(0, 4)})
		r.expect(aSend(i+1, g.first[:4]))
		r.completionsOf(r.SendCQ, verbs.Completion{ID: uint64(i)})
	}
	r.unharmed()
	require.NoError(t, r.peer.Raw(f[len(f)-2:]))
	r.tornDown(0x1100, badSTag, false)
	r.events(verbs.EventProtSTag)
}

// firstFaultCounts sends two bad segments in one write, in both orders.
func firstFaultCounts(t *conformance.T) {
	badQN := untagged(lastUntagged, opSend, 0, 5, 1, 0, []byte{1})
	badOpcode := untagged(lastUntagged, 0x4B, 0, 0, 1, 0, nil)
	type fault struct {
		u     []byte
		code  uint16
		event verbs.EventID
	}
	all := []fault{{badSTag, 0x1100, verbs.EventProtSTag}, {badQN, 0x1201, verbs.EventInvalidQN}, {badOpcode, 0x0206, verbs.EventUnexpectedOpcode}}
	for i, first := range all {
		for j, behind := range all {
			if i == j {
				continue
			}
			r := open(t, setup{})
			r.sendAtOnce(first.u, behind.u)
			r.tornDown(first.code, first.u, false)
			r.events(first.event)
		}
	}
	// One of the LLP, before one of DDP.
	r := open(t, setup{})
	f := r.peer.Frame(badSTag)
	f[len(f)-1] ^= 1
	require.NoError(t, r.peer.Raw(append(f, r.peer.Frame(badQN)...)))
	r.tornDown(0x2002, nil, false)
	r.events(verbs.EventBadCRC)
}

// othersDoNotWait has a bad segment that is not all there, and a bad request.
func othersDoNotWait(t *conformance.T) {
	r := open(t, twoCQs())
	r.settled()
	f := r.peer.Frame(badSTag)
	require.NoError(t, r.peer.Raw(f[:len(f)-1]))
	r.post(verbs.Request{ID: 1, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}})
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 1, Status: verbs.StatusInvalidSTag})
	r.expect(aTerminate(0x0000, nil, false))
	require.NoError(t, r.peer.Raw(f[len(f)-1:]))
	r.finishedIn(verbs.StateError)
	r.events()
}

// stopInbound has good segments behind a bad one, in one write.
func stopInbound(t *conformance.T) {
	for _, bad := range [][]byte{badSTag, untagged(lastUntagged, opSend, 0, 5, 1, 0, nil), untagged(lastUntagged, 0x4B, 0, 0, 1, 0, nil)} {
		r := open(t, twoCQs())
		bufs := r.recv(2, 16)
		g := r.region(64, allRights)
		sink := r.outstandingRead(9)
		r.sendAtOnce(
			aSend(1, []byte("before")), bad, aSend(2, []byte("behind")), aWrite(g.tag(), g.at(0), []byte("behind")),
			aReadResponse(sink.tag(), sink.at(0), []byte("response")),
		)
		require.Equal(t, byte(opTerminate), r.next()[1])
		r.finishedIn(verbs.StateError)
		r.completionsOf(r.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 6}, flushedRecvs(2)[0])
		r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
		bufs[0].holds(0, []byte("before"))
		bufs[1].unchanged()
		g.unchanged()
		sink.unchanged()
	}
}
