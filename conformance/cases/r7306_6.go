package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// RFC 7306 4.1, 6 and 8, as far as they are about Immediate Data.
var r7306_6 = []conformance.Case{
	upperCase("4.1/immediate-octets", immediateOctets,
		"R7306-4.1-M1", "R7306-6.3-M1", "R7306-6.3-M2", "R7306-6.3-M5", "R7306-6.3-M6", "R7306-6.3-M7"),
	upperCase("4.1/immediate-invalidate-ignored", immediateInvalidate, "R7306-4.1-M1"),
	upperCase("6/write-with-immediate", writeWithImmediate, "R7306-6.3-M5", "R7306-6.3-M6", "R7306-6.3-M7"),
	upperCase("6.3/one-receive-each", immediateTakesReceives, "R7306-6.3-M3", "R7306-6.3-M4"),
	upperCase("6.3/no-receive", immediateWithoutReceive, "R7306-6.3-M3", "R7306-8.1-M1", "R7306-8.2-M2"),
	upperCase("6.3/eight-octets", immediateLength, "R7306-6.3-M8", "R7306-8.1-M1", "R7306-8.2-M1"),
	upperCase("6.3/numbers-of-the-sends", immediateNumbers, "R7306-6.3-M3", "R7306-8.2-M2"),
	upperCase("6.4/solicited", immediateSolicited, "R7306-6.3-M3", "R7306-6.3-M4"),
	upperCase("8.2/immediate-fields", immediateFields, "R7306-8.1-M1", "R7306-8.2-M1", "R7306-8.2-M2", "R7306-8.2-M3", "R7306-8.2-M4"),
	upperCase("1.1/not-offered", extensionsNotOffered, "R7306-8.2-M3"),
	apiCase("6/between-programs", immediateBetween, "R7306-6.3-M3", "R7306-6.3-M4", "R7306-6.3-M7"),
	apiCase("7/write-placed-before", immediateBehindWrite, "R7306-6.3-M4"),
	apiCase("6.3/srq", immediateShared, "R7306-6.3-M3", "R7306-6.3-M4"),
}

// immediateOf is the completion of a receive that Immediate Data took.
func immediateOf(id, data uint64) verbs.Completion {
	return verbs.Completion{ID: id, Op: verbs.OpRecv, Value: data, HasImmediate: true}
}

// immediateOctets: what is posted goes out in that order, each as one segment of queue 0 with
// eight octets, first octet first, and with the numbers of the Sends.
func immediateOctets(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.post(
		verbs.Request{ID: 1, Op: verbs.OpImmediate, Immediate: 0x0102030405060708},
		verbs.Request{ID: 2, Op: verbs.OpSend},
		verbs.Request{ID: 3, Op: verbs.OpImmediateSE, Immediate: 0xFFFEFDFCFBFAF9F8},
	)
	r.expect(
		[]byte{0x41, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
		aSend(2, nil),
		[]byte{0x41, 0x49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0xFA, 0xF9, 0xF8},
	)
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpImmediate}, verbs.Completion{ID: 2}, verbs.Completion{ID: 3, Op: verbs.OpImmediateSE},
	)
}

// immediateInvalidate: what stands in the field of the Invalidate STag is not looked at, so an
// STag there stays valid.
func immediateInvalidate(t *conformance.T) {
	r, b := openWith(t, extended(setup{}), 64)
	r.recv(1, 8)
	u := anImmediate(opImmediate, r.nextSend(), 7)
	binary.BigEndian.PutUint32(u[2:], b.tag())
	r.send(u)
	r.completions(immediateOf(1, 7))
	require.Equal(t, b.first[:8], r.fetch(b, 0, 8), "the region is readable still")
}

// writeWithImmediate: the Write and the Immediate Data behind it, of several lengths and none,
// with nothing between; one completion.
func writeWithImmediate(t *conformance.T) {
	r := open(t, extended(setup{}))
	b := r.region(8000, verbs.LocalRead)
	for i, n := range []int{0, 1, 5, 700, 8000} {
		msn, id := uint32(2*i+1), uint64(10*i)
		r.post(
			verbs.Request{ID: id, Op: verbs.OpWriteImmediate, SGL: b.sgl(0, n), Remote: verbs.Remote{STag: 0x77, TO: 0x88}, Immediate: 0xAB00 + id},
			verbs.Request{ID: id + 1, Op: verbs.OpWriteImmediateSE, Flags: verbs.Unsignaled, Remote: verbs.Remote{STag: 0x99}, Immediate: 1},
		)
		payload := r.taggedMessage(opWrite, 0x77, 0x88).payload
		same(t, b.first[:n], payload, "the Write of %d octets", n)
		r.expect(anImmediate(opImmediate, msn, 0xAB00+id), aWrite(0x99, 0, nil), anImmediate(opImmediateSE, msn+1, 1))
		r.completions(verbs.Completion{ID: id, Op: verbs.OpWriteImmediate})
	}
	r.idle()
}

// immediateTakesReceives: each takes one receive, among Sends and in their order, and leaves the
// buffer alone; a receive of no octets will do.
func immediateTakesReceives(t *conformance.T) {
	r := open(t, extended(setup{}))
	buffers := r.recv(4, 16)
	r.postRecv(verbs.Recv{ID: 5})
	r.send(
		anImmediate(opImmediate, r.nextSend(), 0x1122334455667788), aSend(r.nextSend(), []byte("one")),
		anImmediate(opImmediateSE, r.nextSend(), 2), anImmediate(opImmediate, r.nextSend(), 3),
		anImmediate(opImmediate, r.nextSend(), 4),
	)
	r.completions(
		immediateOf(1, 0x1122334455667788), verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 3},
		immediateOf(3, 2), immediateOf(4, 3), immediateOf(5, 4),
	)
	buffers[1].gets(0, []byte("one"))
	allUnchanged(buffers)
	r.state(verbs.StateRTS)
}

// immediateWithoutReceive: with none posted it ends the stream, as a Send does.
func immediateWithoutReceive(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.recv(1, 16)
	r.send(anImmediate(opImmediate, r.nextSend(), 5))
	u := anImmediate(opImmediateSE, r.nextSend(), 6)
	r.refuses(0x1202, u, false)
	r.completions(immediateOf(1, 5))
	r.events(verbs.EventRQMSNRange)
}

// immediateLength: exactly eight octets, whatever room the receive has. The Terminate Message
// repeats the DDP header (8.1).
func immediateLength(t *conformance.T) {
	another := peerFault{event: verbs.EventSegmentSize, code: 0x0207}
	for _, n := range []int{0, 1, 7, 9, 16, faultRigRoom, 3000} {
		for _, op := range []byte{opImmediate, opImmediateSE} {
			rejects(t, extended(setup{}), "of another length", another, always(untagged(lastUntagged, op, 0, 0, 1, 0, make([]byte, n))))
		}
	}
}

// immediateNumbers: Immediate Data and Sends have one row of MSNs.
func immediateNumbers(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.recv(3, 16)
	r.send(aSend(1, nil), anImmediate(opImmediate, 2, 9))
	u := anImmediate(opImmediate, 2, 9)
	r.refuses(0x1203, u, false)
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRecv}, immediateOf(2, 9), verbs.Completion{ID: 3, Op: verbs.OpRecv, Status: verbs.StatusFlushed},
	)
	r.events(verbs.EventRQMSNRange)
}

// immediateSolicited: a CQ that waits for a Solicited Event is told of the one kind alone.
func immediateSolicited(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.recv(2, 0)
	r.notify(r.RecvCQ, verbs.NotifySolicited)
	r.send(anImmediate(opImmediate, r.nextSend(), 1))
	r.completions(immediateOf(1, 1))
	require.False(t, r.notified(r.RecvCQ), "without SE")
	r.send(anImmediate(opImmediateSE, r.nextSend(), 2))
	r.completions(immediateOf(2, 2))
	require.True(t, r.notified(r.RecvCQ), "with SE")
}

// immediateFields: DDP's fields, the version and the opcode.
func immediateFields(t *conformance.T) {
	eight := make([]byte, 8)
	rejectsEach(t, extended(setup{}),
		segmentFault{"queue 1", badQN, always(untagged(lastUntagged, opImmediate, 0, 1, 1, 0, eight))},
		segmentFault{"queue 3", badQN, always(untagged(lastUntagged, opImmediateSE, 0, 3, 1, 0, eight))},
		segmentFault{"an MO", peerFault{event: verbs.EventSegmentSize, code: 0x1204}, always(untagged(lastUntagged, opImmediate, 0, 0, 1, 8, eight))},
		segmentFault{"no L bit", noLBit, always(untagged(moreUntagged, opImmediate, 0, 0, 1, 0, eight))},
		segmentFault{"an MSN far ahead", badMSN, always(anImmediate(opImmediate, 1<<31, 5))},
		segmentFault{"tagged", badOpcode, always(tagged(lastTagged, opImmediate, 5, 6, eight))},
		segmentFault{"RDMAP version 2", badRDMAP, always(with(1, 0x88)(anImmediate(opImmediate, 1, 5)))},
	)
	for op := byte(0x4C); op <= 0x4F; op++ {
		rejects(t, extended(setup{}), "an opcode of nobody", badOpcode, always(untagged(lastUntagged, op, 0, 0, 1, 0, eight)))
	}
}

// extensionsNotOffered: without the switch all opcodes of RFC 7306 are unexpected.
func extensionsNotOffered(t *conformance.T) {
	for _, u := range [][]byte{
		anImmediate(opImmediate, 1, 5), anImmediate(opImmediateSE, 1, 5), anAtomicRequest(1, atomicOp{op: atomicFetchAdd, stag: 5}),
		anAtomicResponse(1, 0, 0),
	} {
		rejects(t, setup{}, "not offered", badOpcode, always(u))
	}
}
