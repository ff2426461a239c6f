package cases

import (
	"bytes"
	"context"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// ndFlags is the flags of requests, but for the fence, and ND2_SGE.
var ndFlags = []conformance.Case{
	apiCase("Send/nd-silent", ndWith(ndSend, ndSilent), "ND-Send-F1"),
	apiCase("Write/nd-silent", ndWith(ndWrite, ndSilent), "ND-Write-F1"),
	apiCase("Read/nd-silent", ndWith(ndRead, ndSilent), "ND-Read-F1"),
	apiCase("Bind/nd-silent", ndWith(ndBind, ndSilent), "ND-Bind-F1"),
	apiCase("Invalidate/nd-silent", ndWith(ndInvalidate, ndSilent), "ND-Invalidate-F1"),
	apiCase("Send/nd-solicited", ndSolicited, "ND-Send-F3"),
	apiCase("Send/nd-errors-notify", ndErrorsNotify, "ND-Send-F3"),
	apiCase("Receive/nd-notified-and-fetched", ndNotifiedAndFetched, "ND-Receive-R3"),
	apiCase("Send/nd-inline", ndWith(ndSend, ndInline), "ND-Send-F4", "ND-SGE-M1"),
	apiCase("Write/nd-inline", ndWith(ndWrite, ndInline), "ND-Write-F3", "ND-SGE-M1"),
	apiCase("Bind/nd-allow-read", onNDRig(ndAllowRead), "ND-Bind-F3"),
	apiCase("Bind/nd-allow-write", onNDRig(ndAllowWrite), "ND-Bind-F4"),
}

// ndSilent posts more silent requests than the queue holds, with others in between and without, and then some that
// fail.
func ndSilent(t *conformance.T, m ndMethod) {
	a, b := newNDPair(t, ndShape{})
	m.prepare(a)
	for range 5 {
		for i := range 3 {
			if m.typ == nd2.RequestTypeSend {
				b.receive(i, 0, 8)
			}
			require.NoError(t, m.post(a, "silent", a.list(0, 8), b.remote(8), nd2.OpFlagSilentSuccess))
			if m.undo != nil {
				require.NoError(t, m.undo(a, "silent", nd2.OpFlagSilentSuccess))
			}
		}
		require.NoError(t, a.qp.Write("told", nil, 0, 0, 0))
		a.done("told", nd2.RequestTypeWrite, nd2.Success)
		if m.typ != nd2.RequestTypeSend {
			continue
		}
		for i := range 3 {
			b.received(i, 8)
		}
	}
	a.none()

	t.Part("none but silent ones")
	posts := func(post func(h *ndHost) error) {
		eventually(t, func() bool {
			err := post(a)
			if err != nil {
				require.ErrorIs(t, err, nd2.ErrNoMoreEntries)
			}
			return err == nil
		}, "room for another silent %s", m.name)
	}
	for i := range 40 {
		if m.typ == nd2.RequestTypeSend {
			b.receive(i, 0, 8)
		}
		posts(func(h *ndHost) error { return m.post(h, "silent", h.list(0, 8), b.remote(8), nd2.OpFlagSilentSuccess) })
		if m.undo != nil {
			posts(func(h *ndHost) error { return m.undo(h, "silent", nd2.OpFlagSilentSuccess) })
		}
		if m.typ == nd2.RequestTypeSend {
			b.received(i, 8)
		}
	}
	a.none()

	t.Part("one that fails")
	r := newNDRig(t, ndShape{})
	m.prepare(r.ndHost)
	r.pendingRead(0, 0)
	require.NoError(t, m.post(r.ndHost, 1, r.list(0, 8), ndPeerMemory, nd2.OpFlagSilentSuccess|nd2.OpFlagReadFence))
	require.NoError(t, r.qp.Flush())
	r.canceled([]nd2.RequestType{nd2.RequestTypeRead, m.typ}, 0)
}

// ndAsleep is a context that says when somebody waits for its end: a Notify that does
// has asked for its notification.
type ndAsleep struct {
	context.Context
	once  sync.Once
	armed chan struct{}
}

// Done says that.
func (c *ndAsleep) Done() <-chan struct{} {
	c.once.Do(func() { close(c.armed) })
	return c.Context.Done()
}

// notifies calls Notify of the completion queue of Receives, and waits until it sleeps.
func (h *ndHost) notifies(typ nd2.NotifyType) <-chan error {
	return ndNotifies(h.t.Context(), h.t, h.in, typ)
}

// ndNotifies calls Notify of a completion queue, and waits until it sleeps.
func ndNotifies(ctx context.Context, t *conformance.T, q *nd2.CompletionQueue, typ nd2.NotifyType) <-chan error {
	asleep, done := &ndAsleep{Context: ctx, armed: make(chan struct{})}, make(chan error, 1)
	go func() { done <- q.Notify(asleep, typ) }()
	receive(t, asleep.armed, "nothing came")
	return done
}

// ndTold returns when b has given all notifications that are due for what a has sent it
// so far. A message has arrived behind all that: the completions before it are in the
// queue, with their notifications. An adapter gives these in order, so that one for its
// other queue, asked for now, comes last.
func ndTold(a, b *ndHost) {
	ndSync(a, b)
	last := ndNotifies(b.t.Context(), b.t, b.out, nd2.CQNotifyAny)
	require.NoError(b.t, b.qp.Write("last", nil, 0, 0, 0))
	require.NoError(b.t, receive(b.t, last, "nothing came"), "Notify")
	b.done("last", nd2.RequestTypeWrite, nd2.Success)
}

// ndSolicited sends three messages that belong together, of which the last is flagged, to
// one waiter. Before it another one gives up: a Notify that ends because its context has
// ended was told of nothing until then.
func ndSolicited(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	told := b.notifies(nd2.CQNotifySolicited)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	untold := ndNotifies(ctx, t, b.in, nd2.CQNotifySolicited)
	for i, flags := range []nd2.OpFlags{0, nd2.OpFlagSilentSuccess | nd2.OpFlagReadFence} {
		b.receive(i, 0, 8)
		require.NoError(t, a.qp.Send(i, a.list(0, 8), flags|nd2.OpFlagSilentSuccess))
		b.received(i, 8)
	}
	ndTold(a, b)
	giveUp()
	require.ErrorIs(t, receive(t, untold, "nothing came"), nd2.ErrCanceled, "told of a Send without the flag")
	b.receive(2, 0, 8)
	require.NoError(t, a.qp.Send(2, a.list(0, 8), nd2.OpFlagSilentSuccess|nd2.OpFlagSendAndSolicitEvent))
	require.NoError(t, receive(t, told, "nothing came"), "Notify")
	var r [2]nd2.Result
	require.Equal(t, 1, b.in.GetResults(r[:]), "the result is there when the notification is")
	ndIs(t, r[0], nd2.Result{BytesTransferred: 8, QueuePairContext: b, RequestContext: 2})

	t.Part("as any other, to who asked for any")
	told = b.notifies(nd2.CQNotifyAny)
	b.receive(3, 0, 8)
	require.NoError(t, a.qp.Send(3, a.list(0, 8), nd2.OpFlagSilentSuccess|nd2.OpFlagSendAndSolicitEvent))
	require.NoError(t, receive(t, told, "nothing came"), "Notify")
	b.received(3, 8)
}

// ndErrorsNotify has a Receive fail while somebody waits, for each type of notification.
func ndErrorsNotify(t *conformance.T) {
	for typ := range inTurn(t, "type %d", []nd2.NotifyType{nd2.CQNotifyErrors, nd2.CQNotifyAny, nd2.CQNotifySolicited}) {
		a, b := newNDPair(t, ndShape{})
		b.receive(1, 0, 8)
		told := b.notifies(typ)
		require.NoError(t, a.conn.Disconnect(t.Context()))
		require.NoError(t, receive(t, told, "nothing came"), "Notify")
		b.done(1, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
}

// ndNotifiedAndFetched has more Receives than the queue holds complete, each of which wakes a Notify before it is
// fetched: a Receive that is fetched has left the queue, as one has that nobody was told of.
func ndNotifiedAndFetched(t *conformance.T) {
	const depth = 2
	a, b := newNDPair(t, ndShape{depth: depth})
	for i := range counted(t, "message %d", 3*depth) {
		b.receive(i, 0, 8)
		told := b.notifies(nd2.CQNotifyAny)
		require.NoError(t, a.qp.Send(i, a.list(0, 8), nd2.OpFlagSilentSuccess))
		require.NoError(t, receive(t, told, "nothing came"), "Notify")
		b.received(i, 8)
		require.NoError(t, a.qp.Write(i, nil, 0, 0, 0))
		a.done(i, nd2.RequestTypeWrite, nd2.Success) // the silent Send's place is free too
	}
	for i := range depth {
		b.receive(i, 0, 8)
	}
	require.ErrorIs(t, b.qp.Receive(depth, b.list(0, 8)), nd2.ErrNoMoreEntries, "a Receive beyond the depth")
}

// ndInline sends or writes octets of any memory, in long lists, up to the limit.
func ndInline(t *conformance.T, m ndMethod) {
	const limit = 100
	a, b := newNDPair(t, ndShape{sge: 2, inline: limit})
	arrive := func(list []nd2.SGE) []byte {
		clear(b.mem[:200])
		b.receive(1, 0, 200)
		require.NoError(t, m.post(a, 2, list, b.remote(0), nd2.OpFlagInline))
		n := 0
		for i := range list {
			n += len(list[i].Buffer)
			clear(list[i].Buffer) // the octets have been taken
		}
		if m.typ == nd2.RequestTypeSend {
			b.received(1, n)
		} else {
			require.NoError(t, a.qp.Send(3, nil, nd2.OpFlagSilentSuccess))
			b.received(1, 0)
		}
		a.done(2, m.typ, nd2.Success)
		return b.mem[:200]
	}
	fresh := func(n, seed int) []byte { return fill(make([]byte, n), seed) }
	padded := func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, 200-len(b))...) }

	t.Part("memory outside of any region, and within one under any token")
	inside := fill(a.mem[50:60], 3)
	want := padded(slicesOf(fresh(10, 1), fresh(10, 3), fresh(7, 5)))
	list := []nd2.SGE{{Buffer: fresh(10, 1)}, {Buffer: inside, MemoryRegionToken: 0x77777777}, {Buffer: fresh(7, 5), MemoryRegionToken: 1}}
	require.Equal(t, want, arrive(list))
	t.Part("a list of 50 entries, for a queue pair of 2")
	list, want = nil, nil
	for i := range 50 {
		list, want = append(list, nd2.SGE{Buffer: fresh(2, i)}), append(want, fresh(2, i)...)
	}
	require.Equal(t, padded(want), arrive(list))
	t.Part("as much as there may be, and an octet more")
	require.Equal(t, padded(fresh(limit, 9)), arrive([]nd2.SGE{{Buffer: fresh(limit, 9)}}))
	err := m.post(a, 4, []nd2.SGE{{Buffer: fresh(limit, 1)}, {Buffer: fresh(1, 1)}}, b.remote(0), nd2.OpFlagInline)
	require.ErrorIs(t, err, nd2.ErrBufferOverflow)
	require.Equal(t, padded(fresh(30, 8)), arrive([]nd2.SGE{{Buffer: fresh(30, 8)}}))
	require.GreaterOrEqual(t, a.adapter.Query().MaxInlineDataSize, limit, "MaxInlineDataSize")

	t.Part("as many as the queue holds, which wait")
	r := newNDRig(t, ndShape{})
	answer := r.pendingRead(0, 0)
	octets := make([]byte, 4) // of no region
	for i := range 7 {
		list := []nd2.SGE{{Buffer: fill(octets, i)}}
		require.NoError(t, m.post(r.ndHost, i+1, list, ndPeerMemory, nd2.OpFlagInline|nd2.OpFlagReadFence))
	}
	r.peer.send(answer)
	r.done(0, nd2.RequestTypeRead, nd2.Success)
	for i := range 7 {
		sent, written := aSend(uint32(i+1), fresh(4, i)), aWrite(ndPeerMemory.token, ndPeerMemory.at, fresh(4, i))
		r.peer.expect(either(m.typ == nd2.RequestTypeSend, sent, written))
		r.done(i+1, m.typ, nd2.Success)
	}
}

// ndAllowRead opens a window for reading.
func ndAllowRead(t *conformance.T, r *ndRig) {
	require.NoError(t, bindND(r.ndHost, 1, 0))
	r.done(1, nd2.RequestTypeBind, nd2.Success)
	require.Equal(t, r.mem[ndOpen:][:ndOpenLen], r.fetch(r.opened(), ndOpenLen))
	before := bytes.Clone(r.mem)
	bad := aWrite(r.opened().token, r.opened().at, []byte("no"))
	r.peer.send(bad)
	r.peer.terminated(0x1100, bad, false)
	require.True(t, bytes.Equal(before, r.mem), "the memory")
}

// ndAllowWrite opens a window for writing.
func ndAllowWrite(t *conformance.T, r *ndRig) {
	require.NoError(t, r.qp.Bind(1, r.region, r.window, r.mem[ndOpen:][:ndOpenLen], nd2.OpFlagAllowWrite))
	r.done(1, nd2.RequestTypeBind, nd2.Success)
	r.peer.send(aWrite(r.opened().token, r.opened().at+2, []byte("written")))
	r.peer.settled()
	require.Equal(t, "written", string(r.mem[ndOpen+2:ndOpen+9]))
	r.asks(r.opened(), 1)
	r.peer.terminatedAs(0x0102)
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
			r.peer.terminatedAs(0x0100)
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
	r.peer.terminatedAs(0x0100)
}
