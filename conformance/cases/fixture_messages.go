package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// Message builders: messages that are as they have to be, cut into segments, and put together again
// when they come.

// theirs is a buffer of the peer's.
var theirs = verbs.Remote{STag: 0x11223344, TO: 0x0102030405060708}

// badSTag is a segment that names no region.
var badSTag = aWrite(0x00F00000, 0, []byte{1})

// goodMessages are messages that the rig takes.
var goodMessages = []struct {
	what string
	make func(*faultRig) []byte
}{
	goodWrite: {"an RDMA Write", func(v *faultRig) []byte { return aWrite(v.region.tag(), v.region.at(3), []byte("abc")) }},
	goodReadRequest: {"an RDMA Read Request", func(v *faultRig) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 5, v.region.tag(), v.region.at(0)})
	}},
	goodReadResponse: {"an RDMA Read Response", func(v *faultRig) []byte { return aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response")) }},
	goodSend:         {"a Send", func(*faultRig) []byte { return aSend(1, []byte("abc")) }},
	goodSendInv:      {"a Send with Invalidate", func(v *faultRig) []byte { return aSendInv(1, v.region.tag(), nil) }},
	goodSendSE:       {"a Send with Solicited Event", func(*faultRig) []byte { return untagged(lastUntagged, opSendSE, 0, 0, 1, 0, []byte("abc")) }},
	goodSendSEInv: {"a Send with Solicited Event and Invalidate", func(v *faultRig) []byte {
		return untagged(lastUntagged, opSendSEInv, v.region.tag(), 0, 1, 0, nil)
	}},
	goodTerminate: {"a Terminate Message", func(*faultRig) []byte { return aTerminate(0x1202, nil, false) }},
}

// The messages of goodMessages, as the opcodes are numbered.
const (
	goodWrite = iota
	goodReadRequest
	goodReadResponse
	goodSend
	goodSendInv
	goodSendSE
	goodSendSEInv
	goodTerminate
)

// sendTypes are the four Sends.
var sendTypes = []struct {
	op        verbs.Op
	control   byte
	invalid   uint32 // what the Invalidate STag field has
	solicited bool
}{
	{verbs.OpSend, opSend, 0, false},
	{verbs.OpSendInvalidate, opSendInv, 0xAABBCC01, false},
	{verbs.OpSendSE, opSendSE, 0, true},
	{verbs.OpSendSEInvalidate, opSendSEInv, 0xAABBCC02, true},
}

// message is a message that came, put together from its segments.
type message struct {
	tagged   bool
	control  byte   // RsvdULP: RDMAP's control octet
	inv      uint32 // the other 32 bits of an untagged message's
	stag     uint32 // of a tagged message
	to       uint64 // of its first octet
	qn, msn  uint32 // of an untagged message
	payload  []byte
	segments []int // the length of each ULPDU
}

// address is a message without its contents.
func (m message) address() message {
	m.payload, m.segments = nil, nil
	return m
}

// messageOf reads segments up to one with the Last flag. All fields that belong to the message have
// to be the same in each of them, and the offsets have to go on (RFC 5041 4.1 to 4.3, 5.2).
func messageOf(t *conformance.T, next func() []byte) (m message) {
	for {
		u := next()
		s := must(parseSegment(u))(t)
		if m.segments == nil {
			m = message{tagged: s.tagged, control: s.control, inv: s.inv, stag: s.stag, to: s.to, qn: s.qn, msn: s.msn}
		}
		header := untagged(u[0], m.control, m.inv, m.qn, m.msn, uint32(len(m.payload)), nil)
		if m.tagged {
			header = tagged(u[0], m.control, m.stag, m.to+uint64(len(m.payload)), nil)
		}
		require.Equal(t, header, s.header, "segment %d of a message: its header", len(m.segments))
		m.payload = append(m.payload, s.payload...)
		m.segments = append(m.segments, len(u))
		if s.last {
			return m
		}
	}
}

// number is a queue and a number on it.
type number struct{ qn, msn uint32 }

// counter says of untagged messages that their numbers are consecutive, from 1 on
// each queue (RFC 5041 4.3).
type counter map[uint32]uint32

func (c counter) counts(t *conformance.T, p message) {
	if !p.tagged {
		c[p.qn]++
		require.Equal(t, number{p.qn, c[p.qn]}, number{p.qn, p.msn}, "the number of a message on its queue")
	}
}

// cutUp makes an untagged message of segments whose payloads have these lengths, the
// last one with the Last flag.
func cutUp(control byte, inv, msn uint32, payload []byte, lengths ...int) [][]byte {
	var list [][]byte
	mo := 0
	for i, n := range lengths {
		first := either(i == len(lengths)-1, lastUntagged, byte(moreUntagged))
		list = append(list, untagged(first, control, inv, 0, msn, uint32(mo), payload[mo:mo+n]))
		mo += n
	}
	return list
}

// cutTagged is cutUp for a tagged message.
func cutTagged(control byte, stag uint32, to uint64, payload []byte, lengths ...int) [][]byte {
	var list [][]byte
	off := 0
	for i, n := range lengths {
		first := either(i == len(lengths)-1, lastTagged, byte(moreTagged))
		list = append(list, tagged(first, control, stag, to+uint64(off), payload[off:off+n]))
		off += n
	}
	return list
}

// segmented is a message of tagged segments of up to k octets each.
func segmented(control byte, at verbs.Remote, data []byte, k int) [][]byte {
	var lengths []int
	for rest := len(data); rest > 0; rest -= k {
		lengths = append(lengths, min(rest, k))
	}
	return cutTagged(control, uint32(at.STag), at.TO, data, lengths...)
}
