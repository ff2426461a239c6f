package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// guardsWire are numbers in frames that other cases pass by: those of refusals, and those that wrap.
var guardsWire = []conformance.Case{
	upperCase("9.1/rejected-without-depths", rejectedWithoutDepths, "R6581-9.1-M8", "R6581-9.1-M10"),
	apiCase("9.1/own-place-not-told", onHost(ownPlaceNotTold), "R6581-9.1-M1"),
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
		require.Equal(t, x.first, first&depthBits, "IRD of the Reply")
		require.Equal(t, x.other, second&depthBits, "ORD of the Reply")
	}
}

// ownPlaceNotTold: the place of its own that a queue pair has for Writes is offered to the peer, and is none of
// the depths that the programs are told of.
func ownPlaceNotTold(t *conformance.T, n *host) {
	const ird, ord = 3, 5
	qps := [2]*verbs.QP{}
	for i := range qps {
		qps[i] = n.newQP(verbs.QPConfig{IRD: ird, ORD: ord, PlacedWrites: true})
	}
	x, y := tcpPair(t)
	done := make(chan *cm.Conn, 1)
	go func() {
		c, err := cm.Connect(t.Context(), x, qps[0], cm.Config{})
		if err != nil {
			t.Errorf("Connect: %v", err)
		}
		done <- c
	}()
	req := must(cm.Await(t.Context(), y, cm.Config{}))(t)
	b := must(req.Accept(t.Context(), qps[1], cm.Config{}))(t)
	a := receive(t, done, "Connect does not end")
	require.NotNil(t, a)
	for _, c := range []*cm.Conn{a, b} {
		require.Equal(t, []int{ird, ird}, []int{c.IRD(), c.ORD()}, "IRD and ORD: no more than the peer's IRD")
		require.Equal(t, ird+1, c.PeerIRD(), "what the peer has offered")
	}
	require.NoError(t, a.Abort())
	require.NoError(t, b.Abort())
}
