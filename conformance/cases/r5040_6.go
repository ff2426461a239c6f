package cases

import (
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_6 is streams and their errors: RFC 5040 6 and 7.
var r5040_6 = []conformance.Case{
	upperCase("6.1/read-limits-told", readLimitsTold, "R5040-6.1-M2", "R5040-6.1-M3"),
	upperCase("6.1/outbound-reads", outboundReads, "R5040-6.1-M3", "R5040-6.1-M4"),
	upperCase("7/erroneous-stream", erroneousStream, "R5040-7-M1", "R5040-7-M2", "R5040-7.1-M3", "PR-5040-7-M1"),
	upperCase("7/connection-ends", connectionEnds, "R5040-7-M3"),
	upperCase("7.1/local-errors-told", localErrorsTold, "R5040-7.1-M1", "R5040-7.1-M2"),
	upperCase("7.2/ddp-fields-checked", ddpFieldsChecked, "R5040-7.2-M1", "R5040-7.2-M6"),
}

// readLimitsTold: Query QP tells what was agreed, and that is what holds.
func readLimitsTold(t *conformance.T) {
	for _, x := range []struct {
		ird, ord   int // of the queue pair
		near       startup
		gets, puts int
	}{
		{5, 3, startup{CRC: true, Rev: 1}, 5, 3}, // nothing was said
		{5, 3, startup{CRC: true, Rev: 2, Enhanced: true, IRD: 9, ORD: 4}, 5, 3},
		{2, 7, startup{CRC: true, Rev: 2, Enhanced: true, IRD: 2, ORD: 2}, 2, 2},
	} {
		t.Part("IRD %d, ORD %d, the peer's %d, %d", x.ird, x.ord, x.near.IRD, x.near.ORD)
		s := openQP(t, tester(t), uppertester.OpenArgs{IRD: x.ird, ORD: x.ord})
		require.Equal(t, [2]int{x.ird, x.ord}, [2]int{s.query().IRD, s.query().ORD}, "after Create QP")

		r := open(t, setup{qp: uppertester.OpenArgs{IRD: x.ird, ORD: x.ord}, near: x.near, play: conformance.Initiator})
		q := r.query()
		require.Equal(t, [2]int{x.gets, x.puts}, [2]int{q.IRD, q.ORD}, "IRD and ORD of Query QP")
		if x.near.Enhanced {
			require.EqualValues(t, x.puts, r.itsFrame.ORD, "the ORD of the startup frame")
		}
	}
	t.Part("Modify QP")
	r := open(t, setup{qp: uppertester.OpenArgs{IRD: 5, ORD: 5}, play: conformance.Initiator})
	require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateRTS, IRD: ptr(2), ORD: ptr(1)}))
	q := r.query()
	require.Equal(t, [2]int{2, 1}, [2]int{q.IRD, q.ORD})
	issue(r, 3, 1)
}

// outboundReads: never more than ORD are under way, and each response lets another
// one go.
func outboundReads(t *conformance.T) {
	for ord := range inTurn(t, "ORD %d", []int{1, 2, 8}) {
		r := open(t, setup{qp: uppertester.OpenArgs{ORD: ord}})
		issue(r, 20, ord)
	}
}

// issue posts Reads, of which ord may be under way, and answers them one by one.
func issue(r *rig, reads, ord int) {
	b := r.region(8*reads, allRights)
	for i := range reads {
		r.post(verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: b.sge(8*i, 8), Remote: theirs})
	}
	request := func(i int) []byte {
		return aReadRequest(uint32(i+1), read{b.tag(), b.at(8 * i), 8, uint32(theirs.STag), theirs.TO})
	}
	for i := range ord {
		r.expect(request(i))
	}
	for i := range reads {
		r.settled() // and no other request
		r.send(aReadResponse(b.tag(), b.at(8*i), []byte("response")))
		r.completions(verbs.Completion{ID: uint64(i), Op: verbs.OpRead})
		if i+ord < reads {
			r.expect(request(i + ord))
		}
	}
}

// erroneousStream: of several faults the first counts, and nothing behind it.
func erroneousStream(t *conformance.T) {
	good := func(v *faultRig) [][]byte {
		return [][]byte{
			aWrite(v.region.tag(), v.region.at(0), []byte("late")),
			aSend(1, []byte("late")),
			aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response")),
			aReadRequest(1, read{nowhere, nowhereTO, 4, v.region.tag(), v.region.at(0)}),
			aTerminate(0x1202, nil, false),
		}
	}
	faults := []segmentFault{
		{"an unknown STag", noSTag.write, func(v *faultRig) []byte {
			return aWrite(v.region.tag()^1, v.region.at(0), []byte("bad"))
		}},
		{"an unknown opcode", badOpcode, always(untagged(lastUntagged, 0x4E, 0, 0, 1, 0, nil))},
		{"a wrong queue", badQN, always(untagged(lastUntagged, opSend, 0, 5, 1, 0, nil))},
		{"a Send that is too long", tooLong, always(aSend(1, make([]byte, faultRigRoom+1)))},
	}
	for i := range faults {
		t.Part("%s first", faults[i].what)
		v := newFaultRig(t, setup{})
		first := faults[i].ulpdu(v)
		all := [][]byte{first}
		for k := range faults {
			all = append(all, faults[(i+k)%len(faults)].ulpdu(v))
		}
		all = append(all, good(v)...)
		v.sendAtOnce(all...)
		for _, u := range good(v) {
			_ = v.peer.Send(u) // refused or ignored
		}
		v.rejects(faults[i].peerFault, first)
		q := v.query()
		require.NotNil(t, q.Terminate, "the Terminate Message of Query QP")
		require.True(t, q.Terminate.Sent)
		require.EqualValues(t, faults[i].code, q.Terminate.Code)
		require.False(t, q.Stream, "the LLP stream of Query QP")
		v.incomplete()
	}
}

// connectionEnds: however a stream ends, so does its connection.
func connectionEnds(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what  string
		do    func(r *rig)
		ends  streamEnd
		state verbs.State
	}{
		{"it closes", func(r *rig) { r.close() }, endFIN, verbs.StateIdle},
		{"the peer closes", func(r *rig) { r.shut() }, endFIN, verbs.StateIdle},
		{"it sends a Terminate Message", func(r *rig) { r.send(aWrite(0x77, 0, []byte{1})) }, endFIN, verbs.StateError},
		{"it receives a Terminate Message", func(r *rig) { r.send(aTerminate(0x1202, nil, false)) }, endFIN, verbs.StateError},
		{"its program resets it", func(r *rig) { require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateError})) }, endReset, verbs.StateError},
		{"its program destroys it", func(r *rig) { require.NoError(t, r.up.Destroy(r.QP, &uppertester.None{})) }, endReset, 0},
	}) {
		r := open(t, setup{})
		r.settled()
		x.do(r)
		require.Equal(t, x.ends, r.gone())
		_ = r.peer.CloseWrite()
		if x.state != 0 || x.ends == endFIN {
			require.False(t, r.ended(x.state).Stream, "the LLP stream of Query QP")
		}
		// Nobody is there any more: what is sent meets a reset.
		eventually(t, func() bool {
			_, err := r.peer.Conn.Write([]byte{0})
			return err != nil
		}, "the connection is gone")
	}
}

// localErrorsTold: an error of the program's own request is told by its completion,
// and the peer by a Terminate Message of the control word alone.
func localErrorsTold(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what   string
		send   func(r *rig, b *buffer) verbs.Request
		status verbs.Status
	}{
		{"a Send of an unknown STag", func(_ *rig, b *buffer) verbs.Request {
			return verbs.Request{SGL: []verbs.SGE{{STag: b.STag ^ 1, Length: 1, TO: b.at(0)}}}
		}, verbs.StatusInvalidSTag},
		{"an RDMA Write of too much", func(_ *rig, b *buffer) verbs.Request {
			return verbs.Request{Op: verbs.OpWrite, SGL: b.sgl(0, 65), Remote: theirs}
		}, verbs.StatusBaseBounds},
		{"a Send of a region without the right", func(r *rig, _ *buffer) verbs.Request {
			return verbs.Request{SGL: r.region(8, verbs.LocalWrite).sgl(0, 8)}
		}, verbs.StatusAccess},
		{"an RDMA Read to another PD's region", func(r *rig, _ *buffer) verbs.Request {
			b := r.register(uppertester.RegisterArgs{PD: 1, Len: 8, Access: allRights})
			return verbs.Request{Op: verbs.OpRead, Local: b.sge(0, 8), Remote: theirs}
		}, verbs.StatusInvalidPD},
	}) {
		r, b := openWith(t, setup{}, 64)
		l := x.send(r, b)
		l.ID = 3
		r.post(l)
		r.tornDown(0x0000, nil, false)
		r.completions(verbs.Completion{ID: 3, Op: l.Op, Status: x.status})
		r.events()
		q := r.query()
		require.NotNil(t, q.Terminate)
		require.True(t, q.Terminate.Sent)
	}
	t.Part("the connection is lost")
	r := open(t, setup{})
	r.settled()
	require.NoError(t, r.peer.Reset())
	r.ended(verbs.StateError)
	r.events(verbs.EventLLPReset)

	t.Part("the connection ends within an FPDU")
	r = open(t, setup{})
	require.NoError(t, r.peer.Raw([]byte{0, 20, lastUntagged}))
	r.shut()
	require.NotErrorIs(t, second(r.peer.Next()), io.EOF, "a good end")
	r.ended(verbs.StateError)
	r.events(verbs.EventLLPLost)
}

// ddpFieldsChecked spoils DDP's own fields of each kind of message, one at a time.
func ddpFieldsChecked(t *conformance.T) {
	for _, version := range []byte{0, 2, 3} {
		for i, m := range goodMessages {
			f := either(i == goodWrite || i == goodReadResponse, badTaggedDDP, badDDP)
			rejects(t, setup{}, m.what+" of a wrong DDP version", f, m.but(masked(0, 0xFC, version)))
		}
	}
	send, request := goodMessages[goodSend], goodMessages[goodReadRequest]
	rejectsEach(t, setup{},
		segmentFault{"a Send ahead of the only receive", badMSN, send.but(with(atMSN, 2))},
		segmentFault{"a Send that is behind", badMSN, send.but(with(atMSN, 0))},
		segmentFault{"a Send with an MO", badMO, send.but(with(atMO, 1))},
		segmentFault{"an RDMA Read Request that is ahead", readMSNGap, request.but(with(atMSN, 2))},
		segmentFault{"an RDMA Read Request that is behind", readMSN, request.but(with(atMSN, 0))},
		segmentFault{"an RDMA Read Request far ahead", readMSN, request.but(with(atMSN-3, 0x40))},
		segmentFault{"an RDMA Read Request with an MO", readMO, request.but(with(atMO, 1))},
		segmentFault{"an RDMA Read Request that goes on", noLBit, request.but(with(0, moreUntagged))},
		segmentFault{"a Terminate Message that goes on", noLBit, goodMessages[goodTerminate].but(with(0, moreUntagged))},
		segmentFault{"an RDMA Read Request that is too short", readTooShort, request.but(func(u []byte) []byte { return u[:45] })},
		segmentFault{"an RDMA Write of another STag", noSTag.write, func(v *faultRig) []byte {
			return aWrite(v.region.tag()+0x100, v.region.at(0), []byte("x"))
		}},
		segmentFault{"an RDMA Write below its region", noBounds.write, writeOf(-1, []byte("x"))},
		segmentFault{"an RDMA Write beyond its region", noBounds.write, writeOf(255, []byte("xy"))},
		segmentFault{"an RDMA Write that wraps", noWrap.write, func(v *faultRig) []byte {
			return aWrite(v.region.tag(), 0xFFFFFFFFFFFFFFFF, []byte("xy"))
		}},
	)
}
