package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_4_8_read is the Terminate Message for an RDMA Read whose answer breaks off: RFC
// 5040 4.8, Terminated RDMA Header.
var r5040_4_8_read = []conformance.Case{
	upperCase("4.8/read-half-way", readHalfWay, "R5040-4.8-M8", "R5040-4.8-M5", "R5040-4.8-M7", "R5040-7.1-M3"),
}

// readHalfWay takes the source of an RDMA Read away while its answer is on the way to a
// peer that does not read on. The header in the Terminate Message is moved on by as many
// octets as have come, both offsets beyond 2^32.
func readHalfWay(t *conformance.T) {
	const size = 8 << 20 // more than TCP takes for a peer that does not read
	plain := setup{narrow: true, far: uppertester.ConnectArgs{NoCRC: true}, near: startup{Rev: 2, Enhanced: true, IRD: 64, ORD: 64}}
	marked := setup{narrow: true, near: startup{CRC: true, Markers: true, Rev: 2, Enhanced: true, IRD: 64, ORD: 64}}
	for _, how := range []struct {
		what string
		take func(*rig, *buffer)
	}{
		{"Deallocate", func(_ *rig, b *buffer) { b.deregister() }},
		{"Send with Invalidate", func(r *rig, b *buffer) {
			r.recv(1, 8)
			r.send(aSendInv(r.nextSend(), b.tag(), nil))
			r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Invalidated: b.STag, HasInvalidated: true})
		}},
	} {
		for i, s := range []setup{{narrow: true}, marked, plain} {
			t.Part("%s, %s", how.what, []string{"with CRC", "with CRC and markers", "without either"}[i])
			r := open(t, s)
			b := r.register(uppertester.RegisterArgs{Len: size, Access: allRights, VA: 1<<32 - 1<<20})
			small := read{nowhere, nowhereTO, 5, b.tag(), b.at(3)}
			half := read{0x0BADCAFE, 5<<32 - 1000, size - 100, b.tag(), b.at(100)}
			r.send(aReadRequest(r.nextRead(), small))
			r.expect(aReadResponse(nowhere, nowhereTO, b.first[3:8]))
			msn := r.nextRead()
			r.send(aReadRequest(msn, half), aReadRequest(r.nextRead(), small))
			u := r.next()
			how.take(r, b)
			sent := uint64(0)
			for u[1] == opReadResponse {
				require.Equal(t, tagged(moreTagged, opReadResponse, half.sinkSTag, half.sinkTO+sent, nil), u[:14], "behind %d octets", sent)
				same(t, b.first[half.to-b.at(0)+sent:][:len(u)-14], u[14:], "the answer from %d on", sent)
				sent += uint64(len(u) - 14)
				var err error
				if u, err = r.peer.Next(); err != nil && i == 2 {
					u = nil // within an FPDU whose payload is sent from where it was, only a reset is left
					break
				}
				require.NoError(t, err)
			}
			require.Less(t, sent, uint64(half.size), "the answer has broken off")
			if u != nil {
				moved := half
				moved.sinkTO += sent
				moved.to += sent
				moved.size -= uint32(sent)
				require.Equal(t, aTerminate(0x0100, aReadRequest(msn, moved), true), u, "behind %d octets", sent)
				r.finished()
			}
			r.ended(verbs.StateError)
			r.events(verbs.EventIRRQSTag)
		}
	}
	t.Part("")
}
