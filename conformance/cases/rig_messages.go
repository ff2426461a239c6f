package cases

import "github.com/softrnic/softrnic/verbs"

// Messages that are as they have to be.

// theirs is a buffer of the peer's.
var theirs = verbs.Remote{STag: 0x11223344, TO: 0x0102030405060708}

// goodMessages are messages that the victim takes.
var goodMessages = []struct {
	what string
	make func(*victim) []byte
}{
	goodWrite: {"an RDMA Write", func(v *victim) []byte { return aWrite(v.region.tag(), v.region.at(3), []byte("abc")) }},
	goodReadRequest: {"an RDMA Read Request", func(v *victim) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 5, v.region.tag(), v.region.at(0)})
	}},
	goodReadResponse: {"an RDMA Read Response", func(v *victim) []byte { return aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response")) }},
	goodSend:         {"a Send", func(*victim) []byte { return aSend(1, []byte("abc")) }},
	goodSendInv:      {"a Send with Invalidate", func(v *victim) []byte { return aSendInv(1, v.region.tag(), nil) }},
	goodSendSE:       {"a Send with Solicited Event", func(*victim) []byte { return untagged(lastUntagged, opSendSE, 0, 0, 1, 0, []byte("abc")) }},
	goodSendSEInv: {"a Send with Solicited Event and Invalidate", func(v *victim) []byte {
		return untagged(lastUntagged, opSendSEInv, v.region.tag(), 0, 1, 0, nil)
	}},
	goodTerminate: {"a Terminate Message", func(*victim) []byte { return aTerminate(0x1202, nil, false) }},
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

// address is a parcel without its contents.
func (p parcel) address() parcel {
	p.payload, p.segments = nil, nil
	return p
}

// aReadOf is an RDMA Read of a peer's made-up source into n octets of a buffer, and
// asksFor what the peer hears of it.
func (b *buffer) aReadOf(id uint64, off, n int) verbs.Request {
	return verbs.Request{ID: id, Op: verbs.OpRead, Local: b.sge(off, n), Remote: theirs}
}

func (b *buffer) asksFor(msn uint32, off, n int) []byte {
	return aReadRequest(msn, read{b.tag(), b.at(off), uint32(n), uint32(theirs.STag), theirs.TO})
}

// segmented is a message of tagged segments of up to k octets each.
func segmented(control byte, at verbs.Remote, data []byte, k int) (list [][]byte) {
	for off := 0; off < len(data); off += k {
		first, end := byte(moreTagged), off+k
		if end >= len(data) {
			first, end = lastTagged, len(data)
		}
		list = append(list, tagged(first, control, uint32(at.STag), at.TO+uint64(off), data[off:end]))
	}
	return list
}
