package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// The methods of IND2QueuePair, each made to work.

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
