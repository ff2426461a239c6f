package qp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// setup is how a rig is to be. Zero values have defaults.
type setup struct {
	role         mpa.Role // of the queue pair
	crc, markers bool
	pipe         bool // net.Pipe in place of TCP
	split        bool // attacks come in two parts, and Direct is 1
	ird, ord     int  // 4; negative for 0
	depth        int  // 16, of both queues
	cqe          int  // 64, of both CQs
	noRead       bool
	noWrite      bool
	closeTimeout time.Duration
	patience     time.Duration     // of the peer; patience
	config       func(*Config)     // last changes before New
	stream       func(*mpa.Stream) // last changes before RTS
}

func (c setup) withDefaults() setup {
	set := func(p *int, d int) {
		if *p == 0 {
			*p = d
		}
		*p = max(*p, 0)
	}
	set(&c.ird, 4)
	set(&c.ord, 4)
	set(&c.depth, 16)
	set(&c.cqe, 64)
	if c.patience == 0 {
		c.patience = patience
	}
	if c.closeTimeout == 0 {
		c.closeTimeout = time.Minute // so that no test passes by waiting
	}
	return c
}

const (
	ownPD   wr.PDID = 1
	otherPD wr.PDID = 2
	ownQP   wr.QPID = 7
	otherQP wr.QPID = 8
)

// patience bounds what a test waits for.
var patience = 30 * time.Second

// rig is a queue pair, memory of all kinds, and a raw peer at the other end.
type rig struct {
	t        testing.TB
	id       wr.QPID
	set      setup
	tab      *stag.Table
	q        *QP
	s        *session // the latest
	modify   Modify   // what goes with Idle to RTS
	scq, rcq *cq.Queue
	peer     *rawpeer.Peer
	events   eventLog

	full     *slab // every right
	readable *slab // remote read, no remote write
	writable *slab // remote write, no remote read
	private  *slab // local rights only
	foreign  *slab // another PD
	scoped   *slab // another queue pair
	pinned   *slab // may not be invalidated by a peer
	windowed *slab // local rights, and windows
	gone     wr.STag
	aim      wr.SGE // the sink of the Read that an attack answers
	slabs    []*slab
}

func newIdleRig(t testing.TB, c setup) *rig {
	c = c.withDefaults()
	r := &rig{t: t, id: ownQP, set: c, tab: stag.NewTable(stag.Config{Regions: 64})}
	r.scq, r.rcq = cq.New(cq.Config{ID: 1, Entries: c.cqe}), cq.New(cq.Config{ID: 2, Entries: c.cqe})
	all := wr.LocalRead | wr.LocalWrite | wr.RemoteRead | wr.RemoteWrite | wr.RemoteAtomic
	r.full = r.newSlab(stag.RegionConfig{PD: ownPD, Access: all, Key: 1, RemoteInvalidate: true})
	r.readable = r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalRead | wr.RemoteRead, Key: 2, RemoteInvalidate: true})
	r.writable = r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalWrite | wr.RemoteWrite, Key: 3, RemoteInvalidate: true})
	r.private = r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalRead | wr.LocalWrite, Key: 4, RemoteInvalidate: true})
	r.foreign = r.newSlab(stag.RegionConfig{PD: otherPD, Access: all, Key: 5, RemoteInvalidate: true})
	r.scoped = r.newSlab(stag.RegionConfig{PD: ownPD, Access: all, QP: otherQP, Key: 6, RemoteInvalidate: true})
	r.pinned = r.newSlab(stag.RegionConfig{PD: ownPD, Access: all, Key: 7})
	r.windowed = r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalRead | wr.LocalWrite | wr.BindWindow, Key: 9, RemoteInvalidate: true})
	gone := r.newSlab(stag.RegionConfig{PD: ownPD, Access: all, Key: 8, RemoteInvalidate: true})
	require.NoError(t, r.tab.Deallocate(gone.stag))
	r.gone = gone.stag
	r.newQP()
	return r
}

func (r *rig) newQP() {
	c := r.set
	conf := Config{
		ID: r.id, PD: ownPD, STags: r.tab, SendCQ: r.scq, RecvCQ: r.rcq,
		SendDepth: c.depth, RecvDepth: c.depth, SendSGE: 4, RecvSGE: 4,
		IRD: c.ird, ORD: c.ord, NoInboundRead: c.noRead, NoInboundWrite: c.noWrite,
		CloseTimeout: c.closeTimeout, Events: r.event,
	}
	if c.split {
		conf.Tuning.Direct = 1
	}
	if c.config != nil {
		c.config(&conf)
	}
	r.q = New(conf)
	r.t.Cleanup(func() {
		promptly(r.t, "Destroy", func() { _ = r.q.Destroy() })
		if r.peer != nil {
			_ = r.peer.Close()
		}
		r.scq.Close()
		r.rcq.Close()
	})
}

// sibling is another rig in RTS, with the same memory and S-RQ and CQs of its own.
func (r *rig) sibling(id wr.QPID) *rig {
	c := r.set
	b := &rig{
		t: r.t, id: id, set: c, tab: r.tab, slabs: r.slabs, full: r.full, private: r.private,
		foreign: r.foreign, gone: r.gone,
		scq: cq.New(cq.Config{ID: 3, Entries: c.cqe}), rcq: cq.New(cq.Config{ID: 4, Entries: c.cqe}),
	}
	b.newQP()
	b.connect()
	return b
}

// newRig is a rig in RTS.
func newRig(t testing.TB, c setup) *rig {
	r := newIdleRig(t, c)
	r.connect()
	return r
}

// connect brings the queue pair from Idle to RTS, with a new peer.
func (r *rig) connect() {
	var mine, theirs net.Conn
	if r.set.pipe {
		mine, theirs = net.Pipe()
	} else {
		var err error
		mine, theirs, err = rawpeer.Pair()
		require.NoError(r.t, err)
	}
	if r.peer != nil {
		_ = r.peer.Close()
	}
	r.start(mine, theirs)
}

func (r *rig) start(mine, theirs net.Conn) {
	c := r.set
	r.peer = rawpeer.New(theirs, rawpeer.Options{CRC: c.crc, MarkersOut: c.markers, MarkersIn: c.markers, Patience: c.patience})
	st := &mpa.Stream{Conn: mine, Role: c.role, CRC: c.crc, MarkersIn: c.markers, MarkersOut: c.markers}
	if c.stream != nil {
		c.stream(st)
	}
	m := r.modify
	m.Next, m.Stream = wr.StateRTS, st
	require.NoError(r.t, r.q.Modify(m))
	r.s = r.q.session.Load()
	if r.s == nil { // it has ended already, which only a stream with early octets can
		return
	}
}

// send sends ULPDUs in good FPDUs.
func (r *rig) send(ulpdus ...[]byte) {
	r.t.Helper()
	for _, u := range ulpdus {
		require.NoError(r.t, r.peer.Send(u))
	}
}

// next reads a ULPDU from the queue pair.
func (r *rig) next() []byte {
	r.t.Helper()
	u, err := r.peer.Next()
	require.NoError(r.t, err)
	return u
}

// openGate is the FPDU that lets a Responder send.
func (r *rig) openGate() {
	r.t.Helper()
	if r.set.role != mpa.Responder {
		return
	}
	r.send(rawpeer.Write(0, 0, nil).Octets())
}

func (r *rig) postRecv(w ...wr.Recv) {
	r.t.Helper()
	n, err := r.q.PostRecv(w...)
	require.NoError(r.t, err)
	require.Equal(r.t, len(w), n)
}

func (r *rig) postSend(w ...wr.Request) {
	r.t.Helper()
	n, err := r.q.PostSend(w...)
	require.NoError(r.t, err)
	require.Equal(r.t, len(w), n)
}

// over waits for the end of the session.
func (r *rig) over() {
	r.t.Helper()
	select {
	case <-r.s.over:
	case <-time.After(patience):
		require.Fail(r.t, "the session does not end", "state %v", r.q.State())
	}
}

// requireReusable takes the queue pair from Error through Idle to a new stream,
// exchanges a Send each way, and closes (verbs draft 6.2.4, 6.2.1.2).
func (r *rig) requireReusable() {
	r.t.Helper()
	require.Equal(r.t, wr.StateError, r.q.State())
	require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateIdle}))
	r.events.list = nil
	r.all(r.scq)
	r.all(r.rcq)
	r.connect()
	assert.Nil(r.t, r.q.Query().Terminate, "the Terminate Message was the last session's")
	r.postRecv(wr.Recv{ID: 91, SGL: r.full.sgl(3000, 16)})
	r.postSend(wr.Request{ID: 92, SGL: r.full.sgl(3100, 4)})
	r.send(rawpeer.Send(1, []byte("again")).Octets())
	r.full.expect(3000, []byte("again"))
	require.Equal(r.t, rawpeer.Send(1, r.full.mem()[3100:3104]).Octets(), r.next())
	require.Equal(r.t, []comp{{91, wr.StatusSuccess, 5}}, r.wait(r.rcq, 1))
	require.Equal(r.t, []comp{{92, wr.StatusSuccess, 0}}, r.wait(r.scq, 1))
	if r.set.pipe {
		return // no half-close: which side sees the end first is open
	}
	require.NoError(r.t, r.peer.CloseWrite())
	r.over()
	require.Equal(r.t, wr.StateIdle, r.q.State())
	r.requireEvents(wr.EventLLPCloseComplete)
}
