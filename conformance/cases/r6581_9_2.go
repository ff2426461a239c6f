package cases

import (
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r6581_9_2 is the connection model, and what goes wrong: RFC 6581 9.2, 9.3.
var r6581_9_2 = []conformance.Case{
	upperCase("9.2/request-flags", requestFlags, "R6581-9.2-M1", "R6581-9.2-M2"),
	upperCase("9.2/client-server-request", clientServerRequest, "R6581-9.2-M10", "R6581-9.2-M12"),
	upperCase("9.2/reply-flags", replyFlags, "R6581-9.2-M3", "R6581-9.2-M4", "R6581-9.2-M5", "R6581-9.2-M6"),
	upperCase("9.2/client-server-reply", clientServerReply, "R6581-9.2-M11", "R6581-9.2-M12"),
	upperCase("9.2/kinds-ignored", kindsIgnored, "R6581-9.2-M13"),
	upperCase("9.2/rtr-sent", rtrSent, "R6581-9.2-M7"),
	upperCase("9.2/no-kind-in-common", noKindInCommon, "R6581-9.2-M8", "R6581-9.2-M9", "PR-6581-8-M1"),
	upperCase("9.2/other-model", otherModel, "R6581-9.2-M8", "R6581-9.2-M9", "PR-6581-8-M1"),
	upperCase("9.3/local-error", localStartupError, "R6581-9.3-M1", "PR-6581-8-M1"),
}

// requestFlags: a peer-to-peer Request has A, and B, C, D for what the Initiator can
// send: with an ORD of 0 no RDMA Read.
func requestFlags(t *conformance.T) {
	for set := 1; set < 8; set++ {
		t.Part("kinds %03b", set)
		a, b := dialing(t, uppertester.OpenArgs{IRD: 5, ORD: 6}, uppertester.ConnectArgs{P2P: true, RTR: uint8(set)}).hears().word()
		first, second := kinds(set)
		require.Equal(t, []uint16{flagA | first | 5, second | 6}, []uint16{a, b}, "the word")
		if set == 4 {
			continue // then it can send none: see the configuration below
		}
		t.Part("kinds %03b, ORD 0", set)
		a, b = dialing(t, uppertester.OpenArgs{NoReads: true}, uppertester.ConnectArgs{P2P: true, RTR: uint8(set)}).hears().word()
		first, second = kinds(set &^ 4)
		require.Equal(t, []uint16{flagA | first, second}, []uint16{a, b}, "the word")
	}
	t.Part("RDMA Read alone, ORD 0")
	r := dialing(t, uppertester.OpenArgs{NoReads: true}, uppertester.ConnectArgs{P2P: true, RTR: 4})
	r.fails()
	r.silent("nothing")
}

// clientServerRequest: without A there is no other flag.
func clientServerRequest(t *conformance.T) {
	for set := range counted(t, "kinds %03b", 8) {
		a, b := dialing(t, uppertester.OpenArgs{IRD: 5, ORD: 6}, uppertester.ConnectArgs{RTR: uint8(set)}).hears().word()
		require.Equal(t, []uint16{5, 6}, []uint16{a, b}, "the word")
	}
}

// replyFlags asks every Responder that there is for peer-to-peer mode, with every set
// of kinds.
func replyFlags(t *conformance.T) {
	for _, own := range []struct {
		set     int // as configured; 0 stands for Write and Read
		noReads bool
		can     int
	}{
		{0, false, 6}, {1, false, 1}, {2, false, 2}, {3, false, 3}, {4, false, 4}, {5, false, 5}, {6, false, 6}, {7, false, 7},
		{0, true, 2}, {5, true, 1}, {6, true, 2}, {7, true, 3},
	} {
		for asked := range 8 {
			for _, reject := range []bool{false, true} {
				if reject && own.set != 0 {
					continue // who rejects does not say what it could take
				}
				t.Part("own %03b of %+v, asked for %03b, reject %v", own.can, own, asked, reject)
				r := listening(t, uppertester.OpenArgs{NoReads: own.noReads}, uppertester.ConnectArgs{RTR: uint8(own.set), Reject: reject})
				first, second := kinds(asked)
				r.raw(requestFrame(frameC|frameS, 2, aWord(flagA|first|4, second|4, "")))
				f := r.hears()
				require.Equal(t, reject, f.flags&frameR != 0, "R")
				a, b := f.word()
				require.NotZero(t, a&flagA, "A of the Reply")
				if reject {
					continue
				}
				got := int(a&flagB>>14) | int(b&flagC>>14) | int(b&flagD>>12)
				require.NotZero(t, got, "B, C, D of the Reply")
				require.Zero(t, got&^own.can, "it promises what it cannot take: %03b", got)
				if own.can&asked != 0 {
					require.NotZero(t, got&asked, "none of those that are asked for: %03b", got)
				}
				r.established(withCRC)
			}
		}
	}
	t.Part("RDMA Read alone, IRD 0")
	r := listening(t, uppertester.OpenArgs{NoReads: true}, uppertester.ConnectArgs{RTR: 4})
	r.raw(requestFrame(frameC|frameS, 2, aWord(flagA|4, flagC|flagD|4, "")))
	r.fails()
	r.silent("the Request")
}

// clientServerReply asks every Responder for the other model.
func clientServerReply(t *conformance.T) {
	for set := range counted(t, "kinds %03b", 8) {
		for p2p := range inTurn(t, "P2P %v", []bool{false, true}) {
			r := listening(t, uppertester.OpenArgs{IRD: 5, ORD: 6}, uppertester.ConnectArgs{RTR: uint8(set), P2P: p2p})
			a, b := r.asks(9, 9)
			require.Equal(t, []uint16{5, 6}, []uint16{a, b}, "the Reply's word")
		}
	}
	t.Part("rejecting")
	r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Reject: true, RTR: 7})
	r.raw(requestFrame(frameC|frameS, 2, aWord(4, 4, "")))
	a, b := r.hears().word()
	require.Zero(t, a&(flagA|flagB), "A and B")
	require.Zero(t, b&(flagC|flagD), "C and D")
}

// kindsIgnored sets B, C, D beside a clear A.
func kindsIgnored(t *conformance.T) {
	t.Part("in a Request")
	r := listening(t, uppertester.OpenArgs{IRD: 5, ORD: 6}, uppertester.ConnectArgs{RTR: 7})
	r.raw(requestFrame(frameC|frameS, 2, aWord(flagB|9, flagC|flagD|9, "")))
	a, b := r.hears().word()
	require.Equal(t, []uint16{5, 6}, []uint16{a, b}, "the Reply's word")
	c := r.established(withCRC)
	require.False(t, c.P2P, "the model")
	require.Equal(t, []int{9, 9}, []int{c.PeerIRD, c.PeerORD})
	r.works(1) // a Send of the program's is the first FPDU
	t.Part("in a Reply")
	r = dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{RTR: 7})
	r.hears()
	r.raw(replyFrame(frameC|frameS, 2, aWord(flagB|9, flagC|flagD|9, "")))
	require.False(t, r.established(withCRC).P2P, "the model")
	r.settled() // no ready-to-receive frame before it
	r.works(1)
}

// rtrSent accepts with each set of kinds: the first FPDU is one of it, by itself and
// once.
func rtrSent(t *conformance.T) {
	for _, own := range []int{7, 1, 2, 4} {
		for set := 1; set < 8; set++ {
			if own&set == 0 {
				continue
			}
			t.Part("own %03b, the Reply has %03b", own, set)
			r := dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{P2P: true, RTR: uint8(own)})
			r.hears()
			first, second := kinds(set)
			r.raw(replyFrame(frameC|frameS, 2, aWord(flagA|first|4, second|4, "")))
			require.True(t, r.established(withCRC).P2P)
			u := r.next()
			kind := rtrKind(u)
			require.NotZero(t, kind&own&set, "the first FPDU: % x", u)
			if kind == 4 {
				sink := aReadRequest(1, read{})
				copy(sink, u)
				response := aReadResponse(0, 0, nil)
				copy(response[2:], sink[18:30])
				r.send(response)
			}
			r.idle()
			msn := either(kind == 1, 2, uint32(1))
			r.works(msn)
		}
	}
}

// mismatched says that an Initiator sends a Terminate Message, error 7 of MPA, and
// nothing else, and gives up.
func (r *rig) mismatched() {
	r.setFraming(withCRC)
	r.expect([]byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 0x07, 0, 0})
	r.finished()
	require.False(r.t, r.fails().Rejected)
}

// noKindInCommon accepts with kinds that the Initiator cannot send.
func noKindInCommon(t *conformance.T) {
	for _, x := range []struct {
		qp        uppertester.OpenArgs
		own, sets int
	}{
		{uppertester.OpenArgs{}, 2, 4}, {uppertester.OpenArgs{}, 2, 5}, {uppertester.OpenArgs{}, 4, 2}, {uppertester.OpenArgs{}, 1, 6},
		{uppertester.OpenArgs{}, 6, 1}, {uppertester.OpenArgs{}, 7, 0}, {uppertester.OpenArgs{NoReads: true}, 6, 4},
	} {
		t.Part("own %03b, the Reply has %03b", x.own, x.sets)
		r := dialing(t, x.qp, uppertester.ConnectArgs{P2P: true, RTR: uint8(x.own)})
		a, _ := r.hears().word()
		require.NotZero(t, a&flagA)
		first, second := kinds(x.sets)
		r.raw(replyFrame(frameC|frameS, 2, aWord(flagA|first, second, "")))
		r.mismatched()
	}
	t.Part("RDMA Read, which the Responder has no room for")
	r := dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{P2P: true, RTR: 4})
	r.hears()
	r.raw(replyFrame(frameC|frameS, 2, aWord(flagA, flagD, "")))
	r.mismatched()
}

// otherModel answers with the model that was not asked for.
func otherModel(t *conformance.T) {
	for p2p := range inTurn(t, "P2P %v", []bool{false, true}) {
		r := dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{P2P: p2p})
		a, _ := r.hears().word()
		r.raw(replyFrame(frameC|frameS, 2, aWord(a&flagA^flagA|4, flagC|flagD|4, "")))
		r.mismatched()
	}
}

// localStartupError: the queue pair is not to be had any more when the Reply comes.
// An Initiator says so; a Responder may send no FPDU then, and just ends.
func localStartupError(t *conformance.T) {
	for what, lose := range named(t, "%s", map[string]func(*rig) error{
		"destroyed": func(r *rig) error { return r.up.Destroy(r.QP, &uppertester.None{}) },
		"in Error":  func(r *rig) error { return r.modify(uppertester.ModifyArgs{Next: verbs.StateError}) },
	}) {
		for p2p := range inTurn(t, "P2P %v", []bool{false, true}) {
			r := dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{P2P: p2p})
			a, b := r.hears().word()
			require.NoError(t, lose(r))
			r.raw(replyFrame(frameC|frameS, 2, aWord(a, b, "")))
			r.setFraming(withCRC)
			r.expect([]byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 0x05, 0, 0})
			require.ErrorIs(t, second(r.peer.Next()), io.EOF, "behind it")
			c := r.connected()
			require.NotEmpty(t, c.Failed)
			require.False(t, c.Rejected)
		}
		t.Part("%s, a Responder", what)
		r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{})
		require.NoError(t, lose(r))
		r.raw(requestFrame(frameC|frameS, 2, aWord(4, 4, "")))
		r.silent("the Request")
		require.NotEmpty(t, r.connected().Failed)
	}
}
