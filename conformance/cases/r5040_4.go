package cases

import (
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_4 is what RDMAP's headers look like: RFC 5040 3.1 and 4 to 4.4.
var r5040_4 = []conformance.Case{
	upperCase("4.1/messages-sent", messagesSent,
		"R5040-3.1-M1", "R5040-4.1-M1", "R5040-4.1-M2", "R5040-4.1-M3", "R5040-4.1-M5", "R5040-4.1-M6", "R5040-4.1-M7",
		"R5040-6.1-M1"),
	upperCase("4.1/control-octet-refused", controlRefused,
		"R5040-4.1-M1", "R5040-4.1-M2", "R5040-4.1-M6", "R5040-4.1-M8", "R5040-7.2-M2", "R5040-7.2-M3", "R5040-7.2-M7",
		"R5040-7.2-M8"),
	upperCase("4.1/wrong-buffer-model-refused", modelRefused,
		"R5040-4.1-M4", "R5040-4.1-M5", "R5040-5.1-M1", "R5040-5.2.1-M1", "R5040-5.2.2-M1", "R5040-5.3-M1",
		"R5040-5.4-M1"),
	upperCase("4.1/wrong-queue-refused", queueRefused, "R5040-4.1-M7", "R5040-5.2.1-M6", "R5040-5.3-M5", "R5040-5.4-M3"),
	upperCase("4.1/ignored-fields", ignoredFields, "R5040-4.1-M9", "R5040-4.1-M10"),
	upperCase("4.2/payload-begins", onRig(payloadBegins), "R5040-4.2-M1", "R5040-4.4-M1", "R5040-4.4-M2", "PR-5040-4.4-M1"),
}

// messagesSent has each message sent once and compares every octet of it, from the
// first FPDU to the last.
func messagesSent(t *conformance.T) {
	r, b := openWith(t, setup{play: conformance.Responder}, 64)
	r.post(
		verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: b.sgl(0, 5), Remote: theirs},
		verbs.Request{ID: 2, Op: verbs.OpSend, SGL: b.sgl(5, 6)},
		verbs.Request{ID: 3, Op: verbs.OpSendInvalidate, SGL: b.sgl(11, 7), Invalidate: 0xAABBCC01},
		verbs.Request{ID: 4, Op: verbs.OpSendSE, SGL: b.sgl(18, 8)},
		verbs.Request{ID: 5, Op: verbs.OpSendSEInvalidate, Invalidate: 0xAABBCC02},
		verbs.Request{ID: 6, Op: verbs.OpRead, Local: b.sge(40, 8), Remote: theirs},
	)
	stag, to := uint32(theirs.STag), theirs.TO
	r.expect(
		tagged(0xC1, 0x40, stag, to, b.first[0:5]),
		untagged(0x41, 0x43, 0, 0, 1, 0, b.first[5:11]),
		untagged(0x41, 0x44, 0xAABBCC01, 0, 2, 0, b.first[11:18]),
		untagged(0x41, 0x45, 0, 0, 3, 0, b.first[18:26]),
		untagged(0x41, 0x46, 0xAABBCC02, 0, 4, 0, nil),
		untagged(0x41, 0x41, 0, 1, 1, 0, read{b.tag(), b.at(40), 8, stag, to}.header()),
	)
	r.send(aReadResponse(b.tag(), b.at(40), []byte("response")))
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpWrite}, verbs.Completion{ID: 2, Op: verbs.OpSend},
		verbs.Completion{ID: 3, Op: verbs.OpSendInvalidate}, verbs.Completion{ID: 4, Op: verbs.OpSendSE},
		verbs.Completion{ID: 5, Op: verbs.OpSendSEInvalidate}, verbs.Completion{ID: 6, Op: verbs.OpRead},
	)
	b.holds(40, []byte("response"))
	r.send(aReadRequest(1, read{stag, to, 9, b.tag(), b.at(2)}))
	r.expect(tagged(0xC1, 0x42, stag, to, b.first[2:11]))
	require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateTerminate}))
	r.expect(untagged(0x41, 0x47, 0, 2, 1, 0, []byte{0, 0, 0, 0}))
	r.finishedIn(verbs.StateError)
}

// controlRefused spoils the control octet of each message.
func controlRefused(t *conformance.T) {
	const swapped = opSend&0xF<<4 | opSend>>4
	rejectsEach(t, setup{},
		segmentFault{"the control octet is the third", badRDMAP, always(untagged(lastUntagged, 0, uint32(opSend)<<24, 0, 1, 0, []byte("x")))},
		segmentFault{"the control octet has its fields swapped", badRDMAP, always(untagged(lastUntagged, swapped, 0, 0, 1, 0, []byte("x")))},
	)
	for _, m := range goodMessages {
		for _, version := range []byte{0x00, 0x80, 0xC0} {
			rejects(t, setup{}, m.what+" of a wrong version", badRDMAP, m.but(masked(1, 0x3F, version)))
		}
	}
	for opcode := byte(8); opcode < 16; opcode++ {
		for _, like := range []int{goodWrite, goodSend, goodReadRequest} {
			m := goodMessages[like]
			rejects(t, setup{}, "an unknown opcode in place of "+m.what, badOpcode, m.but(with(1, 0x40|opcode)))
		}
	}
}

// modelRefused gives each opcode the T flag that it must not have.
func modelRefused(t *conformance.T) {
	for i, m := range goodMessages {
		rejects(t, setup{}, m.what+" of the other buffer model", badOpcode, func(v *faultRig) []byte {
			u := m.make(v)
			if i == goodWrite || i == goodReadResponse {
				return untagged(lastUntagged, u[1], 0, 0, 1, 0, u[14:])
			}
			return tagged(lastTagged, u[1], v.region.tag(), v.region.at(0), u[18:])
		})
	}
}

// queueRefused sends each untagged message to queues that are not its own.
func queueRefused(t *conformance.T) {
	for message, queues := range map[int][]byte{
		goodSend: {1, 2, 3, 0x80}, goodSendInv: {1, 2}, goodSendSE: {1, 5}, goodSendSEInv: {1, 4},
		goodReadRequest: {0, 2, 3}, goodTerminate: {0, 1, 3},
	} {
		for _, qn := range queues {
			m := goodMessages[message]
			rejects(t, setup{}, m.what+" to another queue", badQN, m.but(with(atQN, qn)))
		}
	}
}

// ignoredFields sets what a receiver does not look at.
func ignoredFields(t *conformance.T) {
	v := newFaultRig(t, setup{})
	spoiled := func(i int) []byte {
		u := goodMessages[i].make(v)
		u[1] |= 0x30 // the reserved bits
		return u
	}
	inv := func(u []byte) []byte { // names a live region
		copy(u[2:6], []byte{byte(v.region.tag() >> 24), byte(v.region.tag() >> 16), byte(v.region.tag() >> 8), byte(v.region.tag())})
		return u
	}
	v.send(spoiled(goodWrite), inv(spoiled(goodReadRequest)))
	v.region.first = append(v.region.first[:3:3], append([]byte("abc"), v.region.first[6:]...)...)
	v.expect(aReadResponse(nowhere, nowhereTO, v.region.first[:5]))
	v.send(spoiled(goodReadResponse))
	v.completionsOf(v.SendCQ, verbs.Completion{ID: 50, Op: verbs.OpRead})
	v.sink.holds(0, []byte("response"))
	v.send(inv(spoiled(goodSend)))
	v.completionsOf(v.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 3})
	v.postRecv(verbs.Recv{ID: 2, SGL: v.receive.sgl(8, 8)})
	se := inv(spoiled(goodSendSE))
	se[13] = 2
	v.send(se)
	v.completionsOf(v.RecvCQ, verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 3})
	require.True(t, v.region.query().Valid, "the region that the Invalidate STag field names")
	v.region.unchanged()
	v.send(inv(spoiled(goodTerminate)))
	v.finishedIn(verbs.StateError)
	v.events(verbs.EventTerminateReceived)
	require.True(t, v.region.query().Valid, "the region that the Terminate Message's field names")
}

// payloadBegins compares where each message's payload or header is, both ways.
func payloadBegins(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	bufs := r.recv(1, 64)
	r.send(aWrite(b.tag(), b.at(1), []byte("write")))
	r.delivers(1, "send")
	b.holds(1, []byte("write"))
	bufs[0].holds(0, []byte("send"))
	for _, sink := range []struct {
		stag uint32
		to   uint64
	}{{0, 0}, {0xFFFFFFFF, 1 << 63}, {b.tag(), b.at(32)}} {
		// The sink is the requester's affair: it is not looked at here, and comes
		// back as it was.
		r.send(aReadRequest(r.nextRead(), read{sink.stag, sink.to, 7, b.tag(), b.at(0)}))
		r.expect(tagged(0xC1, 0x42, sink.stag, sink.to, b.first[0:7]))
	}
	b.unchanged()
	r.post(verbs.Request{ID: 9, Op: verbs.OpRead, Local: b.sge(16, 3), Remote: theirs})
	u := r.next()
	require.Len(t, u, 18+28)
	require.Equal(t, []byte{
		byte(b.tag() >> 24), byte(b.tag() >> 16), byte(b.tag() >> 8), byte(b.tag()), // sink STag
		byte(b.at(16) >> 56), byte(b.at(16) >> 48), byte(b.at(16) >> 40), byte(b.at(16) >> 32),
		byte(b.at(16) >> 24), byte(b.at(16) >> 16), byte(b.at(16) >> 8), byte(b.at(16)), // sink TO
		0, 0, 0, 3, // size
		0x11, 0x22, 0x33, 0x44, // source STag
		1, 2, 3, 4, 5, 6, 7, 8, // source TO
	}, u[18:], "the RDMA Read Request header")
	r.send(aReadResponse(b.tag(), b.at(16), []byte("abc")))
	r.completions(verbs.Completion{ID: 9, Op: verbs.OpRead})

	rejects(t, setup{}, "an RDMA Read Request with an octet behind its header", readTooLong,
		goodMessages[goodReadRequest].but(func(u []byte) []byte { return append(u, 0) }))
	rejects(t, setup{}, "a Terminate Message of half a control word", badSize, always(aTerminate(0x1202, nil, false)[:20]))
}

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
	rejectsEach(t, setup{},
		segmentFault{"a ULPDU of two octets", badSize, always([]byte{lastUntagged, opSend})},
		segmentFault{"a Send that is too long", tooLong, always(aSend(1, make([]byte, faultRigRoom+1)))},
		segmentFault{"an RDMA Read of an unknown STag", noSTag.read, func(v *faultRig) []byte {
			return aReadRequest(1, read{nowhere, nowhereTO, 5, v.region.tag() ^ 1, v.region.at(0)})
		}},
		segmentFault{"an unknown opcode", badOpcode, always(untagged(lastUntagged, 0x4F, 7, 8, 9, 10, []byte("abcde")))},
	)
	for _, n := range []int{1, 2, 256, 1000} {
		rejects(t, setup{}, "an RDMA Write to an unknown STag", noSTag.write, func(v *faultRig) []byte {
			return aWrite(v.region.tag()^1, v.region.at(0), make([]byte, n))
		})
	}

	t.Part("a bad CRC")
	v := newFaultRig(t, setup{})
	u := aWrite(v.region.tag(), v.region.at(0), []byte("abcd"))
	f := v.peer.Frame(u)
	f[len(f)-1] ^= 1
	require.NoError(t, v.peer.Raw(f))
	v.rejects(badCRC, u)

	rejects(t, setup{}, "an RDMA Read with all that is ignored", noPD.read, func(v *faultRig) []byte {
		b := v.register(uppertester.RegisterArgs{PD: 1, Len: 8, Access: allRights})
		u := aReadRequest(1, read{nowhere, nowhereTO, 5, b.tag(), b.at(0)})
		u[0], u[1] = u[0]|0x3C, u[1]|0x30
		copy(u[2:6], "junk")
		return u
	})

	// Once more, and not by aTerminate: RFC 5040 4.8 figures 7 and 8 for an RDMA
	// Read of an unknown STag.
	t.Part("octet by octet")
	v = newFaultRig(t, setup{})
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

// r5040_4_8_read is the Terminate Message for an RDMA Read whose answer breaks off: RFC
// 5040 4.8, Terminated RDMA Header.
var r5040_4_8_read = []conformance.Case{
	upperCase("4.8/read-half-way", readHalfWay, "R5040-4.8-M8", "R5040-4.8-M5", "R5040-4.8-M7", "R5040-7.1-M3"),
}

// readHalfWay takes the source of an RDMA Read away while its answer is on the way to a
// peer that does not read on. The header in the Terminate Message is moved on by as many
// octets as have come, both offsets beyond 2^32.
func readHalfWay(t *conformance.T) {
	const size = 8 << 20 // more than TCP takes for a peer that does not read
	plain := setup{narrow: true, far: uppertester.ConnectArgs{NoCRC: true}, near: startup{Rev: 2, Enhanced: true, IRD: 64, ORD: 64}}
	marked := setup{narrow: true, near: startup{CRC: true, Markers: true, Rev: 2, Enhanced: true, IRD: 64, ORD: 64}}
	for _, how := range []struct {
		what string
		take func(*rig, *buffer)
	}{
		{"Deallocate", func(_ *rig, b *buffer) { b.deregister() }},
		{"Send with Invalidate", func(r *rig, b *buffer) {
			r.recv(1, 8)
			r.send(aSendInv(r.nextSend(), b.tag(), nil))
			r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Invalidated: b.STag, HasInvalidated: true})
		}},
	} {
		for i, s := range []setup{{narrow: true}, marked, plain} {
			t.Part("%s, %s", how.what, []string{"with CRC", "with CRC and markers", "without either"}[i])
			r := open(t, s)
			b := r.register(uppertester.RegisterArgs{Len: size, Access: allRights, VA: 1<<32 - 1<<20})
			small := read{nowhere, nowhereTO, 5, b.tag(), b.at(3)}
			half := read{0x0BADCAFE, 5<<32 - 1000, size - 100, b.tag(), b.at(100)}
			r.send(aReadRequest(r.nextRead(), small))
			r.expect(aReadResponse(nowhere, nowhereTO, b.first[3:8]))
			msn := r.nextRead()
			r.send(aReadRequest(msn, half), aReadRequest(r.nextRead(), small))
			u := r.next()
			how.take(r, b)
			sent := uint64(0)
			for u[1] == opReadResponse {
				require.Equal(t, tagged(moreTagged, opReadResponse, half.sinkSTag, half.sinkTO+sent, nil), u[:14], "behind %d octets", sent)
				same(t, b.first[half.to-b.at(0)+sent:][:len(u)-14], u[14:], "the answer from %d on", sent)
				sent += uint64(len(u) - 14)
				var err error
				if u, err = r.peer.Next(); err != nil && i == 2 {
					u = nil // within an FPDU whose payload is sent from where it was, only a reset is left
					break
				}
				require.NoError(t, err)
			}
			require.Less(t, sent, uint64(half.size), "the answer has broken off")
			if u != nil {
				moved := half
				moved.sinkTO += sent
				moved.to += sent
				moved.size -= uint32(sent)
				require.Equal(t, aTerminate(0x0100, aReadRequest(msn, moved), true), u, "behind %d octets", sent)
				r.finished()
			}
			r.ended(verbs.StateError)
			r.events(verbs.EventIRRQSTag)
		}
	}
	t.Part("")
}

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
