package cases

import (
	"encoding/binary"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_5_4 is Terminate Messages: RFC 5040 5.4.
var r5040_5_4 = []conformance.Case{
	upperCase("5.4/terminate-sent", terminateSent, "R5040-5.4-M2", "R5040-5.4-M3", "R5040-5.4-M8"),
	upperCase("5.4/terminate-arrives", terminateArrives, "R5040-5.4-M6"),
	upperCase("5.4/terminate-received", terminateReceived, "R5040-5.4-M1", "R5040-5.4-M4", "R5040-5.4-M7"),
	upperCase("5.4/terminate-always-has-room", terminateRoom, "R5040-5.4-M5", "R5040-5.4-M7"),
}

// terminateSent: behind a Terminate Message there is nothing, whatever was queued.
func terminateSent(t *conformance.T) {
	r := open(t, setup{narrow: true})
	b := r.region(8<<20, allRights)
	// A response that TCP does not take as a whole, and behind it all else.
	r.send(aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 8 << 20, b.tag(), b.at(0)}))
	var list []verbs.Request
	for range 10 {
		list = append(list, verbs.Request{SGL: b.sgl(0, 100)}, verbs.Request{Op: verbs.OpWrite, SGL: b.sgl(0, 100), Remote: theirs})
	}
	r.post(list...)
	bad := aWrite(0x77, 0, []byte("bad"))
	r.send(bad, aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 5, b.tag(), b.at(0)}))
	for {
		u := r.next()
		if u[1] != opTerminate {
			continue
		}
		require.Equal(t, byte(0x41), u[0])
		require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, u[2:18], "QN 2, MSN 1, MO 0")
		require.Equal(t, aTerminate(0x1100, bad, false), u)
		break
	}
	r.finishedIn(verbs.StateError)
}

// terminateArrives: the peer gets the Terminate Message and an orderly end, though
// it goes on sending and reads late.
func terminateArrives(t *conformance.T) {
	for _, closes := range []bool{true, false} {
		t.Part("the peer has closed its half: %v", closes)
		r := open(t, setup{})
		bad := aWrite(0x77, 0, []byte("bad"))
		r.send(bad)
		for range 400 { // more than the sockets hold: somebody has to take it
			require.NoError(t, r.peer.Send(aWrite(0x78, 0, make([]byte, 20_000))), "the peer goes on sending")
		}
		if closes {
			r.shut()
		}
		r.terminated(0x1100, bad, false)
		r.ended(verbs.StateError)
		r.events(verbs.EventProtSTag)
	}
}

// terminateReceived: what the peer complains about is kept whole, and told.
func terminateReceived(t *conformance.T) {
	write := aWrite(0x11223344, 99, []byte("x"))
	request := aReadRequest(7, read{1, 2, 3, 4, 5})
	for _, u := range [][]byte{
		aTerminate(0x0000, nil, false), aTerminate(0x1202, nil, false), aTerminate(0x2002, nil, false),
		aTerminate(0x1100, write, false), aTerminate(0x1203, request, false), aTerminate(0x0103, request, true),
		aTerminate(0xEFAB, nil, false), // nobody knows it
	} {
		t.Part("Terminate Message %x", u[18:])
		v := newVictim(t, setup{})
		v.send(u)
		q := v.finishedIn(verbs.StateError)
		v.events(verbs.EventTerminateReceived)
		require.NotNil(t, q.Terminate, "the Terminate Message of Query QP")
		require.False(t, q.Terminate.Sent)
		require.Equal(t, binary.BigEndian.Uint16(u[18:]), uint16(q.Terminate.Code))
		require.Equal(t, u[18:], q.Terminate.Raw)
		v.completionsOf(v.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
		v.receive.unchanged()
	}
	// There is one place: MSN 1. A second Terminate Message is behind the end.
	rejected(t, setup{}, rejection{
		what: "MSN 2", code: 0x1203, event: verbs.EventUnexpectedOpcode,
		ulpdu: func(*victim) []byte {
			u := aTerminate(0x1202, nil, false)
			u[13] = 2
			return u
		},
	})
	t.Part("two")
	v := newVictim(t, setup{})
	v.sendAtOnce(aTerminate(0x1202, nil, false), aTerminate(0x1203, nil, false))
	q := v.finishedIn(verbs.StateError)
	v.events(verbs.EventTerminateReceived)
	require.EqualValues(t, 0x1202, q.Terminate.Code)
}

// terminateRoom: a Terminate Message finds its place when nothing else does.
func terminateRoom(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what string
		set  setup
		fill func(r *rig)
	}{
		{"no receive is posted", setup{}, func(*rig) {}},
		{"the CQ is full", setup{qp: upper.OpenArgs{CQEntries: 1}}, func(r *rig) {
			r.recv(1, 8)
			r.sendMessage(nil)
		}},
		{"the S-RQ is empty", setup{qp: upper.OpenArgs{SRQ: 1}}, func(*rig) {}},
		{"there are no RDMA Reads", setup{qp: upper.OpenArgs{NoReads: true}}, func(*rig) {}},
		{"the IRRQ is full", setup{qp: upper.OpenArgs{IRD: 1}, narrow: true}, func(r *rig) {
			b := r.region(8<<20, allRights)
			r.send(aReadRequest(1, read{nowhere, 0, 8 << 20, b.tag(), b.at(0)}))
		}},
		{"a Send is half here", setup{}, func(r *rig) {
			r.recv(1, 8)
			r.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("ha")))
		}},
		{"an RDMA Write is half here", setup{}, func(r *rig) { r.send(tagged(moreTagged, opWrite, 0, 0, nil)) }},
	}) {
		r := open(t, x.set)
		x.fill(r)
		fault := aReadRequest(7, read{1, 2, 3, 4, 5})
		u := aTerminate(0x0103, fault, true)
		r.send(u)
		for {
			_, err := r.peer.Next()
			if err != nil {
				break // a part of the response may be on its way
			}
		}
		_ = r.peer.CloseWrite()
		q := r.ended(verbs.StateError)
		require.NotNil(t, q.Terminate)
		require.Equal(t, u[18:], q.Terminate.Raw)
		var e upper.Events
		require.NoError(t, r.up.Events(upper.EventsArgs{N: 1, Timeout: r.patience()}, &e))
		require.True(t, slices.ContainsFunc(e.Events, func(e verbs.Event) bool {
			return e.ID == verbs.EventTerminateReceived && e.QP == r.ID
		}), "the events %v", e.Events)
	}
}
