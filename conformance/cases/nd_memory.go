package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// ndMemoryCases is Flush, windows, and Reads into several places.
var ndMemoryCases = []conformance.Case{
	apiCase("Flush/nd-cancels", onNDRig(ndFlushCancels), "ND-Flush-R1", "ND-Flush-M1"),
	apiCase("Flush/nd-disconnect", onNDRig(ndDisconnectFlushes), "ND-Flush-M2"),
	apiCase("Flush/nd-before-disconnect", onNDRig(ndFlushThenDisconnect), "ND-Flush-M3"),
	apiCase("Flush/nd-neighbour", ndFlushNeighbour, "ND-Flush-M4"),
	apiCase("Bind/nd-region-rights", ndRegionRights, "ND-Bind-R4"),
	apiCase("Bind/nd-token", onNDRig(ndToken), "ND-Bind-M1", "ND-Bind-M6"),
	apiCase("Bind/nd-one-queue-pair", ndOneQueuePair, "ND-Bind-M2", "ND-Bind-M3"),
	apiCase("Bind/nd-until-invalidated", onNDRig(ndUntilInvalidated), "ND-Bind-M2", "ND-Bind-M3"),
	apiCase("Invalidate/nd-when-told", onNDRig(ndInvalidateWhenTold), "ND-Invalidate-M1"),
	apiCase("Invalidate/nd-no-further", ndNoFurther, "ND-Invalidate-M2"),
	apiCase("Read/nd-entries", ndReadEntries, "ND-Read-M1"),
}

// ndFlushCancels flushes requests of every kind, none of which can complete, and
// Receives; then Receives of a queue pair that is not connected.
func ndFlushCancels(t *conformance.T, r *ndRig) {
	requests := []nd2.RequestType{nd2.RequestTypeRead}
	r.pendingRead(0, 0)
	for _, m := range ndMethods {
		require.NoError(t, m.post(r.ndHost, len(requests), r.list(0, 8), ndPeerMemory, nd2.OpFlagReadFence))
		requests = append(requests, m.typ)
	}
	for i := range 8 {
		r.receive(i, 100, 8)
	}
	require.NoError(t, r.qp.Flush())
	r.canceled(requests, 8)

	t.Part("not connected")
	h := newNDHost(t, ndShape{})
	h.receive(1, 0, 8)
	require.NoError(t, h.qp.Flush())
	h.done(1, nd2.RequestTypeReceive, nd2.ErrCanceled)
	require.NoError(t, h.qp.Flush(), "there is nothing to cancel")
	h.none()
}

// ndDisconnectFlushes disconnects with requests outstanding.
func ndDisconnectFlushes(t *conformance.T, r *ndRig) {
	r.receive(0, 100, 8)
	r.receive(1, 100, 8)
	r.pendingRead(0, 0)
	require.NoError(t, r.qp.Send(1, r.list(0, 8), nd2.OpFlagReadFence|nd2.OpFlagSilentSuccess))
	done := nd2.Overlap(t.Context(), r.conn.Disconnect)
	r.peer.gone()
	_ = r.peer.peer.Close()
	require.NoError(t, done.GetOverlappedResult(true))
	r.canceled([]nd2.RequestType{nd2.RequestTypeRead, nd2.RequestTypeSend}, 2)
}

// ndFlushThenDisconnect flushes and disconnects: in between nothing is received any more.
func ndFlushThenDisconnect(t *conformance.T, r *ndRig) {
	r.receive(0, 100, 8)
	before := slicesOf(r.mem)
	require.NoError(t, r.qp.Flush())
	r.canceled(nil, 1)
	r.peer.sendMessage([]byte("too late"))
	r.peer.send(aWrite(r.region.GetRemoteToken(), r.at(200), []byte("this too")))
	r.peer.shut()
	require.NoError(t, r.conn.Disconnect(t.Context()))
	r.over()
	require.Equal(t, before, r.mem)
	r.none()
}

// ndFlushNeighbour flushes one of two queue pairs that share their completion queues.
func ndFlushNeighbour(t *conformance.T) {
	b := newNDHost(t, ndShape{})
	flushed, conn := b.pair("flushed", ndShape{depth: 8, sge: 4}), b.connector()
	a, c := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	connectND(a, b, b.qp, b.conn)
	connectND(c, b, flushed, conn)
	b.receive(1, 0, 8)
	require.NoError(t, flushed.Receive("canceled", nil))
	b.receive(2, 8, 8)
	require.NoError(t, flushed.Flush())
	ndIs(t, b.next(b.in), nd2.Result{Status: nd2.ErrCanceled, QueuePairContext: "flushed", RequestContext: "canceled"})
	c.over()
	b.none()
	for i := range 2 {
		require.NoError(t, a.qp.Send(0, a.list(0, 8), nd2.OpFlagSilentSuccess))
		b.received(i+1, 8)
	}
	ndWorks(a, b)
}

// ndRegionRights binds a window with rights that its region lacks, and has.
func ndRegionRights(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	const read, write = nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite
	for _, c := range []struct {
		region nd2.MRFlags
		bind   nd2.OpFlags
		good   bool
	}{
		{0, write, false},
		{0, read | write, false},
		{nd2.MRFlagAllowRemoteRead, write, false},
		{nd2.MRFlagAllowRemoteRead, read | write, false},
		{nd2.MRFlagRDMAReadSink, write, false},
		{nd2.MRFlagRDMAReadSink | nd2.MRFlagAllowRemoteRead, read | write, false},
		{nd2.MRFlagAllowRemoteRead, read, true},
		{nd2.MRFlagAllowLocalWrite, write, true},
		{nd2.MRFlagAllowLocalWrite, read | write, true},
		{nd2.MRFlagAllowRemoteWrite, write, true},
	} {
		t.Part("region %#x, window %#x", uint32(c.region), uint32(c.bind))
		mem := make([]byte, 64)
		err := a.qp.Bind(1, a.register(mem, c.region), a.window, mem, c.bind)
		if !c.good {
			require.ErrorIs(t, err, nd2.ErrAccessViolation)
			continue
		}
		require.NoError(t, err)
		a.done(1, nd2.RequestTypeBind, nd2.Success)
		require.NoError(t, invalidateND(a, 2, 0))
		a.done(2, nd2.RequestTypeInvalidate, nd2.Success)
	}
	ndWorks(b, a)
}

// ndToken sends the token of a window to the peer before the Bind has its result.
func ndToken(t *conformance.T, r *ndRig) {
	last := r.window.GetRemoteToken()
	for i := range 20 {
		require.NoError(t, r.qp.Bind("bind", r.region, r.window, r.mem[ndOpen:][:ndOpenLen], nd2.OpFlagAllowRead|nd2.OpFlagAllowWrite))
		require.NotEqual(t, last, r.window.GetRemoteToken())
		last = r.window.GetRemoteToken()
		descriptor := []nd2.SGE{{Buffer: []byte{byte(last >> 24), byte(last >> 16), byte(last >> 8), byte(last)}}}
		require.NoError(t, r.qp.Send("descriptor", descriptor, nd2.OpFlagInline))
		r.peer.expect(aSend(uint32(i+1), descriptor[0].Buffer))
		r.peer.send(aWrite(last, r.at(ndOpen), []byte{byte(i), 0xEE}))
		require.Equal(t, []byte{byte(i), 0xEE}, r.fetch(ndRemote{r.at(ndOpen), last}, 2))
		r.done("bind", nd2.RequestTypeBind, nd2.Success)
		r.done("descriptor", nd2.RequestTypeSend, nd2.Success)
		require.NoError(t, invalidateND(r.ndHost, "invalidate", 0))
		r.done("invalidate", nd2.RequestTypeInvalidate, nd2.Success)
	}
}

// ndOneQueuePair binds a window on one queue pair and then on another.
func ndOneQueuePair(t *conformance.T) {
	a, b, c := newNDHost(t, ndShape{}), newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	other, conn := b.pair(b, ndShape{depth: 8, sge: 4}), b.connector()
	connectND(a, b, b.qp, b.conn)
	connectND(c, b, other, conn)
	bind := func(qp *nd2.QueuePair) error {
		return qp.Bind(1, b.region, b.window, b.mem[ndOpen:][:ndOpenLen], nd2.OpFlagAllowRead)
	}
	reads := func(from *ndHost, status nd2.Status) {
		require.NoError(t, from.qp.Read(2, from.list(0, 8), b.at(ndOpen), b.window.GetRemoteToken(), 0))
		from.done(2, nd2.RequestTypeRead, status)
	}
	require.NoError(t, bind(b.qp))
	b.done(1, nd2.RequestTypeBind, nd2.Success)
	require.Error(t, bind(other), "it is bound")
	require.Error(t, bind(b.qp), "it is bound")
	require.ErrorIs(t, other.Invalidate(1, b.window, 0), nd2.ErrInvalidDeviceRequest, "it is not this one's")
	reads(a, nd2.Success)
	require.NoError(t, invalidateND(b, 3, 0))
	b.done(3, nd2.RequestTypeInvalidate, nd2.Success)
	require.NoError(t, bind(other))
	b.done(1, nd2.RequestTypeBind, nd2.Success)
	reads(c, nd2.Success)
	reads(a, nd2.ErrRemoteError) // it is the other queue pair's peer's now
	a.over()
	reads(c, nd2.Success)
}

// ndUntilInvalidated tries to take a window that is being invalidated to another queue pair, while the Invalidate waits
// for a Read: it is bound until then.
func ndUntilInvalidated(t *conformance.T, r *ndRig) {
	c := newNDHost(t, ndShape{})
	other, conn := r.pair(r.ndHost, ndShape{depth: 8, sge: 4}), r.connector()
	connectND(c, r.ndHost, other, conn)
	bind := func() error {
		return other.Bind(1, r.region, r.window, r.mem[ndOpen:][:ndOpenLen], nd2.OpFlagAllowRead)
	}
	ndInvalidate.prepare(r.ndHost)
	answer := r.pendingRead(0, 0)
	require.NoError(t, invalidateND(r.ndHost, 1, nd2.OpFlagReadFence))
	require.ErrorIs(t, bind(), nd2.ErrInvalidDeviceState)
	require.ErrorIs(t, invalidateND(r.ndHost, 2, 0), nd2.ErrInvalidDeviceRequest, "it is asked for already")
	require.Equal(t, r.mem[ndOpen:][:ndOpenLen], r.fetch(r.opened(), ndOpenLen))
	r.peer.send(answer)
	r.done(0, nd2.RequestTypeRead, nd2.Success)
	r.done(1, nd2.RequestTypeInvalidate, nd2.Success)
	require.NoError(t, bind())
	r.done(1, nd2.RequestTypeBind, nd2.Success)
	require.NoError(t, c.qp.Read(2, c.list(0, 8), r.opened().at, r.opened().token, 0))
	c.done(2, nd2.RequestTypeRead, nd2.Success)
}

// ndInvalidateWhenTold invalidates a window once the peer has said that it is done. What
// the peer does then with other memory goes on.
func ndInvalidateWhenTold(t *conformance.T, r *ndRig) {
	for i := range 5 {
		require.NoError(t, bindND(r.ndHost, 1, 0))
		r.done(1, nd2.RequestTypeBind, nd2.Success)
		r.receive(2, 0, 8)
		require.Equal(t, r.mem[ndOpen:][:ndOpenLen], r.fetch(r.opened(), ndOpenLen))
		r.peer.sendMessage([]byte("done"))
		r.received(2, 4)
		require.NoError(t, invalidateND(r.ndHost, i, 0))
		r.done(i, nd2.RequestTypeInvalidate, nd2.Success)
		require.Equal(t, r.mem[:100], r.fetch(r.remote(0), 100))
	}
	r.none()
}

// ndNoFurther reads from and writes to a window that was invalidated.
func ndNoFurther(t *conformance.T) {
	for write := range inTurn(t, "a Write: %v", []bool{false, true}) {
		r := newNDRig(t, ndShape{})
		ndInvalidate.prepare(r.ndHost)
		was := r.opened()
		r.fetch(was, ndOpenLen)
		require.NoError(t, invalidateND(r.ndHost, 1, 0))
		r.done(1, nd2.RequestTypeInvalidate, nd2.Success)
		r.receive(0, 0, 8)
		before := slicesOf(r.mem)
		if write {
			r.peer.send(aWrite(was.token, was.at, []byte("no")))
			r.peer.terminatedAs(0x1100)
		} else {
			r.asks(was, 1)
			r.peer.terminatedAs(0x0100)
		}
		_ = r.peer.peer.Close()
		r.canceled(nil, 1)
		r.over()
		require.Equal(t, before, r.mem)
	}
}

// ndReadEntries reads a header and its payload into places of their own, with lists of
// one entry up to as many as there may be: each Read has one result.
func ndReadEntries(t *conformance.T) {
	const most = 8
	a, b := newNDPair(t, ndShape{depth: 3, sge: most})
	for entries := 1; entries <= most; entries++ {
		clear(a.mem)
		want := make([]byte, ndMemory)
		var list []nd2.SGE
		from := 50
		for i := range entries {
			at, n := (most-i)*1000, 3*i+2
			list = append(list, a.list(at, n)...)
			from += copy(want[at:at+n], b.mem[from:])
		}
		for range 3 {
			require.NoError(t, a.qp.Read(entries, list, b.at(50), b.region.GetRemoteToken(), 0))
		}
		for range 3 {
			a.done(entries, nd2.RequestTypeRead, nd2.Success)
		}
		a.none()
		require.Equal(t, want, a.mem, "%d entries", entries)
	}
}
