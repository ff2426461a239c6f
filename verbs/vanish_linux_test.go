package verbs_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// vanishing is memory outside of Go's heap. One page of it goes; nothing else in the
// process asks for a single page, so the hole stays one.
type vanishing struct {
	mem  []byte
	hole []byte
	off  int // of what requests name
	n    int // its length
}

func newVanishing(t *testing.T, n int) vanishing {
	page := syscall.Getpagesize()
	size := max(n, 3*page)
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
	at := size / page / 2 * page
	v := vanishing{mem: mem, hole: mem[at : at+page], n: n}
	if n < page {
		v.off = at
	}
	return v
}

// unmap makes the page vanish. The slice of all goes on to name it.
func (v vanishing) unmap(t *testing.T) {
	_, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(&v.hole[0])), uintptr(len(v.hole)), 0)
	require.Zero(t, errno)
}

func (v vanishing) protect(t *testing.T, prot int) {
	require.NoError(t, syscall.Mprotect(v.hole, prot))
}

// TestMemoryVanishes: an operation that meets memory which its program has unmapped, or
// may not write any more, ends as an access violation of that operation, at the side
// whose memory it is; the process goes on, and so do the other streams of the RNIC.
func TestMemoryVanishes(t *testing.T) {
	ways := []struct {
		name   string
		reads  bool // reading fails too
		vanish func(vanishing, *testing.T)
	}{
		{"unmapped", true, vanishing.unmap},
		{"no access", true, func(v vanishing, t *testing.T) { v.protect(t, syscall.PROT_NONE) }},
		{"read-only", false, func(v vanishing, t *testing.T) { v.protect(t, syscall.PROT_READ) }},
	}
	streams := []verbs.StreamConfig{{}, {CRC: true}, {CRC: true, MarkersIn: true, MarkersOut: true}}
	for _, way := range ways {
		for _, stream := range streams {
			for _, n := range []int{64, 1 << 20} {
				for _, op := range vanishingOps {
					if op.reads && !way.reads {
						continue
					}
					name := fmt.Sprintf("%s/%s/%d/CRC=%v/markers=%v", op.name, way.name, n, stream.CRC, stream.MarkersIn)
					t.Run(name, func(t *testing.T) {
						p := newVanishingPair(t, n, op.at == 1, stream)
						way.vanish(p.v, t)
						op.run(p)
						p.goesOn()
					})
				}
			}
		}
	}
}

// vanishingPair is two RNICs with a stream between them. The memory of one is lent.
type vanishingPair struct {
	t      *testing.T
	a, b   *node // a is the Initiator and asks
	events chan verbs.Event
	v      vanishing
	mr     *verbs.MR // over v
}

func newVanishingPair(t *testing.T, n int, atB bool, stream verbs.StreamConfig) *vanishingPair {
	p := &vanishingPair{t: t, a: newNode(t, verbs.QPConfig{}), b: newNode(t, verbs.QPConfig{})}
	p.v = newVanishing(t, n)
	owner := p.a
	if atB {
		owner = p.b
	}
	p.events = make(chan verbs.Event, 16)
	require.NoError(t, owner.nic.SetEventHandler(func(e verbs.Event) { p.events <- e }))
	var err error
	verbsinternal.MayVanish(owner.nic)
	p.mr, err = owner.pd.RegisterRegion(verbs.RegionConfig{Memory: p.v.mem, Access: allRights})
	require.NoError(t, err)
	x, y := tcpConns(t)
	for i, conn := range []*node{p.b, p.a} {
		s := stream
		s.Conn, s.Role = y, mpa.Responder
		if i == 1 {
			s.Conn, s.Role = x, mpa.Initiator
		}
		require.NoError(t, conn.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &s}))
	}
	return p
}

func (p *vanishingPair) sge() verbs.SGE { return p.mr.SGE(p.v.off, p.v.n) }

func (p *vanishingPair) post(w verbs.Request) {
	_, err := p.a.qp.PostSend(w)
	require.NoError(p.t, err)
}

func (p *vanishingPair) event(want verbs.EventID) {
	p.t.Helper()
	select {
	case e := <-p.events:
		assert.Equal(p.t, want, e.ID, "%v", e)
	case <-time.After(time.Minute):
		require.Fail(p.t, "no event")
	}
}

var vanishingOps = []struct {
	name  string
	at    int  // 1: the memory is that of the peer of who asks
	reads bool // of that memory
	run   func(*vanishingPair)
}{
	{"sink of a Write", 1, false, func(p *vanishingPair) {
		p.post(verbs.Request{Op: verbs.OpWrite, SGL: p.a.mr.SGL(0, p.v.n), Remote: p.mr.Remote(p.v.off)})
		p.event(verbs.EventProtAccess)
	}},
	{"source of a Write", 0, true, func(p *vanishingPair) {
		p.post(verbs.Request{Op: verbs.OpWrite, SGL: []verbs.SGE{p.sge()}, Remote: p.b.mr.Remote(0)})
		assert.Equal(p.t, verbs.StatusAccess, waitOne(p.t, p.a.cq).Status)
	}},
	{"source of a Read", 1, true, func(p *vanishingPair) {
		p.post(verbs.Request{Op: verbs.OpRead, Local: p.a.mr.SGE(0, p.v.n), Remote: p.mr.Remote(p.v.off)})
		p.event(verbs.EventIRRQAccess)
		assert.Equal(p.t, verbs.StatusRemoteTermination, waitOne(p.t, p.a.cq).Status)
	}},
	{"sink of a Read", 0, false, func(p *vanishingPair) {
		p.post(verbs.Request{Op: verbs.OpRead, Local: p.sge(), Remote: p.b.mr.Remote(0)})
		assert.Equal(p.t, verbs.StatusAccess, waitOne(p.t, p.a.cq).Status)
	}},
	{"receive", 1, false, func(p *vanishingPair) {
		_, err := p.b.qp.PostRecv(verbs.Recv{SGL: []verbs.SGE{p.sge()}})
		require.NoError(p.t, err)
		p.post(verbs.Request{SGL: p.a.mr.SGL(0, p.v.n)})
		assert.Equal(p.t, verbs.StatusAccess, waitOne(p.t, p.b.cq).Status)
	}},
	{"source of a Send", 0, true, func(p *vanishingPair) {
		p.post(verbs.Request{SGL: []verbs.SGE{p.a.mr.SGE(0, 8), p.sge()}})
		assert.Equal(p.t, verbs.StatusAccess, waitOne(p.t, p.a.cq).Status)
	}},
	{"short Send behind others", 0, true, func(p *vanishingPair) {
		small := verbs.Request{Op: verbs.OpWrite, SGL: p.a.mr.SGL(0, 8), Remote: p.b.mr.Remote(0)}
		bad := verbs.Request{ID: 7, SGL: p.mr.SGL(p.v.off+p.v.n/2, 64)}
		if p.v.n == 64 {
			bad.SGL = p.mr.SGL(p.v.off, 64)
		}
		_, err := p.a.qp.PostSend(small, small, bad)
		require.NoError(p.t, err)
		p.a.wait(p.t, 2)
		c := waitOne(p.t, p.a.cq)
		assert.Equal(p.t, uint64(7), c.ID)
		assert.Equal(p.t, verbs.StatusAccess, c.Status)
	}},
}

// goesOn deregisters the memory, for which nothing may hold it, and uses a new stream
// between the two RNICs.
func (p *vanishingPair) goesOn() {
	require.NoError(p.t, p.mr.Deregister())
	x, y := p.a.newQP(p.t, verbs.QPConfig{}), p.b.newQP(p.t, verbs.QPConfig{})
	join(p.t, x, y, true)
	_, err := x.PostSend(verbs.Request{ID: 9, Op: verbs.OpRead, Local: p.a.mr.SGE(0, 64), Remote: p.b.mr.Remote(0)})
	require.NoError(p.t, err)
	for {
		if c := waitOne(p.t, p.a.cq); c.ID == 9 {
			require.Equal(p.t, verbs.StatusSuccess, c.Status)
			return
		}
	}
}
