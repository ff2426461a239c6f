package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// ndFailures is methods that fail, which change nothing, and requests that do, which end
// the connection.
var ndFailures = []conformance.Case{
	apiCase("Send/nd-queue-full", ndWith(ndSend, ndQueueFull), "ND-Send-R4", "ND-Send-M1"),
	apiCase("Write/nd-queue-full", ndWith(ndWrite, ndQueueFull), "ND-Write-R4", "ND-Write-M1"),
	apiCase("Read/nd-queue-full", ndWith(ndRead, ndQueueFull), "ND-Read-R4", "ND-Read-M2"),
	apiCase("Bind/nd-queue-full", ndWith(ndBind, ndQueueFull), "ND-Bind-R3", "ND-Bind-M4"),
	apiCase("Invalidate/nd-queue-full", ndWith(ndInvalidate, ndQueueFull), "ND-Invalidate-R3", "ND-Invalidate-M3"),
	apiCase("Receive/nd-queue-full", ndReceiveQueueFull, "ND-Receive-R3", "ND-Receive-M5", "ND-Receive-M7"),
	apiCase("Send/nd-error-ends", ndWith(ndSend, ndErrorEnds), "ND-Send-M2"),
	apiCase("Write/nd-error-ends", ndWith(ndWrite, ndErrorEnds), "ND-Write-M2"),
	apiCase("Read/nd-error-ends", ndWith(ndRead, ndErrorEnds), "ND-Read-M3"),
	apiCase("Bind/nd-error-ends", ndWith(ndBind, ndErrorEnds), "ND-Bind-M5"),
	apiCase("Invalidate/nd-error-ends", ndWith(ndInvalidate, ndErrorEnds), "ND-Invalidate-M4"),
	apiCase("Receive/nd-error-ends", ndReceiveErrorEnds, "ND-Receive-M3", "ND-Receive-M4", "ND-Receive-M8"),
	apiCase("Receive/nd-first", ndReceiveFirst, "ND-Receive-M2"),
	apiCase("Receive/nd-any-time", ndReceiveAnyTime, "ND-Receive-M1"),
	apiCase("Read/nd-beyond-the-memory", ndBeyondTheMemory, "ND-Read-R6"),
	apiCase("Read/nd-second-place-beyond", onNDRig(ndSecondPlaceBeyond), "ND-Read-R6"),
}

// ndSecondPlaceBeyond has the peer refuse what is for the second place of a Read before it answers for the first: the
// result says what was wrong, and not that the first place was never filled.
func ndSecondPlaceBeyond(t *conformance.T, r *ndRig) {
	places := append(r.list(0, 8), r.list(16, 8)...)
	require.NoError(t, r.qp.Read("read", places, ndPeerMemory.at, ndPeerMemory.token, 0), "Read")
	r.peer.next()
	second := r.peer.next()
	require.Equal(t, byte(opReadRequest), second[1], "an RDMA Read Request for each place")
	r.peer.send(aTerminate(0x0101, second, true))
	r.done("read", nd2.RequestTypeRead, nd2.ErrRemoteError)
}

// ndQueueFull posts as many requests as there may be, behind a Read that the peer does
// not answer, and one more; then what there was goes on, and another is posted.
func ndQueueFull(t *conformance.T, m ndMethod) {
	for depth := range inTurn(t, "depth %d", []int{2, 5, 8}) {
		r := newNDRig(t, ndShape{depth: depth})
		m.prepare(r.ndHost)
		answer := r.pendingRead(0, 0)
		for i := range depth - 1 {
			require.NoError(t, r.qp.Send(i, r.list(0, 8), nd2.OpFlagReadFence))
		}
		for range 3 {
			require.ErrorIs(t, m.post(r.ndHost, 1, r.list(8, 3), ndPeerMemory, 0), nd2.ErrNoMoreEntries)
		}
		r.peer.settled()
		r.peer.send(answer)
		r.done(0, nd2.RequestTypeRead, nd2.Success)
		for i := range depth - 1 {
			r.peer.expect(aSend(uint32(i+1), []byte("fetched!")))
			r.done(i, nd2.RequestTypeSend, nd2.Success)
		}
		require.NoError(t, m.post(r.ndHost, 2, r.list(8, 3), ndPeerMemory, 0))
		if m.typ == nd2.RequestTypeRead {
			r.peer.send(r.readRequest("new"))
		}
		r.done(2, m.typ, nd2.Success)
		r.none()
	}
}

// ndReceiveQueueFull is ndQueueFull for Receives.
func ndReceiveQueueFull(t *conformance.T) {
	for depth := range inTurn(t, "depth %d", []int{1, 5, 8}) {
		r := newNDRig(t, ndShape{depth: depth})
		for i := range depth {
			r.receive(i, 10*i, 10)
		}
		for range 3 {
			require.ErrorIs(t, r.qp.Receive(100, r.list(200, 10)), nd2.ErrNoMoreEntries)
		}
		r.peer.sendMessage([]byte("first"))
		r.received(0, 5)
		r.receive(depth, 200, 10)
		for i := range depth {
			r.peer.sendMessage([]byte("another"))
			r.received(i+1, 7)
		}
		require.Equal(t, "first", string(r.mem[:5]))
		require.Equal(t, "another", string(r.mem[200:207]))
		r.none()
	}
}

// ndErrorEnds has a request fail once the one before it is complete, with others behind.
func ndErrorEnds(t *conformance.T, m ndMethod) {
	r := newNDRig(t, ndShape{})
	m.prepare(r.ndHost)
	r.receive(0, 100, 8)
	r.receive(1, 108, 8)
	answer := r.pendingRead(0, 0)
	r.spoiled(m)
	require.NoError(t, r.qp.Send(2, r.list(0, 8), 0))
	require.NoError(t, r.qp.Read(3, r.list(0, 8), ndPeerMemory.at, ndPeerMemory.token, nd2.OpFlagSilentSuccess))
	r.peer.send(answer)
	r.done(0, nd2.RequestTypeRead, nd2.Success)
	failed := r.next(r.out)
	require.Equal(t, 1, failed.RequestContext)
	require.Equal(t, m.typ, failed.RequestType)
	require.NotContains(t, []nd2.Status{nd2.Success, nd2.ErrCanceled}, failed.Status, "what went wrong")
	r.done(2, nd2.RequestTypeSend, nd2.ErrCanceled)
	r.done(3, nd2.RequestTypeRead, nd2.ErrCanceled)
	r.canceled(nil, 2)
	for { // what the stream ends with is a matter of the layers below
		u, err := r.peer.peer.Next()
		if err != nil {
			break
		}
		require.Equal(t, byte(opTerminate), u[1], "after the error")
	}
	_ = r.peer.peer.Close()
	r.over()
	require.NoError(t, r.qp.Receive(9, nil))
	r.done(9, nd2.RequestTypeReceive, nd2.ErrCanceled)
}

// spoiled posts a request that the fence holds, and that will fail: from or into memory
// of no token, or of a region or window that is gone by then.
func (r *ndRig) spoiled(m ndMethod) {
	list, region := r.list(0, 8), r.region
	list[0].MemoryRegionToken = 0x77777777
	if m.typ == nd2.RequestTypeBind {
		r.region = r.register(r.mem, nd2.MRFlagAllowLocalWrite)
	}
	require.NoError(r.t, m.post(r.ndHost, 1, list, ndPeerMemory, nd2.OpFlagReadFence))
	switch m.typ {
	case nd2.RequestTypeBind:
		require.NoError(r.t, r.region.Deregister())
		r.region = region
	case nd2.RequestTypeInvalidate:
		require.NoError(r.t, r.window.Close())
	default:
	}
}

// ndReceiveErrorEnds sends as much as a Receive has room for, and an octet more.
func ndReceiveErrorEnds(t *conformance.T) {
	for room := range inTurn(t, "room for %d octets", []int{0, 1, 100}) {
		r := newNDRig(t, ndShape{})
		list := append(r.list(1000, room/2), r.list(2000, room-room/2)...)
		require.NoError(t, r.qp.Receive("fits", list))
		require.NoError(t, r.qp.Receive("does not", list))
		r.receive(0, 3000, 200)
		message := fill(make([]byte, room+1), 77)
		r.peer.sendMessage(message[:room])
		r.received("fits", room)
		require.Equal(t, message[:room], slicesOf(list[0].Buffer, list[1].Buffer))
		before := slicesOf(r.mem[:1000], r.mem[1000+room/2:2000], r.mem[2000+room-room/2:])
		r.pendingRead(0, 8000)
		clear(before[8000-room : 8008-room])
		r.peer.sendMessage(message)
		r.done("does not", nd2.RequestTypeReceive, nd2.ErrBufferOverflow)
		r.canceled([]nd2.RequestType{nd2.RequestTypeRead}, 1)
		r.peer.terminatedAs(0x1205)
		_ = r.peer.peer.Close()
		r.over()
		require.Equal(t, before, slicesOf(r.mem[:1000], r.mem[1000+room/2:2000], r.mem[2000+room-room/2:]), "other memory")
		require.NoError(t, r.qp.Receive(9, nil))
		r.done(9, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
}

// ndReceiveFirst sends to a side that has posted a Receive, and none.
func ndReceiveFirst(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	b.receive(1, 0, 8)
	require.NoError(t, a.qp.Send(1, a.list(0, 8), nd2.OpFlagSilentSuccess))
	b.received(1, 8)
	a.receive(0, 0, 8)
	require.NoError(t, a.qp.Send(2, a.list(0, 8), nd2.OpFlagSilentSuccess))
	a.done(0, nd2.RequestTypeReceive, nd2.ErrCanceled)
	a.over()
	b.over()
	b.none()
}

// ndReceiveAnyTime posts Receives before connecting, with the request of a peer at hand,
// while connected, and after the end.
func ndReceiveAnyTime(t *conformance.T) {
	a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	b.receive(0, 0, 8)
	a.receive(0, 0, 8)
	addr, accepted := b.listen(b.qp, b.conn)
	require.NoError(t, a.conn.Connect(t.Context(), a.qp, addr, 1, 1, nil))
	a.receive(1, 8, 8)
	require.NoError(t, a.conn.CompleteConnect(t.Context()))
	require.NoError(t, accepted.GetOverlappedResult(true))
	b.receive(1, 8, 8)
	for i := range 2 {
		require.NoError(t, a.qp.Send(0, a.list(100, 8), nd2.OpFlagSilentSuccess))
		b.received(i, 8)
		require.NoError(t, b.qp.Send(0, b.list(200, 7), nd2.OpFlagSilentSuccess))
		a.received(i, 7)
	}
	require.Equal(t, slicesOf(a.mem[100:108], a.mem[100:108]), b.mem[:16])
	require.NoError(t, a.conn.Disconnect(t.Context()))
	b.over()
	for _, h := range []*ndHost{a, b} {
		h.receive(2, 0, 8)
		h.done(2, nd2.RequestTypeReceive, nd2.ErrCanceled)
		h.none()
	}
}

// ndBeyondTheMemory reads to the end of the peer's memory, and an octet beyond.
func ndBeyondTheMemory(t *conformance.T) {
	for window := range inTurn(t, "a window: %v", []bool{false, true}) {
		a, b := newNDPair(t, ndShape{})
		from, token := b.at(ndMemory-ndOpenLen), b.region.GetRemoteToken()
		if window {
			ndInvalidate.prepare(b)
			from, token = b.at(ndOpen), b.window.GetRemoteToken()
		}
		require.NoError(t, a.qp.Read(1, a.list(0, ndOpenLen), from, token, 0))
		a.done(1, nd2.RequestTypeRead, nd2.Success)
		before := slicesOf(a.mem)
		require.NoError(t, a.qp.Read(2, a.list(1000, ndOpenLen+1), from, token, 0))
		a.done(2, nd2.RequestTypeRead, nd2.ErrRemoteError)
		a.over()
		require.Equal(t, before, a.mem, "nothing was read")
	}
}

// ndReturns is what the methods return.
var ndReturns = []conformance.Case{
	apiCase("Send/nd-success", ndWith(ndSend, ndSuccess), "ND-Send-R1"),
	apiCase("Write/nd-success", ndWith(ndWrite, ndSuccess), "ND-Write-R1"),
	apiCase("Read/nd-success", ndWith(ndRead, ndSuccess), "ND-Read-R1"),
	apiCase("Bind/nd-success", ndWith(ndBind, ndSuccess), "ND-Bind-R1"),
	apiCase("Invalidate/nd-success", ndWith(ndInvalidate, ndSuccess), "ND-Invalidate-R1"),
	apiCase("Receive/nd-success", ndReceiveSuccess, "ND-Receive-R1"),
	apiCase("Send/nd-not-connected", ndWith(ndSend, ndNotConnected), "ND-Send-R2"),
	apiCase("Write/nd-not-connected", ndWith(ndWrite, ndNotConnected), "ND-Write-R2"),
	apiCase("Read/nd-not-connected", ndWith(ndRead, ndNotConnected), "ND-Read-R2"),
	apiCase("Bind/nd-not-connected", ndWith(ndBind, ndNotConnected), "ND-Bind-R2"),
	apiCase("Invalidate/nd-not-connected", ndWith(ndInvalidate, ndNotConnected), "ND-Invalidate-R2"),
	apiCase("Send/nd-too-much-data", ndTooMuchData, "ND-Send-R3", "ND-Write-R3", "ND-Read-R3", "ND-Receive-R2"),
	apiCase("Send/nd-list-too-long", ndWith(ndSend, ndListTooLong), "ND-Send-R5"),
	apiCase("Write/nd-list-too-long", ndWith(ndWrite, ndListTooLong), "ND-Write-R5"),
	apiCase("Read/nd-list-too-long", ndWith(ndRead, ndListTooLong), "ND-Read-R5"),
	apiCase("Receive/nd-list-too-long", ndReceiveListTooLong, "ND-Receive-R4"),
	{Name: "Send/nd-invalid-flags", Keys: []string{"ND-Send-R6"}, Need: conformance.NeedAPI, Run: func(t *conformance.T) {
		ndInvalidFlags(t, ndSend, nd2.ErrInvalidParameter4, nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite)
	}},
	{Name: "Write/nd-invalid-flags", Keys: []string{"ND-Write-R6"}, Need: conformance.NeedAPI, Run: func(t *conformance.T) {
		ndInvalidFlags(t, ndWrite, nd2.ErrInvalidParameter6, nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite, nd2.OpFlagSendAndSolicitEvent)
	}},
}

// ndSuccess posts a request, and takes its result.
func ndSuccess(t *conformance.T, m ndMethod) {
	a, b := newNDPair(t, ndShape{})
	b.receive(0, 0, 8)
	m.prepare(a)
	context := &struct{ name string }{"mine"}
	require.NoError(t, m.post(a, context, a.list(0, 8), b.remote(0), 0))
	a.done(context, m.typ, nd2.Success)
	a.none()
}

// ndReceiveSuccess receives messages of all sizes that fit, in the order of the Receives.
func ndReceiveSuccess(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	for _, n := range []int{0, 1, 99, 100} {
		clear(b.mem[:200])
		b.receive(n, 0, 100)
		b.receive(1000+n, 100, 100)
		require.NoError(t, a.qp.Send(0, a.list(1000, n), nd2.OpFlagSilentSuccess))
		b.received(n, n)
		b.none()
		want := make([]byte, 200)
		copy(want, a.mem[1000:1000+n])
		require.Equal(t, want, b.mem[:200])
		require.NoError(t, a.qp.Send(0, nil, nd2.OpFlagSilentSuccess))
		b.received(1000+n, 0)
	}
}

// ndNotConnected posts before there is a connection, while there is one to be completed,
// and after its end, at either end.
func ndNotConnected(t *conformance.T, m ndMethod) {
	for _, end := range named(t, "%s", map[string]func(a, b *ndHost){
		"the peer disconnects": func(_, b *ndHost) { require.NoError(t, b.conn.Disconnect(t.Context())) },
		"disconnected":         func(a, _ *ndHost) { require.NoError(t, a.conn.Disconnect(t.Context())) },
		"flushed":              func(a, _ *ndHost) { require.NoError(t, a.qp.Flush()) },
	}) {
		a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
		refused := func(when string) {
			require.ErrorIs(t, m.post(a, 1, a.list(0, 8), b.remote(0), 0), nd2.ErrConnectionInvalid, when)
		}
		refused("never connected")
		addr, accepted := b.listen(b.qp, b.conn)
		require.NoError(t, a.conn.Connect(t.Context(), a.qp, addr, 1, 1, nil))
		refused("before CompleteConnect")
		require.NoError(t, a.conn.CompleteConnect(t.Context()))
		require.NoError(t, accepted.GetOverlappedResult(true))
		m.prepare(a)
		end(a, b)
		require.NoError(t, a.conn.NotifyDisconnect(t.Context()))
		refused("after the end")
		a.none()
	}
}

// ndTooMuchData names an octet more than a message can have. Nobody looks at them.
func ndTooMuchData(t *conformance.T) {
	a, b := newNDPair(t, ndShape{sge: 8})
	most := a.adapter.Query().MaxTransferLength
	piece := make([]byte, most/8+1)
	list := make([]nd2.SGE, 8)
	for i := range list {
		list[i] = nd2.SGE{Buffer: piece, MemoryRegionToken: a.region.GetLocalToken()}
	}
	for _, m := range ndTransfers {
		require.ErrorIs(t, m.post(a, 1, list, b.remote(0), 0), nd2.ErrBufferOverflow, m.name)
	}
	require.ErrorIs(t, a.qp.Receive(1, list), nd2.ErrBufferOverflow)
	ndWorks(a, b)
	ndSync(b, a)
}

// ndEntries is a list of n entries of 2 octets each.
func (h *ndHost) ndEntries(n int) (list []nd2.SGE) {
	for i := range n {
		list = append(list, h.list(100+2*i, 2)...)
	}
	return list
}

// ndListTooLong posts a list as long as it may be, and one entry more.
func ndListTooLong(t *conformance.T, m ndMethod) {
	for _, most := range []int{1, 3, 8} {
		a, b := newNDPair(t, ndShape{sge: most})
		require.ErrorIs(t, m.post(a, 1, a.ndEntries(most+1), b.remote(0), 0), nd2.ErrDataOverrun)
		ndWorks(a, b)
		b.receive(1, 0, 100)
		require.NoError(t, m.post(a, 2, a.ndEntries(most), b.remote(0), 0))
		a.done(2, m.typ, nd2.Success)
	}
}

// ndReceiveListTooLong is ndListTooLong for Receives.
func ndReceiveListTooLong(t *conformance.T) {
	for _, most := range []int{1, 3, 32} {
		a, b := newNDPair(t, ndShape{sge: most})
		require.ErrorIs(t, b.qp.Receive(1, b.ndEntries(most+1)), nd2.ErrDataOverrun)
		require.NoError(t, b.qp.Receive(2, b.ndEntries(most)))
		require.NoError(t, a.qp.Send(3, a.list(0, 2*most), 0))
		b.received(2, 2*most)
		require.Equal(t, a.mem[:2*most], b.mem[100:][:2*most])
	}
}

// ndInvalidFlags passes a method flags of others, and those that are none.
func ndInvalidFlags(t *conformance.T, m ndMethod, want nd2.Status, bad ...nd2.OpFlags) {
	a, b := newNDPair(t, ndShape{})
	for flag := nd2.OpFlagInline << 1; flag != 0; flag <<= 1 {
		bad = append(bad, flag)
	}
	for _, flags := range bad {
		for _, good := range []nd2.OpFlags{0, nd2.OpFlagSilentSuccess, nd2.OpFlagReadFence | nd2.OpFlagInline} {
			require.ErrorIs(t, m.post(a, 1, a.list(0, 8), b.remote(0), flags|good), want, "flags %#x", uint32(flags|good))
		}
	}
	ndWorks(a, b)
}
