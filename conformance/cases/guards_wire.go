package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
)

// guardsWire are numbers in frames that other cases pass by: those of refusals, and those that wrap.
var guardsWire = []conformance.Case{
	upperCase("9.1/rejected-without-depths", rejectedWithoutDepths, "R6581-9.1-M8", "R6581-9.1-M10"),
}

// rejectedWithoutDepths: a rejecting Reply, too, leaves to the programs what the Request has left to them, and states
// what would be wanted of the rest.
func rejectedWithoutDepths(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		name                   string
		ird, ord, first, other uint16
	}{
		{"a Request without IRD", unsaid, 4, 3, unsaid},
		{"a Request without ORD", 2, unsaid, unsaid, 9},
		{"a Request without either", unsaid, unsaid, unsaid, unsaid},
		{"a Request with both", 2, 4, 3, 9},
	}) {
		r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Reject: true, IRD: 3, ORD: 9})
		r.raw(requestFrame(frameC|frameS, 2, aWord(x.ird, x.ord, "")))
		f := r.hears()
		require.NotZero(t, f.flags&frameR, "R")
		first, second := f.word()
		require.Equal(t, []uint16{x.first, x.other}, []uint16{first & depthBits, second & depthBits}, "IRD and ORD of the Reply")
	}
}
