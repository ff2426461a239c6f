package cases

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// What API cases play in: a host is an RNIC with one of everything, and a host pair two of them whose
// queue pairs are connected. All of it ends with the case.

// The rights of a Memory Region.
const (
	remoteRights = verbs.RemoteRead | verbs.RemoteWrite
	allRights    = verbs.LocalRead | verbs.LocalWrite | remoteRights
)

// hostMemory is the length of a host's region, in octets.
const hostMemory = 64 << 10

// hour is a time that no case waits for.
const hour = time.Hour

// hostConfig says what a host is made of. The zero value will do.
type hostConfig struct {
	RNIC verbs.Config
	// CQ is how many entries the completion queue has; 0 stands for 512.
	CQ int
	// QP is the queue pair; PD and CQs are the host's unless they are set.
	QP verbs.QPConfig
}

// host is an RNIC with one of everything, and the log of its events.
type host struct {
	t      *conformance.T
	nic    *verbs.RNIC
	events *eventLog
	pd     *verbs.PD
	cq     *verbs.CQ // of both queues of qp
	qp     *verbs.QP
	mr     *verbs.MR // hostMemory octets, VA-based, all rights and BindWindow
}

// openRNIC opens an RNIC and closes it at the end of the case.
func openRNIC(t *conformance.T, c verbs.Config) *verbs.RNIC {
	nic := must(verbs.Open(c))(t, "Open RNIC")
	t.Cleanup(func() { _ = nic.Close() })
	return nic
}

// newHost makes a host; its queue pair is Idle.
func newHost(t *conformance.T, c hostConfig) *host {
	n := &host{t: t, nic: openRNIC(t, c.RNIC)}
	n.events = logEvents(t, n.nic)
	n.pd = n.newPD()
	if c.CQ == 0 {
		c.CQ = 512
	}
	n.cq = n.newCQ(c.CQ)
	n.qp = n.newQP(c.QP)
	n.mr = n.register(hostMemory, allRights|verbs.BindWindow)
	return n
}

func (n *host) newPD() *verbs.PD { return must(n.nic.AllocatePD())(n.t, "Allocate PD") }

// deadPD is a PD that is gone.
func (n *host) deadPD() *verbs.PD {
	pd := n.newPD()
	require.NoError(n.t, pd.Deallocate())
	return pd
}

func (n *host) newCQ(entries int) *verbs.CQ {
	return must(n.nic.CreateCQ(verbs.CQConfig{Entries: entries}))(n.t, "Create CQ")
}

// newQP creates a queue pair, on the host's PD and CQ unless c has others.
func (n *host) newQP(c verbs.QPConfig) *verbs.QP {
	return must(n.nic.CreateQP(n.withDefaults(c)))(n.t, "Create QP")
}

// withDefaults fills in the host's PD and CQ where c has none. A zero CloseTimeout stands for
// an hour: Closing and Terminate last until the peer does something, however slow the
// machine is.
func (n *host) withDefaults(c verbs.QPConfig) verbs.QPConfig {
	if c.PD == nil {
		c.PD = n.pd
	}
	if c.SendCQ == nil {
		c.SendCQ = n.cq
	}
	if c.RecvCQ == nil {
		c.RecvCQ = n.cq
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = hour
	}
	return c
}

// newSRQ creates a shared receive queue, in the host's PD unless c has another.
func (n *host) newSRQ(c verbs.SRQConfig) *verbs.SRQ {
	if c.PD == nil {
		c.PD = n.pd
	}
	return must(n.nic.CreateSRQ(c))(n.t, "Create S-RQ")
}

// register registers new memory of that many octets in the host's PD.
func (n *host) register(octets int, access verbs.Access) *verbs.MR {
	return n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, octets), Access: access})
}

// region is Register, in a PD of the host. Peers may invalidate it, as the draft has it
// (7.8); what they may without that is for the cases of RFC 5040 8.1.1.
func (n *host) region(pd *verbs.PD, c verbs.RegionConfig) *verbs.MR {
	c.RemoteInvalidate = true
	return must(pd.RegisterRegion(c))(n.t, "Register")
}

// newMW allocates a Memory Window in the host's PD.
func (n *host) newMW() *verbs.MW { return must(n.pd.AllocateWindow())(n.t, "Allocate Memory Window") }

// pages gets physical buffers.
func (n *host) pages(count int, size uint64) *verbs.Pages {
	return must(n.nic.AllocatePages(count, size))(n.t, "AllocatePages")
}

// onHost is a case on one host. onQuietHost is one that leaves no event.
func onHost(run func(*conformance.T, *host)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newHost(t, hostConfig{})) }
}

// onHostPair is a case on two connected hosts, and onIdleHostPair on two that are not.
func onHostPair(run func(*conformance.T, *hostPair)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newHostPair(t, hostPairConfig{})) }
}

func onIdleHostPair(run func(*conformance.T, *hostPair)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newHostPair(t, hostPairConfig{Idle: true})) }
}

// hostPairConfig says what a host pair is made of. The zero value will do.
type hostPairConfig struct {
	A, B hostConfig
	// Idle leaves the queue pairs unconnected.
	Idle bool
}

// hostPair is two hosts whose queue pairs are connected and in RTS: a's is the
// Initiator, and both may send at once.
type hostPair struct {
	t    *conformance.T
	a, b *host
}

func newHostPair(t *conformance.T, c hostPairConfig) *hostPair {
	w := &hostPair{t: t, a: newHost(t, c.A), b: newHost(t, c.B)}
	if !c.Idle {
		connect(t, w.a.qp, w.b.qp)
	}
	return w
}

// connect brings two Idle queue pairs to RTS over a TCP connection of their own. a
// is the Initiator, and its ready-to-receive frame lets b send at once (RFC 6581
// 9.2). What a sends and receives is in the trace; so a's LLP is driven as any
// net.Conn is, and b's as a socket.
func connect(t *conformance.T, a, b *verbs.QP) {
	x, y := tcpPair(t)
	s := verbs.StreamConfig{CRC: true, P2P: true, RTR: rtrWrite}
	s.Conn, s.Role = y, asResponder
	begin(t, b, s)
	s.Conn, s.Role = t.Trace().Conn(x), asInitiator
	begin(t, a, s)
}

// begin brings an Idle queue pair to RTS. The connection is the queue pair's.
func begin(t *conformance.T, qp *verbs.QP, s verbs.StreamConfig) {
	err := qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &s})
	if err != nil {
		_ = s.Conn.Close()
	}
	require.NoError(t, err, "Modify QP to RTS")
}

// connectMore makes two more connected queue pairs, one in each host.
func (w *hostPair) connectMore(a, b verbs.QPConfig) (qa, qb *verbs.QP) {
	qa, qb = w.a.newQP(a), w.b.newQP(b)
	connect(w.t, qa, qb)
	return qa, qb
}

// small are limits that a case reaches soon.
var small = verbs.Limits{
	PDs: 3, QPs: 4, WR: 64, SGE: 8, WriteSGE: 6, CQs: 2, CQE: 512, EventHandlers: 2,
	SRQs: 2, SRQWR: 32, Regions: 3, Windows: 2, PBL: 16, Physical: 1 << 20, IRD: 8, ORD: 8,
}

// fullHost is a host with objects of the other kinds too.
type fullHost struct {
	*host
	srq     *verbs.SRQ
	mw      *verbs.MW
	pages   *verbs.Pages
	handler verbs.HandlerID
}

func newFullHost(t *conformance.T, c hostConfig) *fullHost {
	e := &fullHost{host: newHost(t, c)}
	e.srq = e.newSRQ(verbs.SRQConfig{})
	e.mw = e.newMW()
	e.pages = e.host.pages(2, 4096)
	e.handler = must(e.nic.AddCompletionHandler(func(*verbs.CQ) {}))(t)
	return e
}

// verb is a call that would be accepted.
type verb struct {
	name string
	call func() error
}

// verbs are the verbs of 9.2 to 9.4, each on an object of the host. Those that
// destroy come last.
func (e *fullHost) verbs() []verb {
	memory := verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead}
	return []verb{
		{"Query RNIC", func() error { return second(e.nic.Query()) }},
		{"Allocate PD", func() error { return second(e.nic.AllocatePD()) }},
		{"Create CQ", func() error { return second(e.nic.CreateCQ(verbs.CQConfig{})) }},
		{"Query CQ", func() error { return second(e.cq.Query()) }},
		{"Modify CQ", func() error { return e.cq.Resize(99) }},
		{"Create S-RQ", func() error { return second(e.nic.CreateSRQ(verbs.SRQConfig{PD: e.pd})) }},
		{"Query S-RQ", func() error { return second(e.srq.Query()) }},
		{"Modify S-RQ", func() error { return e.srq.Modify(verbs.ModifySRQ{Limit: ptr(1)}) }},
		{"Create QP", func() error { return second(e.nic.CreateQP(e.withDefaults(verbs.QPConfig{}))) }},
		{"Query QP", func() error { return second(e.qp.Query()) }},
		{"Modify QP", func() error { return e.qp.Modify(verbs.ModifyQP{ORD: ptr(1)}) }},
		{"Allocate STag", func() error { return second(e.pd.AllocateRegion(verbs.AllocateConfig{})) }},
		{"Register", func() error { return second(e.pd.RegisterRegion(memory)) }},
		{"Query Memory Region", func() error { return second(e.mr.Query()) }},
		{"Reregister", func() error { return e.mr.Reregister(nil, memory) }},
		{"Register Shared", func() error { return second(e.mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})) }},
		{"Allocate Memory Window", func() error { return second(e.pd.AllocateWindow()) }},
		{"Query Memory Window", func() error { return second(e.mw.Query()) }},
		{"PostSQ", func() error { return second(e.qp.PostSend(verbs.Request{})) }},
		{"PostRQ", func() error { return second(e.qp.PostRecv(verbs.Recv{})) }},
		{"PostRQ to an S-RQ", func() error { return second(e.srq.PostRecv(verbs.Recv{})) }},
		{"Request Completion Notification", func() error { return e.cq.Notify(verbs.NotifyNext) }},
		{"Set Completion Event Handler", func() error { return e.nic.ReplaceCompletionHandler(e.handler, func(*verbs.CQ) {}) }},
		{"Set Asynchronous Event Handler", func() error { return e.nic.SetEventHandler(nil) }},
		{"AllocatePages", func() error { return second(e.nic.AllocatePages(1, 4096)) }},
		{"Free pages", e.pages.Deallocate},
		{"Deallocate the window's STag", e.mw.Deallocate},
		{"Deallocate the region's STag", e.mr.Deregister},
		{"Destroy QP", e.qp.Destroy},
		{"Destroy S-RQ", e.srq.Destroy},
		{"Destroy CQ", e.cq.Destroy},
		{"Deallocate PD", e.pd.Deallocate},
	}
}

// closed says that every verb on something of a closed RNIC is refused, and that
// there are no completions any more.
func (e *fullHost) closed() {
	for _, v := range e.verbs() {
		assert.ErrorIs(e.t, v.call(), verbs.ErrInvalidRNIC, v.name)
	}
	assert.ErrorIs(e.t, second(e.cq.PollOne()), verbs.ErrInvalidRNIC, "Poll CQ")
	assert.Zero(e.t, e.cq.Poll(make([]verbs.Completion, 1)), "Poll CQ")
}

// resource is a kind of object of which an RNIC has so many, and how one is made and given back.
type resource struct {
	name  string
	limit int
	make  func() (free func() error, err error)
}

// resources are those of an RNIC that has one PD and one CQ already.
func resources(nic *verbs.RNIC, pd *verbs.PD, cq *verbs.CQ, l verbs.Limits) []resource {
	memory := make([]byte, 8)
	return []resource{
		{"PDs", l.PDs - 1, func() (func() error, error) { v, err := nic.AllocatePD(); return v.Deallocate, err }},
		{"CQs", l.CQs - 1, func() (func() error, error) { v, err := nic.CreateCQ(verbs.CQConfig{}); return v.Destroy, err }},
		{"event handlers", l.EventHandlers, func() (func() error, error) {
			id, err := nic.AddCompletionHandler(func(*verbs.CQ) {})
			return func() error { return nic.RemoveCompletionHandler(id) }, err
		}},
		{"S-RQs", l.SRQs, func() (func() error, error) {
			v, err := nic.CreateSRQ(verbs.SRQConfig{PD: pd})
			return v.Destroy, err
		}},
		{"QPs", l.QPs, func() (func() error, error) {
			v, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
			return v.Destroy, err
		}},
		{"regions", l.Regions, func() (func() error, error) {
			v, err := pd.Register(memory, verbs.LocalRead)
			return v.Deregister, err
		}},
		{"windows", l.Windows, func() (func() error, error) { v, err := pd.AllocateWindow(); return v.Deallocate, err }},
		{"pages", int(l.Physical / 4096), func() (func() error, error) { v, err := nic.AllocatePages(1, 4096); return v.Deallocate, err }},
	}
}

// exhaust makes as many objects of every kind as an empty RNIC has, and says that
// one more of each is refused.
func exhaust(t *conformance.T, nic *verbs.RNIC, l verbs.Limits) {
	pd, cq := must(nic.AllocatePD())(t), must(nic.CreateCQ(verbs.CQConfig{}))(t)
	for _, k := range resources(nic, pd, cq, l) {
		for i := range k.limit {
			require.NoError(t, second(k.make()), "%d of %d %s", i+1, k.limit, k.name)
		}
		require.ErrorIs(t, second(k.make()), verbs.ErrInsufficientResources, "more than %d %s", k.limit, k.name)
	}
}

// cqHandler is a completion event handler that a case listens to.
type cqHandler struct {
	n     *host
	id    verbs.HandlerID
	calls chan *verbs.CQ
	other *verbs.CQ // of the same handler, for silent
}

func (n *host) cqHandler() *cqHandler {
	b := &cqHandler{n: n, calls: make(chan *verbs.CQ, 1024)}
	b.id = must(n.nic.AddCompletionHandler(func(c *verbs.CQ) { b.calls <- c }))(n.t, "Set Completion Event Handler")
	b.other = b.cq(64)
	return b
}

// cq is a CQ of the handler.
func (b *cqHandler) cq(entries int) *verbs.CQ {
	return must(b.n.nic.CreateCQ(verbs.CQConfig{Entries: entries, Handler: b.id}))(b.n.t, "Create CQ")
}

// notCalled says that no call is on its way: the handler is called in order, and the next
// call is one that this makes happen.
func (b *cqHandler) notCalled() {
	notify(b.n.t, b.other, verbs.NotifyNext)
	require.NoError(b.n.t, b.n.flush(b.other, 1).Destroy())
	b.called(b.other)
	<-b.other.Events()
	b.other.Poll(make([]verbs.Completion, 64))
}

// calledOnce says that there is one call about that CQ and no other.
func (b *cqHandler) calledOnce(cq *verbs.CQ) {
	b.called(cq)
	b.notCalled()
}

// notify is Request Completion Notification.
func notify(t *conformance.T, cq *verbs.CQ, k verbs.NotifyType) {
	require.NoError(t, cq.Notify(k), "Request Completion Notification")
}

// The arguments of a verbs.StreamConfig: the queue pair's side of the MPA startup, and the
// ready-to-receive frame of the cases' Initiators.
const (
	asInitiator = mpa.Initiator
	asResponder = mpa.Responder
	rtrWrite    = mpa.RTRWrite
	rtrRead     = mpa.RTRRead
)

// side is one of asInitiator and asResponder.
type side = mpa.Role

// validRights are the combinations of rights that a region may have.
var validRights = []verbs.Access{
	verbs.LocalRead,
	verbs.LocalRead | verbs.RemoteRead,
	verbs.LocalWrite,
	verbs.LocalWrite | verbs.RemoteWrite,
	verbs.LocalRead | verbs.LocalWrite,
	verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead,
	verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite,
	allRights,
}

// allocated is an STag that may have remote rights, with room for eight pages.
func (n *host) allocated() *verbs.MR {
	return must(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 8, RemoteAccess: true, RemoteInvalidate: true}))(n.t)
}

// allocate is Allocate Non-Shared Memory Region STag, in the host's PD.
func (n *host) allocate(c verbs.AllocateConfig) *verbs.MR {
	return must(n.pd.AllocateRegion(c))(n.t, "Allocate STag")
}

// refusedRegion is a description that Register and Reregister refuse.
type refusedRegion struct {
	name   string
	want   error
	config verbs.RegionConfig
}

// refusedRegions are some of each kind over memory mem, and two pages of 4096 octets.
func refusedRegions(mem []byte, p *verbs.Pages) []refusedRegion {
	list := func(change func(*verbs.PhysicalBuffers)) verbs.RegionConfig {
		b := p.List(100, 5000)
		change(&b)
		return verbs.RegionConfig{Buffers: b, Access: allRights, VA: 0x7000 + 100}
	}
	at := func(va uint64) verbs.RegionConfig {
		return verbs.RegionConfig{Buffers: p.List(100, 5000), Access: allRights, VA: va}
	}
	of := func(a verbs.Access) verbs.RegionConfig { return verbs.RegionConfig{Memory: mem, Access: a} }
	return []refusedRegion{
		{"no right", verbs.ErrInvalidAccess, of(0)},
		{"remote read without local", verbs.ErrInvalidAccess, of(verbs.LocalWrite | verbs.RemoteRead)},
		{"remote write without local", verbs.ErrInvalidAccess, of(verbs.LocalRead | verbs.RemoteWrite)},
		{"no memory", verbs.ErrInvalidLength, verbs.RegionConfig{Access: allRights}},
		{"no octet", verbs.ErrInvalidLength, verbs.RegionConfig{Memory: mem[:0], Access: allRights}},
		{"VA beyond 64 bits", verbs.ErrInvalidVA, verbs.RegionConfig{Memory: mem, Access: allRights, VA: -uint64(len(mem)) + 1}},
		{"a VA of a zero-based region", verbs.ErrInvalidVA, verbs.RegionConfig{Memory: mem, Access: allRights, VA: 4096, ZeroBased: true}},
		{"VA without the FBO", verbs.ErrInvalidVA, at(0x7000)},
		{"VA that is not of this FBO", verbs.ErrInvalidVA, at(0x7000 + 108)},
		{"no VA", verbs.ErrInvalidVA, at(0)},
		{"FBO behind the first buffer", verbs.ErrInvalidFBO, list(func(b *verbs.PhysicalBuffers) { b.FBO = 4096 + 100 })},
		{"FBO at the second buffer", verbs.ErrInvalidFBO, list(func(b *verbs.PhysicalBuffers) { b.FBO = 4096 })},
		{"longer than the buffers", verbs.ErrInvalidLength, list(func(b *verbs.PhysicalBuffers) { b.Length = 2*4096 - 99 })},
		{"length zero", verbs.ErrInvalidLength, list(func(b *verbs.PhysicalBuffers) { b.Length = 0 })},
		{"page size", verbs.ErrInvalidPhysBufferSize, list(func(b *verbs.PhysicalBuffers) { b.Size = 4097 })},
		{"pages of 12288", verbs.ErrInvalidPhysBufferSize, list(func(b *verbs.PhysicalBuffers) { b.Size = 12288 })},
		{"page address", verbs.ErrInvalidPhysBufferEntry, list(func(b *verbs.PhysicalBuffers) { b.Addresses[0]++ })}, // all in the pages
		{"page address, beyond the pages", verbs.ErrInvalidPhysBufferEntry, list(func(b *verbs.PhysicalBuffers) { b.Addresses[1]++ })},
		{"no such page", verbs.ErrInvalidPhysBufferEntry, list(func(b *verbs.PhysicalBuffers) { b.Addresses[1] += 1 << 20 })},
		{"a page that is nobody's", verbs.ErrInvalidPhysBufferEntry, list(func(b *verbs.PhysicalBuffers) { b.Addresses[1] = 1 << 50 })},
	}
}
