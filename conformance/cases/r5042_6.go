package cases

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5042_6 is what a hostile peer does to memory: RFC 5042 6.1 and 6.2.
var r5042_6 = []conformance.Case{
	upperCase("6.1.1/domain-for-each-stream", withTester(domainEach), "R5042-6.1.1-M1"),
	upperCase("6.1.1/stag-for-one-stream", withTester(stagForOne), "R5042-6.1.1-M2"),
	upperCase("6.1.1/other-domain-refused", withTester(otherDomainRefused), "R5042-6.1.1-M3"),
	upperCase("6.1.1/other-stream-refused", withTester(otherStreamRefused), "R5042-6.1.1-M4"),
	upperCase("6.2.1/octets-beside", octetsBeside, "R5042-6.2.1-M1"),
	upperCase("6.2.2/revoked-within-a-message", revokedWithin, "R5042-6.2.2-M1"),
}

// intruder is a peer's try at an STag that is not for it.
type intruder struct {
	what  string
	ulpdu func(b *buffer) []byte
	code  uint16
	read  bool // the Read Request header is echoed
	event verbs.EventID
}

// intruders use an STag in each of the three ways that there are.
var intruders = []intruder{
	{"RDMA Write", func(b *buffer) []byte { return aWrite(b.tag(), b.at(3), []byte("intruder")) }, 0x1102, false, verbs.EventProtPD},
	{"RDMA Read", func(b *buffer) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 8, b.tag(), b.at(3)})
	}, 0x0103, true, verbs.EventIRRQPD},
	{"Send with Invalidate", func(b *buffer) []byte { return aSendInv(1, b.tag(), nil) }, 0x0109, false, 0},
}

// keepsOut has a new queue pair's peer try an STag: its stream ends with the right
// code, and octets and STag are as before.
func (b *buffer) keepsOut(qp uppertester.OpenArgs, tries ...intruder) {
	t := b.r.t
	for x := range inTurn(t, "%s", tries) {
		r := openIn(t, b.r.up, setup{qp: qp})
		r.recv(1, 8)
		bad := x.ulpdu(b)
		r.refuses(x.code, bad, x.read)
		want := verbs.StatusInvalidateSTag
		if x.event != 0 {
			r.events(x.event)
			want = verbs.StatusFlushed
		} else {
			r.events()
		}
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: want})
		b.unchanged()
	}
}

// letsIn has the peer of a rig write to the buffer and read it.
func (b *buffer) letsIn(r *rig, octets string) {
	r.send(aWrite(b.tag(), b.at(2), []byte(octets)))
	b.gets(2, []byte(octets))
	same(r.t, b.first, r.fetch(b, 0, len(b.first)), "what its own peer reads")
	b.unchanged()
}

// domainEach gives two streams a domain each: each reaches its own region, and not
// the other's.
func domainEach(t *conformance.T, u uppertester.Tester) {
	p := openIn(t, u, setup{qp: uppertester.OpenArgs{PD: 1}})
	q := openIn(t, u, setup{qp: uppertester.OpenArgs{PD: 2}})
	mine := p.register(uppertester.RegisterArgs{PD: 1, Len: 32, Access: allRights})
	yours := q.register(uppertester.RegisterArgs{PD: 2, Len: 32, Access: allRights})
	mine.letsIn(p, "mine")
	yours.letsIn(q, "yours")
	mine.keepsOut(uppertester.OpenArgs{PD: 2}, intruders[:2]...)
	yours.keepsOut(uppertester.OpenArgs{PD: 1}, intruders[:2]...)
	// To the letter: the streams that worked just now.
	bad := aWrite(mine.tag(), mine.at(0), []byte("not mine"))
	q.send(bad)
	q.terminated(0x1102, bad, false)
	mine.unchanged()
	mine.letsIn(p, "still")
}

// stagForOne has two streams in one domain, and a region for one of them.
func stagForOne(t *conformance.T, u uppertester.Tester) {
	p := openIn(t, u, setup{})
	b := p.register(uppertester.RegisterArgs{QP: p.QP, Len: 32, Access: allRights})
	open := p.region(32, allRights)
	b.letsIn(p, "mine")
	for _, x := range intruders[:2] {
		q := openIn(t, u, setup{})
		open.letsIn(q, x.what) // it has the domain
		bad := x.ulpdu(b)
		if x.read {
			bad = aReadRequest(q.nextRead(), read{nowhere, nowhereTO, 8, b.tag(), b.at(3)})
		}
		q.send(bad)
		q.terminated(x.code, bad, x.read)
		q.events(x.event)
		b.unchanged()
	}
	b.letsIn(p, "still")
}

// otherDomainRefused tries regions and windows of another domain, whose STag the
// peer knows.
func otherDomainRefused(t *conformance.T, u uppertester.Tester) {
	owner := openIn(t, u, setup{})
	region := owner.region(64, allRights|verbs.BindWindow)
	zero := owner.register(uppertester.RegisterArgs{Len: 64, Access: allRights, ZeroBased: true})
	window := *region
	window.STag = owner.window(region, remoteRights)
	for _, b := range []*buffer{region, zero, &window} {
		b.keepsOut(uppertester.OpenArgs{PD: 7}, intruders...)
	}
	require.True(t, region.query().Valid)
	require.True(t, zero.query().Valid)
	region.letsIn(owner, "region")
	zero.letsIn(owner, "zero")
	window.first = region.first
	window.letsIn(owner, "window")
}

// otherStreamRefused tries what belongs to one stream from others of its domain.
func otherStreamRefused(t *conformance.T, u uppertester.Tester) {
	owner := openIn(t, u, setup{})
	scoped := owner.register(uppertester.RegisterArgs{QP: owner.QP, Len: 64, Access: allRights})
	region := owner.region(64, allRights|verbs.BindWindow)
	window := *region
	window.STag = owner.window(region, remoteRights)
	scoped.keepsOut(uppertester.OpenArgs{}, intruders...)
	window.keepsOut(uppertester.OpenArgs{}, intruders...)
	require.True(t, scoped.query().Valid)
	scoped.letsIn(owner, "scoped")
	window.letsIn(owner, "window")
}

// octetsBeside writes to and reads from around a window of an odd length: the octets
// of the region on both sides of it stand guard.
func octetsBeside(t *conformance.T) {
	const from, n = 13, 37
	u := tester(t)
	for x := range inTurn(t, "%s", []struct {
		what      string
		off, size int
		wraps     bool
	}{
		{"one octet before", -1, 1, false}, {"one octet past", n, 1, false},
		{"astride the beginning", -1, 2, false}, {"astride the end", n - 1, 2, false},
		{"one octet more", 0, n + 1, false}, {"around it all", -1, n + 2, false},
		{"the whole of it", 0, n, false}, {"its last octet", n - 1, 1, false},
		{"around the end of all addresses", 0, 16, true},
	}) {
		for write := range inTurn(t, "write %v", []bool{true, false}) {
			r := openIn(t, u, setup{})
			b := r.region(64, allRights|verbs.BindWindow)
			tag := uint32(r.windowOf(b, from, n, remoteRights))
			to := b.at(from + x.off)
			code, event := uint16(0x0101), verbs.EventIRRQBounds
			if write {
				code, event = 0x1101, verbs.EventProtBounds
			}
			if x.wraps {
				to = math.MaxUint64 - 7
				code, event = 0x0104, verbs.EventIRRQWrap
				if write {
					code, event = 0x1103, verbs.EventProtWrap
				}
			}
			data := uppertester.Pattern(0xC7, x.size)
			segment := aReadRequest(1, read{nowhere, nowhereTO, uint32(x.size), tag, to})
			if write {
				segment = aWrite(tag, to, data)
			}
			r.send(segment)
			switch {
			case x.wraps || x.off < 0 || x.off+x.size > n:
				r.tornDown(code, segment, !write)
				r.events(event)
			case write:
				r.settled()
				b.gets(from+x.off, data)
			default:
				r.expect(aReadResponse(nowhere, nowhereTO, b.first[from+x.off:from+x.off+x.size]))
			}
			b.unchanged()
		}
	}
}

// revokedWithin takes the right away in the middle of an RDMA Write: the rest of it,
// which the peer goes on to send, changes nothing.
func revokedWithin(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what   string
		window bool
		how    func(r *rig, b *buffer, tag uint32)
	}{
		{"Deallocate", false, func(_ *rig, b *buffer, _ uint32) { b.deregister() }},
		{"Invalidate Local STag of a region", false, func(r *rig, _ *buffer, tag uint32) { r.invalidate(tag) }},
		{"Invalidate Local STag of a window", true, func(r *rig, _ *buffer, tag uint32) { r.invalidate(tag) }},
	}) {
		r := open(t, setup{})
		b := r.region(256, allRights|verbs.BindWindow)
		tag := b.tag()
		if x.window {
			tag = uint32(r.window(b, remoteRights))
		}
		half := uppertester.Pattern(0x31, 128)
		first := tagged(moreTagged, opWrite, tag, b.at(0), half)
		rest := tagged(lastTagged, opWrite, tag, b.at(128), half)
		r.send(first)
		x.how(r, b, tag)
		// By now the first half has been placed, or never will be.
		bad, after := first, b.memory()
		if string(after) != string(b.first) {
			bad = rest
			b.gets(0, half)
		}
		same(t, b.first, after, "what was placed before")
		r.send(rest)
		r.tornDown(0x1100, bad, false)
		r.events(verbs.EventProtSTag)
		b.unchanged()
	}
	t.Part("by the peer itself")
	for _, reads := range []bool{false, true} {
		r, b := openWith(t, setup{}, 64)
		r.recv(1, 8)
		r.send(aWrite(b.tag(), b.at(0), []byte("before")), aSendInv(r.nextSend(), b.tag(), []byte("done")))
		b.gets(0, []byte("before"))
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 4, Invalidated: b.STag, HasInvalidated: true})
		b.unchanged()
		bad, code := aWrite(b.tag(), b.at(0), []byte("after")), uint16(0x1100)
		if reads {
			bad, code = aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 5, b.tag(), b.at(0)}), 0x0100
		}
		r.send(bad)
		r.terminated(code, bad, reads)
		b.unchanged()
	}
}

// invalidate is Invalidate Local STag, done.
func (r *rig) invalidate(tag uint32) {
	r.post(verbs.Request{ID: 0x1A, Op: verbs.OpInvalidate, Invalidate: verbs.STag(tag)})
	r.completions(verbs.Completion{ID: 0x1A, Op: verbs.OpInvalidate})
}
