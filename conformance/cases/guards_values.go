package cases

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// guardsValues are what values that programs get say of themselves, and how programs pass them on.
var guardsValues = []conformance.Case{
	apiCase("9.3.2.1/words-of-completions", onHost(wordsOfCompletions), "RV-9.3.2.1-M3", "RV-9.3.2.1-M4"),
	apiCase("9.5.3/words-of-events", onHost(wordsOfEvents), "RV-9.5.3-M2"),
	apiCase("7.6.1.1/addresses-passed-on", addressesPassedOn, "RV-7.6.1.1-M1"),
	apiCase("6.1.3/counters-in-sum", onHost(countersInSum), "RV-6.2.2-M3"),
}

// wordsOfCompletions: a completion says in a line what it has, and one that failed is an error that says why.
func wordsOfCompletions(t *conformance.T, n *host) {
	for _, x := range []struct {
		words string
		c     verbs.Completion
	}{
		{"Send 7 on QP 3: Success", verbs.Completion{ID: 7, QP: 3, Op: verbs.OpSend}},
		{"Recv 7 on QP 3: Success, 5 octets", verbs.Completion{ID: 7, QP: 3, Op: verbs.OpRecv, Bytes: 5}},
		{"Recv 7 on QP 3: Success, immediate 0x000000000000002a", verbs.Completion{ID: 7, QP: 3, Op: verbs.OpRecv, Value: 42, HasImmediate: true}},
		{"FetchAdd 7 on QP 3: Success, was 0x2a", verbs.Completion{ID: 7, QP: 3, Op: verbs.OpFetchAdd, Value: 42}},
		{"Recv 7 on QP 3: Success, 0 octets, 0x00000102 invalidated", verbs.Completion{ID: 7, QP: 3, Op: verbs.OpRecv, Invalidated: 0x102, HasInvalidated: true}},
		{"Recv 7 on QP 3: Flushed", verbs.Completion{ID: 7, QP: 3, Op: verbs.OpRecv, Status: verbs.StatusFlushed, Bytes: 5}},
	} {
		require.Equal(t, x.words, x.c.String())
		require.Equal(t, x.c.Status != verbs.StatusSuccess, x.c.Err() != nil, x.words)
	}
	flushed := verbs.Completion{ID: 7, QP: 3, Op: verbs.OpRecv, Status: verbs.StatusFlushed}.Err()
	require.ErrorIs(t, flushed, &verbs.CompletionError{Status: verbs.StatusFlushed})
	require.NotErrorIs(t, flushed, &verbs.CompletionError{Status: verbs.StatusAccess})
	require.NoError(t, errors.Unwrap(flushed), "there is no reason to be told")
	require.Contains(t, flushed.Error(), "Recv 7 on QP 3 failed: Flushed (")

	t.Part("a reason")
	l := n.link(verbs.QPConfig{})
	gone := n.register(8, allRights)
	require.NoError(t, gone.Deregister())
	post(t, l.qp, verbs.Request{ID: 9, Op: verbs.OpSend, SGL: gone.SGL(0, 4)})
	list := make([]verbs.Completion, 1) // as it is: await leaves out what finds the reason
	require.EqualValues(t, 1, must(l.sq.Wait(t.Context(), list))(t))
	c := list[0]
	require.Equal(t, verbs.StatusInvalidSTag, c.Status)
	var why *verbs.Reason
	require.ErrorAs(t, c.Err(), &why)
	require.Equal(t, []any{"Send", l.id, true, gone.STag()}, []any{why.Operation, why.QP, why.HasSTag, why.STag})
	require.Contains(t, c.Err().Error(), fmt.Sprintf("of STag %v on QP %d failed: Invalid STag: ", gone.STag(), l.id))
	require.Contains(t, c.Err().Error(), fmt.Sprintf("Send %d", c.ID))
}

// wordsOfEvents: an event names itself, what it is of, and why.
func wordsOfEvents(t *conformance.T, n *host) {
	for words, e := range map[string]verbs.Event{
		"Bad Close (QP 3)": {ID: verbs.EventBadClose, QP: 3}, "CQ Overflow Detected (CQ 3)": {ID: verbs.EventCQOverflow, CQ: 3},
		"Shared Receive Queue Limit Reached (S-RQ 3)": {ID: verbs.EventSRQLimit, SRQ: 3}, "RNIC Catastrophic Failure": {ID: verbs.EventRNICCatastrophic},
	} {
		require.Equal(t, words, e.String())
	}
	l := n.link(verbs.QPConfig{})
	l.send(aTerminate(0x1202, nil, false))
	l.finished()
	e := l.events.next()
	require.Equal(t, verbs.EventTerminateReceived, e.ID)
	require.Contains(t, e.String(), fmt.Sprintf("Terminate Message Received (QP %d)", l.id))
	l.closesTo(verbs.StateError)
}

// addressesPassedOn: the address of a buffer goes to the peer as 12 octets in network order, and comes out of them, with
// what may follow; fewer are none.
func addressesPassedOn(t *conformance.T) {
	at, octets := verbs.Remote{STag: 0x01020304, TO: 0x1112131415161718}, []byte{1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
	require.Equal(t, octets, must(at.MarshalBinary())(t))
	require.Equal(t, append([]byte("text"), octets...), must(at.AppendBinary([]byte("text")))(t))
	require.Equal(t, at, must(verbs.ParseRemote(octets))(t))
	require.Equal(t, at, must(verbs.ParseRemote(append(octets, "more"...)))(t))
	for n := range len(octets) {
		require.Error(t, second(verbs.ParseRemote(octets[:n])), "%d octets", n)
	}
}

// countersInSum: the counters of all opcodes are told by name, and add up; those of an RNIC are the sum of what its
// queue pairs count, of which one has gone.
func countersInSum(t *conformance.T, n *host) {
	const each = 3
	var want verbs.Flows
	for i := range uint64(2) {
		l := n.link(verbs.QPConfig{})
		for k := range uint64(each) {
			l.recv(k)
			l.says(k)
		}
		post(t, l.qp, l.aSend(9))
		l.expect(aSend(1, l.mr.Bytes()[:4]))
		l.settled()
		s := l.qp.Stats()
		require.Equal(t, []uint64{each, each, 3 * each}, []uint64{s.In.Send.Messages, s.In.Send.Segments, s.In.Send.Octets})
		require.Equal(t, s.In.Send, s.In.Sends())
		for way, flows := range map[string]*verbs.Flows{"read_request": &s.In, "read_response": &s.Out} { // of settled, and Sends
			sum, names := verbs.Flow{}, []string(nil)
			for name, f := range flows.All() {
				sum.Messages, sum.Segments, sum.Octets = sum.Messages+f.Messages, sum.Segments+f.Segments, sum.Octets+f.Octets
				if f.Messages > 0 {
					names = append(names, name)
				}
			}
			require.Equal(t, []string{way, "send"}, names)
			require.Equal(t, sum, flows.Total())
		}
		want.Send = verbs.Flow{Messages: want.Send.Messages + each, Segments: want.Send.Segments + each, Octets: want.Send.Octets + 3*each}
		if i == 0 {
			require.NoError(t, l.qp.Destroy())
		}
	}
	all := n.nic.Stats().QP
	require.Equal(t, want.Send, all.In.Send)
	require.Equal(t, []uint64{2, 2 * each, 2}, []uint64{all.SendsPosted, all.RecvsPosted, all.Connects})
	require.EqualValues(t, each, all.RecvQueue.Now+each, "requests of one that has gone are none of what there is")
}
