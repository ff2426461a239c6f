package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_4_8 is the Terminate Message: RFC 5040 4.8.
var r5040_4_8 = []conformance.Case{
	upperCase("4.8/terminate-layout", terminateLayout,
		"R5040-4.8-M1", "R5040-4.8-M2", "R5040-4.8-M3", "R5040-4.8-M5", "R5040-4.8-M6", "R5040-4.8-M7", "R5040-4.8-M8",
		"R5040-7.1-M2", "PR-5040-4.8-M2", "PR-5040-4.8-M3", "PR-5040-5.3-M1", "PR-5040-7.1-M3"),
	upperCase("4.8/reserved-bits", onRig(terminateReserved), "R5040-4.8-M4"),
}

// terminateLayout provokes a fault of each form of Terminate Message and compares
// all octets: none but the control word; with length and DDP header, of 14 and of 18
// octets; and with the RDMA Read Request header too.
func terminateLayout(t *conformance.T) {
	list := []rejection{
		{
			what: "a ULPDU of two octets", code: 0x1000, bare: true, event: verbs.EventSegmentSize,
			ulpdu: func(*victim) []byte { return []byte{lastUntagged, opSend} },
		},
		{
			what: "a Send that is too long", code: 0x1205, status: verbs.StatusBaseBounds,
			ulpdu: func(*victim) []byte { return aSend(1, make([]byte, victimRoom+1)) },
		},
		{
			what: "an RDMA Read of an unknown STag", code: 0x0100, readToo: true, event: verbs.EventIRRQSTag,
			ulpdu: func(v *victim) []byte {
				return aReadRequest(1, read{nowhere, nowhereTO, 5, v.region.tag() ^ 1, v.region.at(0)})
			},
		},
		{
			what: "an unknown opcode", code: 0x0206, event: verbs.EventUnexpectedOpcode,
			ulpdu: func(*victim) []byte { return untagged(lastUntagged, 0x4F, 7, 8, 9, 10, []byte("abcde")) },
		},
	}
	for _, n := range []int{1, 2, 256, 1000} {
		list = append(list, rejection{
			what: "an RDMA Write to an unknown STag", code: 0x1100, event: verbs.EventProtSTag,
			ulpdu: func(v *victim) []byte { return aWrite(v.region.tag()^1, v.region.at(0), make([]byte, n)) },
		})
	}
	rejected(t, setup{}, list...)

	t.Part("a bad CRC")
	v := newVictim(t, setup{})
	u := aWrite(v.region.tag(), v.region.at(0), []byte("abcd"))
	f := v.peer.Frame(u)
	f[len(f)-1] ^= 1
	require.NoError(t, v.peer.Raw(f))
	v.rejectedAs(&rejection{code: 0x2002, bare: true, event: verbs.EventBadCRC}, u)

	rejected(t, setup{}, rejection{
		what: "an RDMA Read with all that is ignored", code: 0x0103, readToo: true, event: verbs.EventIRRQPD,
		ulpdu: func(v *victim) []byte {
			b := v.register(upper.RegisterArgs{PD: 1, Len: 8, Access: allRights})
			u := aReadRequest(1, read{nowhere, nowhereTO, 5, b.tag(), b.at(0)})
			u[0], u[1] = u[0]|0x3C, u[1]|0x30
			copy(u[2:6], "junk")
			return u
		},
	})

	// Once more, and not by aTerminate: RFC 5040 4.8 figures 7 and 8 for an RDMA
	// Read of an unknown STag.
	t.Part("octet by octet")
	v = newVictim(t, setup{})
	v.send(aReadRequest(1, read{0x01020304, 0x05060708090A0B0C, 0x0D0E0F10, 0, 0x11}))
	require.Equal(t, []byte{
		0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, // QN 2, MSN 1, MO 0
		0x01, 0x00, 0xE0, 0x00, // RDMA layer, Remote Protection Error, Invalid STag; M, D, R
		0x00, 0x2E, // the segment had 46 octets
		0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0,
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11,
	}, v.next())
	v.finished()
}

// terminateReserved: the bits are clear in each Terminate Message sent, by aTerminate
// throughout; and one with all of them set is as good as one without.
func terminateReserved(t *conformance.T, r *rig) {
	u := aTerminate(0x1202, nil, false)
	u[20], u[21] = 0x1F, 0xFF
	r.send(u)
	q := r.finishedIn(verbs.StateError)
	r.events(verbs.EventTerminateReceived)
	require.NotNil(t, q.Terminate)
	require.False(t, q.Terminate.Sent)
	require.EqualValues(t, 0x1202, q.Terminate.Code)
	require.Equal(t, []byte{0x12, 0x02, 0x1F, 0xFF}, q.Terminate.Raw)

	s := open(t, setup{})
	bad := aWrite(0x77, 0, []byte{1})
	s.send(bad)
	sent := s.next()
	require.Equal(t, []byte{0xC0, 0x00}, sent[20:22], "M and D, and 13 reserved bits")
}
