package cases

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// What the cases of Atomic Operations play in.

// atomicRights are those of memory that Atomics may change, and all others.
const atomicRights = allRights | verbs.RemoteAtomic

// extended is a rig whose queue pair speaks RFC 7306.
func extended(s setup) setup {
	s.qp.Extensions = true
	return s
}

// unhex are octets that are written in hexadecimal, with spaces between.
func unhex(t *conformance.T, text string) []byte {
	return must(hex.DecodeString(strings.ReplaceAll(text, " ", "")))(t)
}

// native are the octets of a number in memory. The target's byte order is this machine's.
func native(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

// number is what the buffer holds from off on, as a number.
func (b *buffer) number(off int) uint64 { return binary.NativeEndian.Uint64(b.first[off:]) }

// put has the program put a number there.
func (b *buffer) put(off int, v uint64) {
	require.NoError(b.s.t, b.s.up.Fill(upper.FillArgs{Region: b.Region.Region, Off: off, Octets: native(v)}, &upper.None{}))
	b.gets(off, native(v))
}

// atomics is a rig whose peer counts its Atomics and what answers them.
type atomics struct {
	*rig
	answers uint32 // MSN of the next Atomic Response
}

func openAtomics(r *rig) *atomics { return &atomics{rig: r, answers: 1} }

// ask is the peer's next request, an Atomic.
func (a *atomics) ask(op atomicOp) []byte { return anAtomicRequest(a.nextRead(), op) }

// answer is the next Atomic Response.
func (a *atomics) answer(id uint32, original uint64) []byte {
	a.answers++
	return anAtomicResponse(a.answers-1, id, original)
}

// asks sends an Atomic, and reads its answer, which has to be this.
func (a *atomics) asks(op atomicOp, original uint64) {
	a.send(a.ask(op))
	a.expect(a.answer(op.id, original))
}

// fetchAdd and compareSwap are Atomics on the buffer, with masks.
func (b *buffer) fetchAdd(off int, id uint32, data, mask uint64) atomicOp {
	return atomicOp{op: atomicFetchAdd, id: id, stag: b.tag(), to: b.at(off), data: data, mask: mask, compareMask: ^uint64(0)}
}

func (b *buffer) compareSwap(off int, id uint32, data, mask, compare, compareMask uint64) atomicOp {
	return atomicOp{atomicCmpSwap, id, b.tag(), b.at(off), data, mask, compare, compareMask}
}
