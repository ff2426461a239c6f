package cases

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// NetworkDirect adapters: one, two that are connected, and one with a raw peer; the methods of
// IND2QueuePair in one form.

// ndHost is an adapter under test with one of everything. All of it ends with the case.
//
//	rig_nd_host.go     making it, and two that are connected
//	rig_nd_methods.go  its requests, in one form
//	rig_nd.go          one that is connected with a raw peer
type ndHost struct {
	t       *conformance.T
	adapter *nd2.Adapter
	in      *nd2.CompletionQueue // of Receives
	out     *nd2.CompletionQueue // of all other requests
	qp      *nd2.QueuePair       // its context is the ndHost
	conn    *nd2.Connector
	region  *nd2.MemoryRegion // of mem, with all rights
	mem     []byte
	window  *nd2.MemoryWindow // of what the Bind of ndMethods opens
}

// ndShape is how a queue pair is made. A zero stands for what is said here.
type ndShape struct {
	depth  int // of both queues: 8
	sge    int // entries of a list: 4
	inline int // octets: 128
}

const ndMemory = 1 << 14

var ndLoopback = netip.MustParseAddrPort("127.0.0.1:0")

// newNDHost makes a host; its queue pair is not connected. The memory is filled with
// octets that tell places apart.
func newNDHost(t *conformance.T, s ndShape) *ndHost {
	for p, v := range map[*int]int{&s.depth: 8, &s.sge: 4, &s.inline: 128} {
		if *p == 0 {
			*p = v
		}
	}
	h := &ndHost{t: t, mem: fill(make([]byte, ndMemory), int(t.Rand().UintN(8)))}
	p := nd2.Provider{CM: cm.Config{CloseTimeout: hour, NoNudge: true}} // the raw peer may be held up
	id := must(p.ResolveAddress(ndLoopback.Addr()))(t, "ResolveAddress")
	h.adapter = must(p.OpenAdapter(id))(t, "OpenAdapter")
	t.Cleanup(func() { _ = h.adapter.Close() })
	h.in, h.out = h.queue(64), h.queue(64)
	h.qp = h.pair(h, s)
	h.conn = h.connector()
	h.region = h.register(h.mem, nd2.MRFlagAllowRemoteRead|nd2.MRFlagAllowRemoteWrite|nd2.MRFlagRDMAReadSink)
	h.window = h.newWindow()
	return h
}

func (h *ndHost) queue(depth int) *nd2.CompletionQueue {
	return must(h.adapter.CreateCompletionQueue(depth))(h.t, "CreateCompletionQueue")
}

// pair makes a queue pair on the host's completion queues.
func (h *ndHost) pair(context any, s ndShape) *nd2.QueuePair {
	return must(h.adapter.CreateQueuePair(h.in, h.out, context, s.depth, s.depth, s.sge, s.sge, s.inline))(h.t, "CreateQueuePair")
}

func (h *ndHost) connector() *nd2.Connector {
	return must(h.adapter.CreateConnector())(h.t, "CreateConnector")
}

func (h *ndHost) register(mem []byte, flags nd2.MRFlags) *nd2.MemoryRegion {
	r := must(h.adapter.CreateMemoryRegion())(h.t, "CreateMemoryRegion")
	require.NoError(h.t, r.Register(mem, flags), "Register")
	return r
}

func (h *ndHost) newWindow() *nd2.MemoryWindow {
	return must(h.adapter.CreateMemoryWindow())(h.t, "CreateMemoryWindow")
}

// list is n octets of mem from off on.
func (h *ndHost) list(off, n int) []nd2.SGE {
	return []nd2.SGE{{Buffer: h.mem[off : off+n], MemoryRegionToken: h.region.GetLocalToken()}}
}

// at is the remote address of an octet of mem.
func (h *ndHost) at(off int) uint64 { return nd2.Address(h.mem[off:]) }

// receive posts a Receive of n octets of mem from off on, with its number as its
// context.
func (h *ndHost) receive(number, off, n int) {
	require.NoError(h.t, h.qp.Receive(number, h.list(off, n)), "Receive")
}

// next is the next result of a completion queue.
func (h *ndHost) next(q *nd2.CompletionQueue) nd2.Result {
	var r [1]nd2.Result
	require.NoError(h.t, second(q.Wait(h.t.Context(), r[:])), "waiting for a result")
	return r[0]
}

// done waits for a result that has to be of this request, with this status.
func (h *ndHost) done(context any, typ nd2.RequestType, status nd2.Status) {
	q := either(typ == nd2.RequestTypeReceive, h.in, h.out)
	ndIs(h.t, h.next(q), nd2.Result{Status: status, QueuePairContext: h, RequestContext: context, RequestType: typ})
}

// received waits for the result of a Receive of n octets.
func (h *ndHost) received(context any, n int) {
	ndIs(h.t, h.next(h.in), nd2.Result{BytesTransferred: uint32(n), QueuePairContext: h, RequestContext: context})
}

// ndIs compares results. A context may be large: what of it is wrong is not shown.
func ndIs(t *conformance.T, got, want nd2.Result) {
	require.Equal(t, want.RequestType, got.RequestType, "the request's type")
	require.Equal(t, want.Status, got.Status, "the status of a %v", got.RequestType)
	require.Equal(t, want.BytesTransferred, got.BytesTransferred, "the octets of a %v", got.RequestType)
	require.True(t, want.RequestContext == got.RequestContext, "the request's context: %T", got.RequestContext)
	require.True(t, want.QueuePairContext == got.QueuePairContext, "the queue pair's context: %T", got.QueuePairContext)
}

// none says that there is no result at this moment.
func (h *ndHost) none() {
	var r [1]nd2.Result
	require.Zero(h.t, h.out.GetResults(r[:]), "a result too many, of a %v", r[0].RequestType)
	require.Zero(h.t, h.in.GetResults(r[:]), "a result too many, of a Receive")
}

// over waits until the connection has ended, and says that it has for the methods.
func (h *ndHost) over() {
	require.NoError(h.t, h.conn.NotifyDisconnect(h.t.Context()), "the end of the connection")
	require.ErrorIs(h.t, h.qp.Send(0, nil, 0), nd2.ErrConnectionInvalid)
}

// listen makes a listener, and accepts the first that asks, with qp.
func (h *ndHost) listen(qp *nd2.QueuePair, c *nd2.Connector) (netip.AddrPort, *nd2.Overlapped) {
	l := must(h.adapter.CreateListener())(h.t, "CreateListener")
	h.t.Cleanup(func() { _ = l.Close() })
	require.NoError(h.t, l.Bind(ndLoopback), "Bind")
	require.NoError(h.t, l.Listen(0), "Listen")
	addr := must(l.GetLocalAddress())(h.t, "GetLocalAddress")
	return addr, nd2.Overlap(h.t.Context(), func(ctx context.Context) error {
		if err := l.GetConnectionRequest(ctx, c); err != nil {
			return err
		}
		return c.Accept(ctx, qp, 16, 16, nil)
	})
}

// connectND connects a's queue pair, as the active side, with one of b.
func connectND(a, b *ndHost, qp *nd2.QueuePair, c *nd2.Connector) {
	addr, accepted := b.listen(qp, c)
	require.NoError(a.t, a.conn.Connect(a.t.Context(), a.qp, addr, 16, 16, nil), "Connect")
	require.NoError(a.t, a.conn.CompleteConnect(a.t.Context()), "CompleteConnect")
	require.NoError(a.t, accepted.GetOverlappedResult(true), "Accept")
}

// newNDPair makes two connected hosts.
func newNDPair(t *conformance.T, s ndShape) (a, b *ndHost) {
	a, b = newNDHost(t, s), newNDHost(t, s)
	connectND(a, b, b.qp, b.conn)
	return a, b
}

// ndSync has all that a has posted arrive at b.
func ndSync(a, b *ndHost) {
	require.NoError(a.t, b.qp.Receive("sync", nil))
	require.NoError(a.t, a.qp.Send("sync", nil, 0))
	a.done("sync", nd2.RequestTypeSend, nd2.Success)
	b.received("sync", 0)
}

// slicesOf joins octets.
func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// ndRemote is memory of a peer.
type ndRemote struct {
	at    uint64
	token uint32
}

// remote is the memory of a host, from off on, to its peer.
func (h *ndHost) remote(off int) ndRemote { return ndRemote{h.at(off), h.region.GetRemoteToken()} }

// ndMethod is a method of the Initiator queue.
type ndMethod struct {
	name string
	typ  nd2.RequestType
	// post calls it, as far as it has what is given.
	post func(h *ndHost, context any, list []nd2.SGE, to ndRemote, flags nd2.OpFlags) error
	// undo lets a Bind or an Invalidate be posted again.
	undo func(h *ndHost, context any, flags nd2.OpFlags) error
}

// What ndBind opens, for reading.
const ndOpen, ndOpenLen = 4096, 64

func bindND(h *ndHost, context any, flags nd2.OpFlags) error {
	return h.qp.Bind(context, h.region, h.window, h.mem[ndOpen:][:ndOpenLen], flags|nd2.OpFlagAllowRead)
}

func invalidateND(h *ndHost, context any, flags nd2.OpFlags) error {
	return h.qp.Invalidate(context, h.window, flags)
}

var (
	ndSend = ndMethod{"Send", nd2.RequestTypeSend, func(h *ndHost, c any, l []nd2.SGE, _ ndRemote, f nd2.OpFlags) error {
		return h.qp.Send(c, l, f)
	}, nil}
	ndWrite = ndMethod{"Write", nd2.RequestTypeWrite, func(h *ndHost, c any, l []nd2.SGE, to ndRemote, f nd2.OpFlags) error {
		return h.qp.Write(c, l, to.at, to.token, f)
	}, nil}
	ndRead = ndMethod{"Read", nd2.RequestTypeRead, func(h *ndHost, c any, l []nd2.SGE, to ndRemote, f nd2.OpFlags) error {
		return h.qp.Read(c, l, to.at, to.token, f)
	}, nil}
	ndBind = ndMethod{"Bind", nd2.RequestTypeBind, func(h *ndHost, c any, _ []nd2.SGE, _ ndRemote, f nd2.OpFlags) error {
		return bindND(h, c, f)
	}, invalidateND}
	ndInvalidate = ndMethod{"Invalidate", nd2.RequestTypeInvalidate, func(h *ndHost, c any, _ []nd2.SGE, _ ndRemote, f nd2.OpFlags) error {
		return invalidateND(h, c, f)
	}, bindND}

	ndTransfers = []ndMethod{ndSend, ndWrite, ndRead}
	ndMethods   = []ndMethod{ndSend, ndWrite, ndRead, ndBind, ndInvalidate}
)

// ndWith makes a case's function of one that is for every method.
func ndWith(m ndMethod, run func(*conformance.T, ndMethod)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, m) }
}

// prepare lets the method be posted: the window is bound for an Invalidate, and is not
// for a Bind.
func (m ndMethod) prepare(h *ndHost) {
	if m.typ != nd2.RequestTypeInvalidate {
		return
	}
	require.NoError(h.t, bindND(h, "prepare", 0), "Bind")
	h.done("prepare", nd2.RequestTypeBind, nd2.Success)
}

// ndWorks has every kind of request of two connected hosts, with nothing else under way,
// do what it is for.
func ndWorks(a, b *ndHost) {
	t := a.t
	fill(a.mem[:64], 1)
	fill(b.mem[ndOpen:][:ndOpenLen], 2)
	require.NoError(t, bindND(b, 1, 0), "Bind")
	b.done(1, nd2.RequestTypeBind, nd2.Success)
	b.receive(2, 1000, 64)
	require.NoError(t, a.qp.Read(3, a.list(100, ndOpenLen), b.at(ndOpen), b.window.GetRemoteToken(), 0), "Read")
	a.done(3, nd2.RequestTypeRead, nd2.Success)
	require.Equal(t, b.mem[ndOpen:][:ndOpenLen], a.mem[100:][:ndOpenLen], "what was read")
	require.NoError(t, a.qp.Write(4, a.list(0, 64), b.at(2000), b.region.GetRemoteToken(), 0), "Write")
	require.NoError(t, a.qp.Send(5, a.list(0, 64), 0), "Send")
	a.done(4, nd2.RequestTypeWrite, nd2.Success)
	a.done(5, nd2.RequestTypeSend, nd2.Success)
	b.received(2, 64)
	require.Equal(t, a.mem[:64], b.mem[1000:1064], "what was sent")
	require.Equal(t, a.mem[:64], b.mem[2000:2064], "what was written")
	require.NoError(t, invalidateND(b, 6, 0), "Invalidate")
	b.done(6, nd2.RequestTypeInvalidate, nd2.Success)
	a.none()
	b.none()
}

// ndRig is a host whose queue pair is connected with a raw peer: what it asks for is
// answered when the case says so.
type ndRig struct {
	*ndHost
	peer *rig
	t    *conformance.T
}

func newNDRig(t *conformance.T, s ndShape) *ndRig { return ndRigOf(newNDHost(t, s)) }

// ndRigOf connects the host's queue pair.
func ndRigOf(h *ndHost) *ndRig {
	t := h.t
	addr, accepted := h.listen(h.qp, h.conn)
	var d net.Dialer
	nc := must(d.DialContext(t.Context(), "tcp", addr.String()))(t, "a TCP connection to the adapter")
	t.Cleanup(func() { _ = nc.Close() })
	p := &rig{t: t, play: conformance.Initiator}
	p.over(nc)
	p.initiate(startup{CRC: true, Rev: 2, Enhanced: true, IRD: 64, ORD: 64})
	require.NoError(t, accepted.GetOverlappedResult(true), "Accept")
	p.settled() // the queue pair may send from here on, and does so at once
	return &ndRig{ndHost: h, peer: p, t: t}
}

// ndPeerMemory is what the peer says it has.
var ndPeerMemory = ndRemote{0x1000, 0x0BADCAFE}

// pendingRead posts a Read of 8 octets into mem from off on, and returns what answers
// it. The octets there are cleared: those of the answer differ.
func (r *ndRig) pendingRead(context any, off int) (answer []byte) {
	clear(r.mem[off : off+8])
	require.NoError(r.t, r.qp.Read(context, r.list(off, 8), ndPeerMemory.at, ndPeerMemory.token, 0), "Read")
	return r.readRequest("fetched!")
}

// readRequest reads the request for a Read of so many octets, and is the answer.
func (r *ndRig) readRequest(payload string) (answer []byte) {
	u := r.peer.next()
	require.Len(r.t, u, 46, "an RDMA Read Request")
	require.Equal(r.t, byte(opReadRequest), u[1], "an RDMA Read Request")
	be := binary.BigEndian
	require.Equal(r.t, uint32(len(payload)), be.Uint32(u[30:]), "its size")
	require.Equal(r.t, ndPeerMemory, ndRemote{be.Uint64(u[38:]), be.Uint32(u[34:])}, "its source")
	return aReadResponse(be.Uint32(u[18:]), be.Uint64(u[22:]), []byte(payload))
}

// fetch has the peer read n octets, and asks sends the request only.
func (r *ndRig) fetch(from ndRemote, n int) []byte { return r.peer.fetched(from.token, from.at, n) }
func (r *ndRig) asks(from ndRemote, n int)         { r.peer.fetches(from.token, from.at, n) }

// opened is what ndBind opens.
func (r *ndRig) opened() ndRemote { return ndRemote{r.at(ndOpen), r.window.GetRemoteToken()} }

// canceled waits for results of requests that were flushed: of the Initiator queue, and
// then of Receives.
func (r *ndRig) canceled(requests []nd2.RequestType, receives int) {
	for i, typ := range requests {
		r.done(i, typ, nd2.ErrCanceled)
	}
	for i := range receives {
		r.done(i, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	r.none()
}

// onNDRig is a case of a raw peer and a NetworkDirect queue pair.
func onNDRig(run func(*conformance.T, *ndRig)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, newNDRig(t, ndShape{})) }
}
