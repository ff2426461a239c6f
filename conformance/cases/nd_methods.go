package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

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

// ndFence is ND_OP_FLAG_READ_FENCE, of each request.
var ndFence = []conformance.Case{
	apiCase("Send/nd-read-fence", ndWith(ndSend, ndFenced), "ND-Send-F2"),
	apiCase("Write/nd-read-fence", ndWith(ndWrite, ndFenced), "ND-Write-F2"),
	apiCase("Read/nd-read-fence", ndReadFenced, "ND-Read-F2"),
	apiCase("Bind/nd-read-fence", ndBindFenced, "ND-Bind-F2"),
	apiCase("Invalidate/nd-read-fence", onNDRig(ndInvalidateFenced), "ND-Invalidate-F2"),
}

// ndFenced sends on what two Reads fetch, which the peer answers late.
func ndFenced(t *conformance.T, m ndMethod) {
	r := newNDRig(t, ndShape{})
	first, second := r.pendingRead(0, 0), r.pendingRead(1, 8)
	require.NoError(t, m.post(r.ndHost, 2, r.list(0, 16), ndPeerMemory, nd2.OpFlagReadFence))
	r.peer.settled()
	r.peer.send(first)
	r.done(0, nd2.RequestTypeRead, nd2.Success)
	r.peer.settled()
	r.peer.send(second)
	want := aSend(1, []byte("fetched!fetched!"))
	if m.typ == nd2.RequestTypeWrite {
		want = aWrite(ndPeerMemory.token, ndPeerMemory.at, []byte("fetched!fetched!"))
	}
	r.peer.expect(want)
	r.done(1, nd2.RequestTypeRead, nd2.Success)
	r.done(2, m.typ, nd2.Success)
}

// ndReadFenced reads while a Read is under way: with the fence later, without it at
// once.
func ndReadFenced(t *conformance.T) {
	for flags := range inTurn(t, "flags %d", []nd2.OpFlags{0, nd2.OpFlagReadFence}) {
		r := newNDRig(t, ndShape{})
		first := r.pendingRead(0, 0)
		require.NoError(t, r.qp.Read(1, r.list(8, 3), ndPeerMemory.at, ndPeerMemory.token, flags))
		var second []byte
		if flags == 0 {
			second = r.readRequest("new")
			r.peer.send(first)
		} else {
			r.peer.settled()
			r.peer.send(first)
			second = r.readRequest("new")
		}
		r.peer.send(second)
		r.done(0, nd2.RequestTypeRead, nd2.Success)
		r.done(1, nd2.RequestTypeRead, nd2.Success)
		require.Equal(t, "fetched!new", string(r.mem[:11]))
	}
}

// ndBindFenced binds a window while a Read is under way, and has the peer use it: once
// before the Read has its answer, and once behind that.
func ndBindFenced(t *conformance.T) {
	for early := range inTurn(t, "used early: %v", []bool{true, false}) {
		r := newNDRig(t, ndShape{})
		answer := r.pendingRead(0, 0)
		require.NoError(t, bindND(r.ndHost, 1, nd2.OpFlagReadFence))
		if early {
			r.asks(r.opened(), 8)
			terminated(t, r.peer.peer, 0x0100)
			_ = r.peer.peer.Close()
			r.canceled([]nd2.RequestType{nd2.RequestTypeRead, nd2.RequestTypeBind}, 0)
			continue
		}
		r.peer.send(answer)
		r.done(0, nd2.RequestTypeRead, nd2.Success)
		r.done(1, nd2.RequestTypeBind, nd2.Success)
		require.Equal(t, r.mem[ndOpen:][:ndOpenLen], r.fetch(r.opened(), ndOpenLen))
	}
}

// ndInvalidateFenced invalidates a window while a Read is under way: until that has its
// answer the peer can use the window.
func ndInvalidateFenced(t *conformance.T, r *ndRig) {
	ndInvalidate.prepare(r.ndHost)
	answer := r.pendingRead(0, 0)
	require.NoError(t, invalidateND(r.ndHost, 1, nd2.OpFlagReadFence))
	require.Equal(t, r.mem[ndOpen:][:ndOpenLen], r.fetch(r.opened(), ndOpenLen))
	r.peer.send(answer)
	r.done(0, nd2.RequestTypeRead, nd2.Success)
	r.done(1, nd2.RequestTypeInvalidate, nd2.Success)
	r.asks(r.opened(), 1)
	terminated(t, r.peer.peer, 0x0100)
}
