package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_5_2_2 is RDMA Read Responses that come in: RFC 5040 5.2.2.
var r5040_5_2_2 = []conformance.Case{
	upperCase("5.2.2/response-placed", onRig(responsePlaced), "R5040-5.2.2-M1", "R5040-5.2.2-M4", "R5040-5.5-M11"),
	upperCase("5.2.2/response-elsewhere", responseElsewhere, "R5040-5.2.2-M6", "R5040-7.2-M1", "R5040-7.2-M2"),
}

// responsePlaced: a response fills the sink and completes its Read, and takes no
// receive. Nothing else has to come.
func responsePlaced(t *conformance.T, r *rig) {
	receives := r.recv(1, 16)
	b := r.region(64, verbs.LocalWrite|verbs.LocalRead|verbs.RemoteWrite)
	r.post(
		verbs.Request{ID: 1, Op: verbs.OpRead, Local: b.sge(8, 9), Remote: theirs},
		verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(32, 6), Remote: theirs, Flags: verbs.Unsignaled},
		verbs.Request{ID: 3, Op: verbs.OpRead, Local: b.sge(40, 0), Remote: theirs},
	)
	for i := range 3 {
		require.Equal(t, uint32(i+1), binary.BigEndian.Uint32(r.next()[10:]), "MSN")
	}
	r.send(
		tagged(moreTagged, opReadResponse, b.tag(), b.at(8), []byte("resp")),
		tagged(lastTagged, opReadResponse, b.tag(), b.at(12), []byte("onse.")),
	)
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpRead})
	b.holds(8, []byte("response."))
	r.send(aReadResponse(b.tag(), b.at(32), []byte("second")), aReadResponse(b.tag(), b.at(40), nil))
	r.completions(verbs.Completion{ID: 3, Op: verbs.OpRead})
	b.holds(32, []byte("second"))
	receives[0].unchanged()
	r.incomplete()
	r.state(verbs.StateRTS)
}

// responseElsewhere: a response goes where the Read said and nowhere else.
func responseElsewhere(t *conformance.T) {
	eight := []byte("response")
	rejected(t, setup{},
		rejection{
			what: "another region", code: 0x1100, event: verbs.EventProtSTag,
			ulpdu: func(v *victim) []byte { return aReadResponse(v.region.tag(), v.region.at(0), eight) },
		},
		rejection{
			what: "beside the sink, in its region", code: 0x1101, event: verbs.EventProtBounds,
			ulpdu: func(v *victim) []byte { return aReadResponse(v.sink.tag(), v.sink.at(8), eight) },
		},
		rejection{
			what: "more than was asked for", code: 0x1101, event: verbs.EventProtBounds,
			ulpdu: func(v *victim) []byte { return aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response!")) },
		},
		rejection{
			what: "less than was asked for", code: 0x1101, event: verbs.EventProtBounds,
			ulpdu: func(v *victim) []byte { return aReadResponse(v.sink.tag(), v.sink.at(0), nil) },
		},
	)
	t.Part("two sinks")
	v := newVictim(t, setup{})
	v.send(tagged(moreTagged, opReadResponse, v.sink.tag(), v.sink.at(0), []byte("res")))
	bad := aReadResponse(v.region.tag(), v.region.at(0), []byte("ponse"))
	v.send(bad)
	copy(v.sink.first, "res")
	v.rejectedAs(&rejection{code: 0x0206, event: verbs.EventUnexpectedOpcode}, bad)

	t.Part("nobody asked")
	r := open(t, setup{})
	b := r.region(64, allRights)
	u := aReadResponse(b.tag(), b.at(0), []byte("x"))
	r.send(u)
	r.tornDown(0x0206, u, false)
	r.events(verbs.EventUnexpectedOpcode)
	b.unchanged()
}
