package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// pv9 is what chapter 9 of the verbs draft binds without the keyword.
var pv9 = []conformance.Case{
	apiCase("9.3.2.1/id-whatever-the-status", onHost(idWhateverStatus), "PV-9.3.2.1-M1"),
	upperCase("9.5.3/read-request-size-and-offset", readRequestSize, "PV-9.5.3-M7"),
	upperCase("9.5.3/read-beyond-its-region", readBeyondRegion, "PV-9.5.3-M15"),
}

// idWhateverStatus has requests of both queues succeed, fail, be flushed and be terminated by
// the peer: all 64 bits of the ID come back.
func idWhateverStatus(t *conformance.T, n *host) {
	ids := []uint64{0, 1<<64 - 1, 1 << 63, 1<<32 + 1, t.Rand().Uint64()}
	for i, id := range ids {
		next, last := ids[(i+1)%len(ids)], ids[(i+2)%len(ids)]
		t.Part("ID %#x", id)
		l := n.link(verbs.QPConfig{})
		postRecv(t, l.qp, verbs.Recv{ID: id}, verbs.Recv{ID: next, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 8}}}, verbs.Recv{ID: last})
		post(t, l.qp, l.aSend(id))
		l.expect(aSend(1, l.mr.Bytes()[:4]))
		l.sendMessage(nil)
		l.settled()
		post(t, l.qp, l.aRead(next), l.aSend(last))
		l.sendMessage([]byte{1})
		ends := []verbs.Completion{l.got(id, 0), l.recvAs(verbs.StatusInvalidSTag, next)[0], l.recvAs(verbs.StatusFlushed, last)[0]}
		completes(t, l.rq, ends...)
		c := await(t, l.sq, 3)
		require.Equal(t, []uint64{id, next, last}, []uint64{c[0].ID, c[1].ID, c[2].ID})
		require.Equal(t, []verbs.Status{verbs.StatusSuccess, verbs.StatusFlushed}, []verbs.Status{c[0].Status, c[1].Status})

		l = n.link(verbs.QPConfig{})
		post(t, l.qp, l.aRead(id))
		l.expect(l.asks(1))
		l.send(aTerminate(0x0100, l.asks(1), true))
		completes(t, l.sq, l.sentAs(id, verbs.OpRead, verbs.StatusRemoteTermination))
		l = n.link(verbs.QPConfig{})
		post(t, l.qp, verbs.Request{ID: id, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}, l.aSend(next))
		completes(t, l.sq, l.sentAs(id, verbs.OpSend, verbs.StatusInvalidSTag), l.sentAs(next, verbs.OpSend, verbs.StatusFlushed))
	}
	t.Part("")
}

// readRequestSize spoils an RDMA Read Request's size and offset. That its header is not all
// there is an error of DDP on the wire, too small for what it says it is (figure 24).
func readRequestSize(t *conformance.T) {
	rejects(t, setup{}, "at an offset", readMO, always(untagged(lastUntagged, opReadRequest, 0, 1, 1, 28, read{}.header())))
	for _, n := range []int{0, 1, 27} {
		rejects(t, setup{}, "too small", readTooShort, always(aReadRequest(1, read{})[:18+n]))
	}
}

// readBeyondRegion asks for more than there is, up to the most that can be asked for.
func readBeyondRegion(t *conformance.T) {
	for _, x := range []struct {
		off int
		n   uint32
	}{{0, 257}, {255, 2}, {-1, 1}, {256, 1}, {0, 1<<32 - 1}} {
		rejects(t, setup{}, "beyond it", noBounds.read, func(v *faultRig) []byte {
			return aReadRequest(1, read{nowhere, nowhereTO, x.n, v.region.tag(), v.region.at(x.off)})
		})
	}
}
