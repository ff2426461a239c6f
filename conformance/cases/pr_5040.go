package cases

import (
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// pr5040 is what RFC 5040 binds without the keyword.
var pr5040 = []conformance.Case{
	apiCase("4.8/read-under-way", onHost(readUnderWay), "PR-5040-4.8-M4", "PR-5040-4.8-M5", "PR-5040-4.8-M6", "PR-5040-4.8-M7"),
}

// readUnderWay takes away the source of an RDMA Read that has been answered in part: the
// Terminate Message has the Read Request's header moved on by what went out.
func readUnderWay(t *conformance.T, n *host) {
	for _, behind := range []int{0, 1, 50} {
		t.Part("%d segments are read first", behind+1)
		l, mr := n.link(verbs.QPConfig{}), n.register(vast, allRights)
		stag, base := uint32(mr.STag()), mr.Base()
		l.send(aReadRequest(1, read{nowhere, nowhereTO, vast, stag, base}))
		sent := uint64(0)
		for range behind + 1 {
			u := l.next()
			require.Equal(t, tagged(moreTagged, opReadResponse, nowhere, nowhereTO+sent, nil), u[:14])
			sent += uint64(len(u) - 14)
		}
		require.NoError(t, mr.Deregister())
		r := l.rest()
		require.ErrorIs(t, r.end, io.EOF)
		sent += uint64(r.octets)
		require.Zero(t, r.messages)
		left := uint32(vast - sent)
		moved := aReadRequest(1, read{nowhere, nowhereTO + sent, left, stag, base + sent})
		require.Equal(t, aTerminate(0x0100, moved, true), r.terminate, "behind %d octets", sent)
		l.closesWith(verbs.StateError, verbs.EventIRRQSTag)
	}
}
