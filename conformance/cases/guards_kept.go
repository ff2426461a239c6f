package cases

import (
	"runtime"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/vipl"
)

// guardsKept are of what a queue has of requests that are over: nothing, so that the program's memory is its own again.
var guardsKept = []conformance.Case{
	apiCase("6.4.2/vi-descriptors-let-go", viDescriptorsLetGo, "VA-6.4.2-S1"),
	apiCase("Receive/nd-contexts-of-requests", ndRequestContexts, "ND-Receive-R1"),
	apiCase("Bind/nd-regions-and-windows-of", ndRegionsCounted, "ND-Bind-M2"),
	apiCase("3.4/vi-handlers-of-two-queues", onVIHost(viHandlersOfTwo), "VA-3.4-M5"),
	apiCase("9.9.1/vi-empty-queue-of-a-cq", viEmptyQueueOfCQ, "VA-3.4-M5"),
}

// collected waits until the garbage collector has what was made.
func collected[V any](t *conformance.T, what string, made []weak.Pointer[V]) {
	eventually(t, func() bool {
		runtime.GC()
		for _, p := range made {
			if p.Value() != nil {
				return false
			}
		}
		return true
	}, "nothing keeps %s", what)
}

// viDescriptorsLetGo has Descriptors and memory go through the queues of VIs, connected and not, that live on.
func viDescriptorsLetGo(t *conformance.T) {
	p := newVIPair(t, vipl.ServiceReliableReception)
	idle := p.a.vi(vipl.ServiceReliableDelivery)
	use := func() (weak.Pointer[vipl.Descriptor], weak.Pointer[byte]) {
		descs, mem := make([]vipl.Descriptor, 8), make([]byte, 64)
		dh := must(p.a.nic.RegisterDescriptors(descs, p.a.ptag))(t)
		handle := p.a.register(mem, vipl.MemAttributes{Ptag: p.a.ptag})
		at := vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: 8}
		for i, d := range []func(*vipl.Descriptor){
			func(d *vipl.Descriptor) { d.SetSend(at) },
			func(d *vipl.Descriptor) { d.SetRdmaRead(p.b.remote(0), at) },
			func(d *vipl.Descriptor) { d.SetRdmaWrite(p.b.remote(0), at) },
		} {
			p.b.recv(p.vb, p.b.data(100, 8))
			p.b.recv(p.vb, p.b.data(0, 8))
			d(&descs[i])
			require.NoError(t, p.va.PostSend(&descs[i], dh))
			require.Same(t, &descs[i], must(p.va.SendWait(t.Context()))(t))
			require.Zero(t, descs[i].Control.Status.Errors())
		}
		for i, v := range []*vipl.Vi{p.va, idle} {
			d := &descs[4+i]
			d.SetRecv(at)
			require.NoError(t, v.PostRecv(d, dh))
			if v == idle {
				require.NoError(t, v.Disconnect())
				p.a.received(v, d, viDone|viFlushed|viOpReceive)
				continue
			}
			p.b.sends(p.vb, p.b.data(0, 8))
			p.a.received(v, d, viDone|viOpReceive)
		}
		require.NoError(t, p.a.nic.DeregisterMem(vipl.AddressOf(descs), dh))
		require.NoError(t, p.a.nic.DeregisterMem(at.Data, handle))
		return weak.Make(&descs[0]), weak.Make(&mem[0])
	}
	d, m := use()
	collected(t, "the Descriptors", []weak.Pointer[vipl.Descriptor]{d})
	collected(t, "the memory", []weak.Pointer[byte]{m})
	runtime.KeepAlive(idle)
}

// ndRequestContexts makes requests of each kind with contexts of their own, and has the results in each way, of queues
// that live on.
func ndRequestContexts(t *conformance.T) {
	type context struct{ _ [64]byte }
	a, b := newNDPair(t, ndShape{})
	var made []weak.Pointer[context]
	fresh := func() *context {
		c := new(context)
		made = append(made, weak.Make(c))
		return c
	}
	is := func(h *ndHost, c *context, typ nd2.RequestType) {
		q := either(typ == nd2.RequestTypeReceive, h.in, h.out)
		require.NoError(t, q.Notify(t.Context(), nd2.CQNotifyAny))
		r := h.next(q)
		require.True(t, r.RequestContext == any(c), "the context of %v", typ)
		require.Equal(t, nd2.Success, r.Status)
	}
	for range 3 {
		c, d := fresh(), fresh()
		require.NoError(t, b.qp.Receive(c, b.list(0, 8)))
		require.NoError(t, a.qp.Send(d, a.list(0, 8), 0))
		is(b, c, nd2.RequestTypeReceive)
		is(a, d, nd2.RequestTypeSend)
		c = fresh()
		require.NoError(t, a.qp.Read(c, a.list(8, 8), b.at(0), b.region.GetRemoteToken(), 0))
		is(a, c, nd2.RequestTypeRead)
	}
	s := newNDHost(t, ndShape{})
	srq := must(s.adapter.CreateSharedReceiveQueue(4, 1, 0))(t)
	qp := must(s.adapter.CreateQueuePairWithSrq(s.in, s.out, srq, s, 4, 1, 0))(t)
	c := newNDHost(t, ndShape{})
	connectND(c, s, qp, s.conn)
	for range 3 {
		x := fresh()
		require.NoError(t, srq.Receive(x, s.list(0, 8)))
		require.NoError(t, c.qp.Send(nil, c.list(0, 8), 0))
		is(s, x, nd2.RequestTypeReceive)
		c.done(nil, nd2.RequestTypeSend, nd2.Success)
	}
	collected(t, "the contexts", made)
	require.NoError(t, srq.Receive(nil, nil))
}

// ndRegionsCounted registers memory and binds windows, and takes both back in each way: as many are known as there are.
func ndRegionsCounted(t *conformance.T) {
	const regions, windows = "nd2 adapter: region", "nd2 queue pair: bound window"
	a, b := newNDPair(t, ndShape{})
	before := t.Held()[regions]
	require.Positive(t, before)
	for range counted(t, "round %d", 3) {
		more := b.register(make([]byte, 64), nd2.MRFlagAllowLocalWrite)
		closed := b.register(make([]byte, 64), nd2.MRFlagAllowLocalWrite)
		require.Equal(t, before+2, t.Held()[regions])
		require.NoError(t, more.Deregister())
		require.NoError(t, closed.Close())
		require.Equal(t, before, t.Held()[regions])
		w, other := b.newWindow(), b.newWindow()
		for range 2 {
			for i, w := range []*nd2.MemoryWindow{w, other} {
				require.NoError(t, b.qp.Bind(i, b.region, w, b.mem[8*i:8*i+8], nd2.OpFlagAllowRead))
				b.done(i, nd2.RequestTypeBind, nd2.Success)
			}
			require.Equal(t, 2, t.Held()[windows])
			for i, w := range []*nd2.MemoryWindow{w, other} {
				require.NoError(t, b.qp.Invalidate(i, w, 0))
				b.done(i, nd2.RequestTypeInvalidate, nd2.Success)
			}
		}
		require.NoError(t, w.Close())
		require.NoError(t, other.Close())
		require.Zero(t, t.Held()[windows], "they are closed")
	}
	w := b.newWindow()
	require.NoError(t, b.qp.Bind(0, b.region, w, b.mem[:8], nd2.OpFlagAllowRead))
	b.done(0, nd2.RequestTypeBind, nd2.Success)
	require.Equal(t, 1, t.Held()[windows])
	succeed(t, a.qp.Close, b.qp.Close)
	require.Zero(t, t.Held()[windows], "their queue pair is closed")
	require.NoError(t, w.Close())
	require.NoError(t, a.adapter.Close())
	require.NoError(t, b.adapter.Close())
	require.Zero(t, t.Held()[regions], "their adapters are closed")
}

// viHandlersOfTwo has handlers wait at a CQ while VIs come and go whose receives another CQ has.
func viHandlersOfTwo(t *conformance.T, h *viHost) {
	sends, receives, calls := h.cq(4), h.cq(4), make(chan *vipl.Vi, 4)
	waits := func() {
		require.NoError(t, sends.CQNotify(func(_ *vipl.Nic, v *vipl.Vi, _ bool) { calls <- v }))
	}
	waits()
	v := h.tied(vipl.ServiceReliableDelivery, sends, receives)
	waits()
	h.sends(v)
	require.Same(t, v, receive(t, calls, "no call"))
	require.NoError(t, second(v.SendDone()))
	require.NoError(t, v.DestroyVi())
	require.NoError(t, receives.DestroyCQ())
	require.NoError(t, sends.DestroyCQ())
}

// viEmptyQueueOfCQ has a message find no receive on a queue that is tied to a CQ, which is told of.
func viEmptyQueueOfCQ(t *conformance.T) {
	for tied := range inTurn(t, "the Receive Queue is tied: %v", []bool{true, false}) {
		h := newVIHost(t, vipl.Config{})
		q := h.cq(4)
		v := h.tied(vipl.ServiceReliableDelivery, either(tied, nil, q), either(tied, q, nil))
		p := dialVI(t, h)
		p.connects(viPeerCE(vipl.ServiceReliableDelivery, "server"), serveVI(h, v, "server"))
		p.send("for nobody")
		h.told(vipl.ErrorDescriptor{
			ViHandle: v, CQHandle: either(tied, q, nil), OpCode: vipl.StatusOpReceive,
			ResourceCode: vipl.ResourceVi, ErrorCode: vipl.ErrorRecvQEmpty,
		})
		p.over()
	}
}
