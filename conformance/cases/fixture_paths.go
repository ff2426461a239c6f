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

// The fault matrix: what a peer does that it may not, tried by each way that a segment can take to
// the check that has to find it, with guarded memory. The faults are in paths_*.go.

// delivery is how a trial's segment comes.
type delivery struct {
	crc, markers bool
	n            int // octets of payload
	cutting      cut
	server       server
}

func (w delivery) String() string {
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

// server is the poller of the queue pair, and what it polls through.
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

// deliveries are all payloads and cuts without CRC and markers, where segments are received
// where they belong, and those of a few payloads with them. Each has a server in its turn,
// which is another one for the next fault.
func deliveries(turn int) (list []delivery) {
	add := func(r delivery) {
		r.server = servers[(turn+len(list))%len(servers)]
		list = append(list, r)
	}
	for _, n := range payloads {
		for _, c := range cuts {
			add(delivery{n: n, cutting: c})
		}
		turn++ // there are as many cuts as servers
	}
	for _, n := range []int{5, 8193, 32790} {
		for _, r := range []delivery{{crc: true}, {markers: true}, {crc: true, markers: true}} {
			for _, c := range cuts {
				r.n, r.cutting = n, c
				add(r)
			}
			turn++
		}
	}
	return list
}

// fault is what a peer may not do, and all that has to follow.
type pathFault struct {
	what string
	qp   verbs.QPConfig
	// plot arranges things and makes the ULPDU at fault.
	arrange func(*trial) []byte
	// only says which ways there are for it; nil for all.
	only func(delivery) bool
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
	spoil func(*trial, []byte) []byte
}

// faultMatrix is what the trials of a case share.
type faultMatrix struct {
	*host
	*guardedMemory
	foreign *verbs.PD
	other   *verbs.QP // of the PD, in RTS
	raised  []raising
}

func newFaultMatrix(t *conformance.T) *faultMatrix {
	p := &faultMatrix{host: newHost(t, hostConfig{CQ: 4096}), guardedMemory: newGuardedMemory(t)}
	p.foreign = p.newPD()
	p.other = p.newQP(verbs.QPConfig{})
	_, near := tcpPair(t)
	begin(t, p.other, verbs.StreamConfig{Conn: near, Role: asInitiator})
	return p
}

// byEachWay tries each fault by each way.
func byEachWay(t *conformance.T, list []pathFault) {
	p := newFaultMatrix(t)
	for i := range list {
		x := &list[i]
		for _, w := range deliveries(i) {
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

// trial is a queue pair that a fault is tried on. It has two receives, one of as many
// octets as the way's payload and one of 8, and an RDMA Read into a sink of as many as the
// payload.
type trial struct {
	*faultMatrix
	*peer
	delivery
	x      *pathFault
	qp     *verbs.QP
	record *recorder   // of the peer's end
	recv   []verbs.SGE // of the first receive
	sink   verbs.SGE
	idle   bool // no RDMA Read is posted
	// lead comes before the ULPDU at fault, all of it good; meanwhile is done when the
	// RDMA Read has been seen, and between when the first piece has been looked at.
	lead               [][]byte
	meanwhile, between func()
	synced             bool // an RDMA Read of nothing comes before the ULPDU at fault
	want               []verbs.Completion
}

// The work of a trial.
const (
	firstRecv, secondRecv, itsRead = 0, 1, 2 // in trial.want
	sourceSTag, sourceTO           = 0x55, 0x66
)

// try tries a fault by a way.
func (p *faultMatrix) try(x *pathFault, w delivery) {
	p.t.Part("%s; %v", x.what, w)
	v := p.newTrial(x, w, x.qp, true, nil)
	defer v.drop()
	defer v.record.intoTrace(p.t)
	v.synced = w.cutting != uncut && !x.qp.NoInboundRead
	v.recv = []verbs.SGE{v.guarded(w.n, verbs.LocalWrite).sge(0, w.n)}
	v.sink = v.guarded(w.n, verbs.LocalWrite|verbs.RemoteWrite).sge(0, w.n)
	v.want = []verbs.Completion{
		{ID: 1, QP: v.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed},
		{ID: 2, QP: v.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed},
		{ID: 3, QP: v.qp.ID(), Op: verbs.OpRead, Status: verbs.StatusFlushed},
	}
	bad := x.arrange(v)
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
	v.record.quiet = true
}

// newTrial brings a queue pair to RTS, with a peer; narrow is done to its end of the stream before.
func (p *faultMatrix) newTrial(x *pathFault, w delivery, c verbs.QPConfig, recorded bool, narrow func(net.Conn)) *trial {
	far, near, err := dialedPair()
	require.NoError(p.t, err, "a TCP connection")
	v := &trial{faultMatrix: p, delivery: w, x: x, qp: p.newQP(c), record: &recorder{Conn: far}}
	if recorded {
		far = v.record
	}
	if narrow != nil {
		narrow(near)
	}
	if w.server == blocking {
		near = &recorder{Conn: near}
	}
	v.peer = newPeer(p.t, far, framing{crc: w.crc, markersIn: w.markers, markersOut: w.markers})
	begin(p.t, v.qp, verbs.StreamConfig{Conn: near, Role: asInitiator, CRC: w.crc, MarkersIn: w.markers, MarkersOut: w.markers})
	return v
}

// guarded registers n octets of the guarded memory, for the queue pair.
func (v *trial) guarded(n int, access verbs.Access) *guardedRegion {
	return v.guardedIn(v.pd, n, verbs.RegionConfig{Access: access})
}

// guardedIn is guarded in any PD.
func (v *trial) guardedIn(pd *verbs.PD, n int, c verbs.RegionConfig) *guardedRegion {
	off, memory := v.piece(n)
	c.Memory = memory
	p := &guardedRegion{MR: v.region(pd, c), g: v.guardedMemory, off: off}
	v.regions = append(v.regions, p)
	v.undo = append(v.undo, p.give)
	return p
}

// window binds a window to n octets of a region, for the peer of qp.
func (v *trial) window(qp *verbs.QP, p *guardedRegion, off, n int, access verbs.Access) uint32 {
	mw := v.newMW()
	v.undo = append(v.undo, mw.Deallocate)
	run(v.faultMatrix.t, qp, verbs.Request{Op: verbs.OpBind, Bind: mw.BindRequest(p.MR, off, n, access, 1)}, verbs.StatusSuccess)
	return uint32(mw.STag(1))
}

// posts posts the work, and sees the RDMA Read Request.
func (v *trial) posts() {
	t := v.faultMatrix.t
	postRecv(t, v.qp, verbs.Recv{ID: 1, SGL: v.recv}, verbs.Recv{ID: 2, SGL: v.guarded(8, verbs.LocalWrite).sgl(0, 8)})
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
func (v *trial) serve() func() []verbs.Completion {
	ctx, cancel := context.WithCancel(v.faultMatrix.t.Context())
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
func (v *trial) attack(bad []byte) {
	first := v.fpdus(v.lead...)
	if v.synced {
		first = append(first, v.Frame(v.readOf(0, 0, 0))...)
	}
	var fpdu []byte
	if v.x.spoil != nil {
		fpdu = v.x.spoil(v, bad)
	} else {
		fpdu = v.Frame(bad)
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
		_ = v.CloseWrite()
	}
}

// ends says what follows: the Terminate Message and the end of the stream, or that all is
// well.
func (v *trial) ends(bad []byte) {
	t := v.faultMatrix.t
	state := verbs.StateError
	if v.x.sound() {
		state = verbs.StateIdle
		v.settled()
		v.shut()
	} else {
		if v.x.bare {
			bad = nil
		}
		v.expect(aTerminate(v.x.code, bad, v.x.readToo))
	}
	v.silent("the end of the stream")
	v.drop()
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
func (x *pathFault) sound() bool { return x.event == verbs.EventLLPCloseComplete }

// due is the MSN of the peer's next RDMA Read Request.
func (v *trial) due() uint32 { return either(v.synced, uint32(2), 1) }

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

// recorder is a connection that remembers what went over it, and is no socket to code that looks
// for one.
type recorder struct {
	net.Conn
	sent, received []byte
	quiet          bool
}

func (c *recorder) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received = append(c.received, b[:n]...)
	return n, err
}

func (c *recorder) Write(b []byte) (int, error) {
	c.sent = append(c.sent, b...)
	return c.Conn.Write(b)
}

func (c *recorder) CloseWrite() error     { return c.Conn.(*net.TCPConn).CloseWrite() }
func (c *recorder) SetLinger(s int) error { return c.Conn.(*net.TCPConn).SetLinger(s) }

// intoTrace puts it all into the case's trace, unless it is to be quiet.
func (c *recorder) intoTrace(t *conformance.T) {
	if c.quiet {
		return
	}
	r := t.Trace().Conn(recorded{from: bytes.NewReader(c.received)})
	_, _ = r.Write(c.sent)
	_, _ = io.Copy(io.Discard, r)
}

// recorded is a connection that has happened.
type recorded struct {
	net.Conn
	from io.Reader
}

func (c recorded) Read(b []byte) (int, error) { return c.from.Read(b) }
func (recorded) Write(b []byte) (int, error)  { return len(b), nil }
