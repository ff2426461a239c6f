package cases

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// What the fault matrix plays in: what a peer does that it may not, tried by each way
// that a segment can take to the check that has to find it.
//
//	rig_paths.go   the ways, and one trial
//	rig_ground.go  memory of which each octet is watched
//	paths_*.go     the faults

// route is how a trial's segment comes.
type route struct {
	crc, markers bool
	n            int // octets of payload
	cutting      cut
	server       server
}

func (w route) String() string {
	return fmt.Sprintf("CRC %v, markers %v, %d octets, %v, %v", w.crc, w.markers, w.n, w.cutting, w.server)
}

// cut is in what pieces the FPDU at fault comes through the socket. The first is known to
// have been looked at when the next is sent.
type cut string

const (
	uncut    cut = "whole"
	header   cut = "headers first"
	shreds   cut = "in shreds"
	lastLate cut = "all but the last octet first"
)

var cuts = []cut{uncut, header, shreds, lastLate}

// server is who drives the queue pair, and through what.
type server string

const (
	polled   server = "polled"
	waiting  server = "waiting"
	kept     server = "left to itself"
	blocking server = "through reads that block"
)

var servers = []server{polled, waiting, kept, blocking}

// The payloads of the ways: on both sides of what is received where it belongs (8 KiB on
// its way still), of what is sent from where it is (2 KiB), of a segment (32 KiB) and of
// what a ULPDU may have; each with a pad of 1, 2 or 3 octets, or none.
var payloads = []int{5, 2047, 8190, 8192, 8193, 8227, 32790, 64731}

// routes are all payloads and cuts without CRC and markers, where segments are received
// where they belong, and those of a few payloads with them. Each has a server in its turn,
// which is another one for the next trespass.
func routes(turn int) (list []route) {
	add := func(r route) {
		r.server = servers[(turn+len(list))%len(servers)]
		list = append(list, r)
	}
	for _, n := range payloads {
		for _, c := range cuts {
			add(route{n: n, cutting: c})
		}
		turn++ // there are as many cuts as servers
	}
	for _, n := range []int{5, 8193, 32790} {
		for _, r := range []route{{crc: true}, {markers: true}, {crc: true, markers: true}} {
			for _, c := range cuts {
				r.n, r.cutting = n, c
				add(r)
			}
			turn++
		}
	}
	return list
}

// trespass is what a peer may not do, and all that has to follow.
type trespass struct {
	what string
	qp   verbs.QPConfig
	// plot arranges things and makes the ULPDU at fault.
	plot func(*prey) []byte
	// only says which ways there are for it; nil for all.
	only func(route) bool
	// code is the Terminate Message's layer<<12|type<<8|code; it echoes the DDP header,
	// unless bare, and with readToo the RDMA Read Request header.
	code          uint16
	bare, readToo bool
	// event is raised, unless it is 0: a completion tells then. EventLLPCloseComplete
	// says that nothing is wrong at all.
	event verbs.EventID
	// recv and read are how the first receive, and the RDMA Read, complete; zero stands
	// for Flushed.
	recv, read verbs.Status
	// spoil makes the FPDU at fault; nil for a good one.
	spoil func(*prey, []byte) []byte
}

// paths is what the trials of a case share.
type paths struct {
	*node
	*ground
	listener net.Listener
	foreign  *verbs.PD
	other    *verbs.QP // of the PD, in RTS
	raised   []raising
}

func newPaths(t *conformance.T) *paths {
	p := &paths{node: newNode(t, nodeConfig{CQ: 4096}), ground: newGround(t)}
	p.listener = must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = p.listener.Close() })
	p.foreign = p.newPD()
	p.other = p.newQP(verbs.QPConfig{})
	far, near := p.pair()
	t.Cleanup(func() { _ = far.Close() })
	begin(t, p.other, verbs.Stream{Conn: near, Role: asInitiator})
	return p
}

// pair makes two ends of a TCP connection.
func (p *paths) pair() (far, near net.Conn) {
	far = must(net.Dial("tcp", p.listener.Addr().String()))(p.t)
	near = must(p.listener.Accept())(p.t)
	return far, near
}

// byEachWay tries each trespass by each way.
func byEachWay(t *conformance.T, list []trespass) {
	p := newPaths(t)
	for i := range list {
		x := &list[i]
		for _, w := range routes(i) {
			if x.only == nil || x.only(w) {
				p.try(x, w)
			}
		}
	}
	for _, e := range p.raised {
		t.Part("%s: the event", e.of)
		p.events.are(e.Event)
	}
	t.Part("no other event")
	p.quiet()
}

// raising is an event that a trial expects.
type raising struct {
	verbs.Event
	of string
}

// prey is a queue pair that a trespass is tried on. It has two receives, one of as many
// octets as the way's payload and one of 8, and an RDMA Read into a sink of as many as the
// payload.
type prey struct {
	*paths
	mpaWire
	route
	x    *trespass
	qp   *verbs.QP
	recv []verbs.SGE // of the first receive
	sink verbs.SGE
	idle bool // no RDMA Read is posted
	// lead comes before the ULPDU at fault, all of it good; meanwhile is done when the
	// RDMA Read has been seen, and between when the first piece has been looked at.
	lead               [][]byte
	meanwhile, between func()
	synced             bool // an RDMA Read of nothing comes before the ULPDU at fault
	want               []verbs.Completion
}

// The work of a prey.
const (
	firstRecv, secondRecv, itsRead = 0, 1, 2 // in prey.want
	sourceSTag, sourceTO           = 0x55, 0x66
)

// try tries a trespass by a way.
func (p *paths) try(x *trespass, w route) {
	p.t.Part("%s; %v", x.what, w)
	far, near := p.pair()
	defer func() { _ = far.Close() }()
	record := &tape{Conn: far}
	defer record.play(p.t)
	v := &prey{
		paths: p, route: w, x: x, qp: p.newQP(x.qp), synced: w.cutting != uncut && !x.qp.NoInboundRead,
		mpaWire: mpaWire{test: p.t, in: mpaLane{markers: w.markers, crc: w.crc}, out: mpaLane{markers: w.markers, crc: w.crc}},
	}
	v.wire = record
	if w.server == blocking {
		near = &tape{Conn: near}
	}
	begin(p.t, v.qp, verbs.Stream{Conn: near, Role: asInitiator, CRC: w.crc, MarkersIn: w.markers, MarkersOut: w.markers})
	v.recv = []verbs.SGE{v.lay(w.n, verbs.LocalWrite).sge(0, w.n)}
	v.sink = v.lay(w.n, verbs.LocalWrite|verbs.RemoteWrite).sge(0, w.n)
	v.want = []verbs.Completion{
		{ID: 1, QP: v.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed},
		{ID: 2, QP: v.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed},
		{ID: 3, QP: v.qp.ID(), Op: verbs.OpRead, Status: verbs.StatusFlushed},
	}
	bad := x.plot(v)
	if x.recv != 0 {
		v.want[firstRecv].Status = x.recv
	}
	if x.read != 0 {
		v.want[itsRead].Status = x.read
	}
	v.posts()
	served := v.serve()
	v.attack(bad)
	v.ends(bad)
	require.Equal(p.t, v.want, served(), "the completions")
	p.unchanged()
	p.clear()
	require.NoError(p.t, v.qp.Destroy())
	record.quiet = true
}

// lay registers n octets of the ground, for the queue pair.
func (v *prey) lay(n int, access verbs.Access) *plot {
	return v.layIn(v.pd, n, verbs.RegionConfig{Access: access})
}

// layIn is lay in any PD.
func (v *prey) layIn(pd *verbs.PD, n int, c verbs.RegionConfig) *plot {
	off, memory := v.piece(n)
	c.Memory = memory
	p := &plot{MR: v.region(pd, c), g: v.ground, off: off}
	v.plots = append(v.plots, p)
	v.forget = append(v.forget, p.give)
	return p
}

// window binds a window to n octets of a region, for the peer of qp.
func (v *prey) window(qp *verbs.QP, p *plot, off, n int, access verbs.Access) uint32 {
	mw := v.newMW()
	v.forget = append(v.forget, mw.Deallocate)
	run(v.paths.t, qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(p.MR, off, n, access, 1)}, verbs.StatusSuccess)
	return uint32(mw.STag(1))
}

// posts posts the work, and sees the RDMA Read Request.
func (v *prey) posts() {
	t := v.paths.t
	postRecv(t, v.qp, verbs.Recv{ID: 1, SGL: v.recv}, verbs.Recv{ID: 2, SGL: v.lay(8, verbs.LocalWrite).sgl(0, 8)})
	if v.idle {
		v.want = v.want[:itsRead]
	} else {
		post(t, v.qp, verbs.Request{ID: 3, Op: verbs.OpRead, Local: v.sink, Remote: verbs.Remote{STag: sourceSTag, TO: sourceTO}})
		v.expect(aReadRequest(1, read{uint32(v.sink.STag), v.sink.TO, v.sink.Length, sourceSTag, sourceTO}))
	}
	if v.meanwhile != nil {
		v.meanwhile()
	}
}

// serve has the queue pair driven, until it is over. The result says what completed, by
// ID.
func (v *prey) serve() func() []verbs.Completion {
	ctx, cancel := context.WithCancel(v.paths.t.Context())
	got := make([]verbs.Completion, 0, 64)
	poll := func() bool {
		n := v.cq.Poll(got[len(got):cap(got)])
		got = got[:len(got)+n]
		return n > 0
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for v.server != kept && ctx.Err() == nil && len(got) < cap(got) {
			if v.server == polled {
				if !poll() {
					runtime.Gosched()
				}
				continue
			}
			n, _ := v.cq.Wait(ctx, got[len(got):cap(got)])
			got = got[:len(got)+n]
		}
	}()
	return func() []verbs.Completion {
		<-v.qp.Done()
		cancel()
		<-over
		poll()
		defined(got)
		slices.SortFunc(got, func(a, b verbs.Completion) int { return int(a.ID) - int(b.ID) })
		return got
	}
}

// attack sends what there is to send, in pieces, and closes the peer's half of the stream
// behind it: should nothing be found, the trial does not wait for it. What is wrong with an
// RDMA Read Request is found when it is answered, and a close must not come before that.
func (v *prey) attack(bad []byte) {
	var first []byte
	for _, u := range v.lead {
		first = append(first, v.out.fpdu(u)...)
	}
	if v.synced {
		first = append(first, v.out.fpdu(aReadRequest(1, read{sinkSTag: nowhere, sinkTO: nowhereTO}))...)
	}
	var fpdu []byte
	if v.x.spoil != nil {
		fpdu = v.x.spoil(v, bad)
	} else {
		fpdu = v.out.fpdu(bad)
	}
	from := 0
	for _, end := range v.cutting.ends(len(fpdu)) {
		v.raw(append(first, fpdu[from:end]...))
		if first != nil && v.synced {
			v.expect(aReadResponse(nowhere, nowhereTO, nil))
			if v.between != nil {
				v.between()
			}
		}
		first, from = nil, end
	}
	if !v.x.sound() && bad[1]&0x0F != opReadRequest&0x0F {
		v.shut()
	}
}

// ends says what follows: the Terminate Message and the end of the stream, or that all is
// well.
func (v *prey) ends(bad []byte) {
	t := v.paths.t
	state := verbs.StateError
	if v.x.sound() {
		state = verbs.StateIdle
		v.send(aReadRequest(v.due(), read{sinkSTag: nowhere, sinkTO: nowhereTO}))
		v.expect(aReadResponse(nowhere, nowhereTO, nil))
		v.shut()
	} else {
		if v.x.bare {
			bad = nil
		}
		v.expect(aTerminate(v.x.code, bad, v.x.readToo))
	}
	v.silent()
	_ = v.wire.Close()
	ends(t, v.qp, state)
	a := attributes(t, v.qp)
	if v.x.sound() {
		require.Nil(t, a.Terminate)
	} else {
		require.NotNil(t, a.Terminate)
		require.True(t, a.Terminate.Sent)
		require.Equal(t, aTerminate(v.x.code, bad, v.x.readToo)[18:], a.Terminate.Raw, "what the program can query")
	}
	if v.x.event != 0 {
		v.raised = append(v.raised, raising{verbs.Event{ID: v.x.event, QP: v.qp.ID()}, v.x.what})
	}
}

// sound reports whether nothing is wrong with it.
func (x *trespass) sound() bool { return x.event == verbs.EventLLPCloseComplete }

// due is the MSN of the peer's next RDMA Read Request.
func (v *prey) due() uint32 {
	if v.synced {
		return 2
	}
	return 1
}

// ends are where the pieces of an FPDU of n octets end.
func (c cut) ends(n int) []int {
	head := min(2+18+4, n-12) // the headers, and perhaps a marker
	switch c {
	case header:
		return []int{head, n}
	case shreds:
		return []int{head, head + (n-head)/2, n - 5, n}
	case lastLate:
		return []int{n - 1, n}
	default:
		return []int{n}
	}
}

// tape is a connection that remembers what went over it, and is no socket to who looks
// for one.
type tape struct {
	net.Conn
	sent, received []byte
	quiet          bool
}

func (c *tape) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received = append(c.received, b[:n]...)
	return n, err
}

func (c *tape) Write(b []byte) (int, error) {
	c.sent = append(c.sent, b...)
	return c.Conn.Write(b)
}

func (c *tape) CloseWrite() error     { return c.Conn.(*net.TCPConn).CloseWrite() }
func (c *tape) SetLinger(s int) error { return c.Conn.(*net.TCPConn).SetLinger(s) }

// play puts it all into the case's trace, unless it is to be quiet.
func (c *tape) play(t *conformance.T) {
	if c.quiet {
		return
	}
	r := t.Trace().Conn(taped{from: bytes.NewReader(c.received)})
	_, _ = r.Write(c.sent)
	_, _ = io.Copy(io.Discard, r)
}

// taped is a connection that has happened.
type taped struct {
	net.Conn
	from io.Reader
}

func (c taped) Read(b []byte) (int, error) { return c.from.Read(b) }
func (taped) Write(b []byte) (int, error)  { return len(b), nil }
