package cases

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// Memory of the queue pair under test: what it holds and has to hold, windows, and Atomics on it.

// buffer is a Memory Region of the queue pair's side, and what it has to hold.
type buffer struct {
	uppertester.Region
	r     *rig
	first []byte
}

// region registers n octets in the queue pair's PD, VA-based.
func (r *rig) region(n int, access verbs.Access) *buffer {
	return r.register(uppertester.RegisterArgs{Len: n, Access: access})
}

// register is Register. The Seed, if 0, is made up.
func (r *rig) register(a uppertester.RegisterArgs) *buffer {
	b := &buffer{r: r}
	if a.Seed == 0 {
		a.Seed = uint8(r.t.Rand().UintN(255) + 1)
	}
	require.NoError(r.t, r.up.Register(a, &b.Region), "Register")
	b.first = uppertester.Pattern(a.Seed, a.Len)
	return b
}

// window binds a new window with key 1 to the whole of a buffer, on the queue pair, and windowOf to
// n octets from octet off on.
func (r *rig) window(b *buffer, access verbs.Access) verbs.STag {
	return r.windowOf(b, 0, len(b.first), access)
}

func (r *rig) windowOf(b *buffer, off, n int, access verbs.Access) verbs.STag {
	var w uppertester.Window
	require.NoError(r.t, r.up.AllocateWindow(0, &w), "Allocate Memory Window")
	stag := w.STag + 1
	r.post(verbs.Request{ID: 0xB1, Op: verbs.OpBind, Bind: &verbs.BindRequest{
		Window: stag, Region: b.STag, VA: b.at(off), Length: uint64(n), Access: access,
	}})
	r.completions(verbs.Completion{ID: 0xB1, Op: verbs.OpBind})
	return stag
}

// tag and at are the buffer as the peer names it: STag, and TO of octet off.
func (b *buffer) tag() uint32       { return uint32(b.STag) }
func (b *buffer) at(off int) uint64 { return b.Base + uint64(off) }
func (b *buffer) sge(off, n int) verbs.SGE {
	return verbs.SGE{STag: b.STag, Length: uint32(n), TO: b.at(off)}
}
func (b *buffer) sgl(off, n int) []verbs.SGE { return []verbs.SGE{b.sge(off, n)} }

// memory is what the buffer holds now.
func (b *buffer) memory() []byte {
	var o uppertester.Octets
	require.NoError(b.r.t, b.r.up.Memory(b.Region.Region, &o))
	return o.Octets
}

// gets notes that from off on there will be what was sent, unchanged says that the buffer is as it
// was but for that, and holds is both.
func (b *buffer) gets(off int, octets []byte) { copy(b.first[off:], octets) }
func (b *buffer) unchanged()                  { same(b.r.t, b.first, b.memory(), "region %v", b.STag) }
func (b *buffer) holds(off int, octets []byte) {
	b.gets(off, octets)
	b.unchanged()
}

// allUnchanged says that none of these buffers has changed.
func allUnchanged(list []*buffer) {
	for _, b := range list {
		b.unchanged()
	}
}

// same compares many octets, and shows some where they differ.
func same(t *conformance.T, want, got []byte, format string, args ...any) {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			end := min(i+16, len(want), len(got))
			t.Fatalf("%s: octets from %d on are % x, not % x", fmt.Sprintf(format, args...), i, got[i:end], want[i:end])
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%s: %d octets, not %d", fmt.Sprintf(format, args...), len(got), len(want))
	}
}

// query is Query Memory Region.
func (b *buffer) query() verbs.RegionAttributes {
	var q uppertester.RegionState
	require.NoError(b.r.t, b.r.up.QueryRegion(b.Region.Region, &q), "Query Memory Region")
	return q.RegionAttributes
}

// deregister is Deregister.
func (b *buffer) deregister() {
	require.NoError(b.r.t, b.r.up.Deregister(b.Region.Region, &uppertester.None{}), "Deregister")
}

// aReadOf is an RDMA Read of a peer's made-up source into n octets of a buffer, and
// asksFor what the peer gets of it.
func (b *buffer) aReadOf(id uint64, off, n int) verbs.Request {
	return verbs.Request{ID: id, Op: verbs.OpRead, Local: b.sge(off, n), Remote: theirs}
}

func (b *buffer) asksFor(msn uint32, off, n int) []byte {
	return aReadRequest(msn, read{b.tag(), b.at(off), uint32(n), uint32(theirs.STag), theirs.TO})
}

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
	require.NoError(b.r.t, b.r.up.Fill(uppertester.FillArgs{Region: b.Region.Region, Off: off, Octets: native(v)}, &uppertester.None{}))
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

// guardedMemory is memory of which each octet is watched: regions lie in it with a page of guard
// before and behind them. No octet of it is 0, and each is below 0x80; those of payload are
// not.
type guardedMemory struct {
	test              *conformance.T
	first, want, have []byte
	next              int // where the next plot's guard begins
	regions           []*guardedRegion
	undo              []func() error // takes back what was made with the regions
}

const guard = 4096

func newGuardedMemory(t *conformance.T) *guardedMemory {
	g := &guardedMemory{test: t, have: make([]byte, 1<<20)}
	for i := range g.have {
		g.have[i] = byte(i*31+i>>8*17)&0x7F | 1
	}
	g.first, g.want = bytes.Clone(g.have), bytes.Clone(g.have)
	return g
}

// payload is n octets that no guarded memory has, different from seed to seed.
func payload(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*13+i>>8*7+seed) | 0x80
	}
	return b
}

// guardedRegion is a region in guarded memory.
type guardedRegion struct {
	*verbs.MR
	g    *guardedMemory
	off  int // in the guarded memory
	gone bool
}

// give takes the region away, now or with all others.
func (p *guardedRegion) give() error {
	if p.gone {
		return nil
	}
	p.gone = true
	return p.Deregister()
}

// piece takes n octets that have a page of guard on either side.
func (g *guardedMemory) piece(n int) (off int, memory []byte) {
	off = g.next + guard
	g.next = off + n
	require.Less(g.test, g.next+guard, len(g.have), "the ground is too small")
	return off, g.have[off : off+n : off+n]
}

// at is the TO of an octet of the region, or of its guard.
func (p *guardedRegion) at(off int) uint64 { return p.Base() + uint64(off) }
func (p *guardedRegion) tag() uint32       { return uint32(p.STag()) }
func (p *guardedRegion) sge(off, n int) verbs.SGE {
	return verbs.SGE{STag: p.STag(), TO: p.at(off), Length: uint32(n)}
}
func (p *guardedRegion) sgl(off, n int) []verbs.SGE { return []verbs.SGE{p.sge(off, n)} }

// deregister takes the region away. What it holds then is what it has to hold from there on.
func (p *guardedRegion) deregister() {
	require.NoError(p.g.test, p.give())
	copy(p.g.want[p.off:p.off+p.Len()], p.g.have[p.off:])
}

// gets says that octets belong into the region from off on.
func (p *guardedRegion) gets(off int, octets []byte) { copy(p.g.want[p.off+off:], octets) }

// unchanged says that no octet has changed but those that something has got.
func (g *guardedMemory) unchanged() {
	end := g.next + guard
	if bytes.Equal(g.have[:end], g.want[:end]) {
		return
	}
	for i := range end {
		if g.have[i] == g.want[i] {
			continue
		}
		k := 0
		for k+1 < len(g.regions) && g.regions[k+1].off-guard <= i {
			k++
		}
		last := min(i+16, end)
		g.test.Fatalf("octet %d of region %d: there is % x, not % x", i-g.regions[k].off, k, g.have[i:last], g.want[i:last])
	}
}

// clear takes back all regions and what was made of them, last one first.
func (g *guardedMemory) clear() {
	for i := len(g.undo) - 1; i >= 0; i-- {
		require.NoError(g.test, g.undo[i]())
	}
	end := g.next + guard
	copy(g.have, g.first[:end])
	copy(g.want, g.first[:end])
	g.next, g.regions, g.undo = 0, g.regions[:0], g.undo[:0]
}
