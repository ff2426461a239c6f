package cases

import (
	"context"
	"errors"
	"net/netip"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
)

// failsND are limits of NetworkDirect's objects, and what is refused in which state: nothing changes then, and what was
// refused can be done right.
var failsND = []conformance.Case{
	apiCase("Send/nd-limits", ndLimits, "ND-Send-M1", "ND-Receive-M7"),
	apiCase("Send/nd-no-resources", ndNoResources, "RV-9.2.5.1-M1"),
	apiCase("Bind/nd-others-objects", ndOthersObjects, "ND-Bind-M4", "ND-Invalidate-M3"),
	apiCase("Read/nd-sinks", ndSinks, "ND-Read-M2", "ND-Read-M1"),
	apiCase("Bind/nd-register", ndRegister, "ND-Bind-M4"),
	apiCase("Bind/nd-queue-pair-goes", ndQueuePairGoes, "ND-Bind-M2"),
	apiCase("Receive/nd-srq-modify", ndSRQModify, "ND-Receive-R3", "ND-Receive-R4", "RV-6.3.2-M3"),
	apiCase("Receive/nd-resize", ndResize, "RV-5.3.3-M4"),
	apiCase("Read/nd-resize-parts", ndResizeParts, "ND-Read-M1"),
	apiCase("Send/nd-adapter-closed", ndAdapterClosed, "ND-Send-R2"),
}

// ndEnds closes objects.
func ndEnds(t *conformance.T, list ...interface{ Close() error }) {
	for _, o := range list {
		require.NoError(t, o.Close(), "closing a %T", o)
	}
}

// ndLimits makes objects at each limit, and refuses those beyond: the status says which parameter it was.
func ndLimits(t *conformance.T) {
	h := newNDHost(t, ndShape{})
	srq := must(h.adapter.CreateSharedReceiveQueue(65536, 32, 65536))(t, "as large as may be")
	for s, qs := range map[nd2.Status][]func() error{
		nd2.ErrInvalidParameter3: {
			func() error { return second(h.adapter.CreateCompletionQueue(0)) },
			func() error { return second(h.adapter.CreateCompletionQueue(1<<21 + 1)) },
			func() error { return second(h.adapter.CreateSharedReceiveQueue(0, 1, 0)) },
			func() error { return second(h.adapter.CreateSharedReceiveQueue(65537, 1, 0)) },
		},
		nd2.ErrInvalidParameter4: {
			func() error { return second(h.adapter.CreateSharedReceiveQueue(1, 33, 0)) },
			func() error { return second(h.adapter.CreateSharedReceiveQueue(1, -1, 0)) },
		},
		nd2.ErrInvalidParameter5: {
			func() error { return second(h.adapter.CreateSharedReceiveQueue(8, 1, 9)) },
			func() error { return second(h.adapter.CreateSharedReceiveQueue(8, 1, -1)) },
		},
		nd2.ErrInvalidParameter: {
			func() error { return h.in.Resize(0) }, func() error { return h.in.Resize(1<<21 + 1) },
			func() error { return srq.Modify(65537, 0) }, func() error { return srq.Modify(-1, 0) }, func() error { return srq.Modify(0, -1) },
			func() error { return srq.Modify(9, 10) },
		},
	} {
		for i, call := range qs {
			require.ErrorIs(t, call(), s, "call %d", i)
		}
	}
	held := t.Held()
	most := [5]int{16384, 4096, 32, 32, 1024} // Receives, requests, entries of their lists, octets inline
	create := func(v [5]int) (*nd2.QueuePair, error) {
		return h.adapter.CreateQueuePair(h.in, h.out, h, v[0], v[1], v[2], v[3], v[4])
	}
	ofSRQ := func(v [5]int) (*nd2.QueuePair, error) {
		return h.adapter.CreateQueuePairWithSrq(h.in, h.out, srq, h, v[1], v[3], v[4])
	}
	codes := [5]nd2.Status{
		nd2.ErrInvalidParameter5, nd2.ErrInvalidParameter6, nd2.ErrInvalidParameter7, nd2.ErrInvalidParameter8, nd2.ErrInvalidParameter9,
	}
	small := [5]int{1, 1, 1, 1, 1}
	for i := range most {
		for _, bad := range []int{-1, most[i] + 1} {
			v := small
			v[i] = bad
			require.ErrorIs(t, second(create(v)), codes[i], "parameter %d is %d", i, bad)
			if i == 1 {
				require.ErrorIs(t, second(ofSRQ(v)), nd2.ErrInvalidParameter6, "with an S-RQ, parameter %d is %d", i, bad)
			} else if i > 2 {
				require.ErrorIs(t, second(ofSRQ(v)), codes[i-1], "with an S-RQ, parameter %d is %d", i, bad)
			}
		}
		v := small
		v[i] = either(i == 1, 512, most[i]) // of 4096 all parts have places, which takes its time
		ndEnds(t, must(create(v))(t, "parameter %d at its limit", i))
		v[i] = 0
		ndEnds(t, must(create(v))(t, "parameter %d is none", i))
	}
	require.Equal(t, held, t.Held(), "what is held behind the refusals")
}

// ndNoResources has an RNIC run out of what queue pairs need, by each: they leave nothing, and there can be one
// when there is some again.
func ndNoResources(t *conformance.T) {
	for name, l := range named(t, "no more %s", map[string]verbs.Limits{
		"queue pairs": {QPs: 2}, "regions": {Regions: 3}, "S-RQs": {SRQs: 1}, "windows": {Windows: 1}, "CQs": {CQs: 3},
	}) {
		p := nd2.Provider{RNIC: verbs.Config{Limits: l}}
		a := must(p.OpenAdapter(must(p.ResolveAddress(ndLoopback.Addr()))(t)))(t)
		in, out := must(a.CreateCompletionQueue(64))(t), must(a.CreateCompletionQueue(64))(t)
		pair := func() (interface{ Close() error }, error) { return a.CreateQueuePair(in, out, nil, 4, 4, 4, 4, 64) }
		queue := func() (interface{ Close() error }, error) { return a.CreateCompletionQueue(4) }
		kinds := map[string]func() (interface{ Close() error }, error){
			"queue pairs": pair, "regions": pair,
			"S-RQs":   func() (interface{ Close() error }, error) { return a.CreateSharedReceiveQueue(4, 1, 0) },
			"windows": func() (interface{ Close() error }, error) { return a.CreateMemoryWindow() },
			"CQs":     queue,
		}
		var made []interface{ Close() error }
		for {
			o, err := kinds[name]()
			if err != nil {
				require.ErrorIs(t, err, nd2.ErrInsufficientResources)
				break
			}
			require.Less(t, len(made), 8)
			made = append(made, o)
		}
		require.NotEmpty(t, made)
		held := t.Held()
		for range 3 {
			require.ErrorIs(t, second(kinds[name]()), nd2.ErrInsufficientResources)
			require.Equal(t, held, t.Held(), "nothing is left")
		}
		for range 3 { // one for another
			ndEnds(t, made[0])
			made[0] = must(kinds[name]())(t, "there is room for one again")
		}
		ndEnds(t, a)
	}
}

// ndOthersObjects uses objects of another adapter, and none at all.
func ndOthersObjects(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	foreign := must(b.adapter.CreateSharedReceiveQueue(4, 1, 0))(t)
	buf := a.mem[ndOpen:][:ndOpenLen]
	unregistered := must(a.adapter.CreateMemoryRegion())(t)
	for i, w := range []struct {
		want nd2.Status
		call func() error
	}{
		{nd2.ErrInvalidParameter2, func() error { return second(a.adapter.CreateQueuePair(b.in, a.out, nil, 1, 1, 1, 1, 0)) }},
		{nd2.ErrInvalidParameter3, func() error { return second(a.adapter.CreateQueuePair(a.in, b.out, nil, 1, 1, 1, 1, 0)) }},
		{nd2.ErrInvalidParameter2, func() error { return second(a.adapter.CreateQueuePair(nil, a.out, nil, 1, 1, 1, 1, 0)) }},
		{nd2.ErrInvalidParameter3, func() error { return second(a.adapter.CreateQueuePair(a.in, nil, nil, 1, 1, 1, 1, 0)) }},
		{nd2.ErrInvalidParameter4, func() error { return second(a.adapter.CreateQueuePairWithSrq(a.in, a.out, foreign, nil, 1, 1, 0)) }},
		{nd2.ErrInvalidParameter4, func() error { return second(a.adapter.CreateQueuePairWithSrq(a.in, a.out, nil, nil, 1, 1, 0)) }},
		{nd2.ErrInvalidParameter2, func() error { return a.qp.Bind(1, b.region, a.window, buf, nd2.OpFlagAllowRead) }},
		{nd2.ErrInvalidParameter2, func() error { return a.qp.Bind(1, nil, a.window, buf, nd2.OpFlagAllowRead) }},
		{nd2.ErrInvalidParameter2, func() error { return a.qp.Bind(1, unregistered, a.window, buf, nd2.OpFlagAllowRead) }},
		{nd2.ErrInvalidParameter3, func() error { return a.qp.Bind(1, a.region, b.window, buf, nd2.OpFlagAllowRead) }},
		{nd2.ErrInvalidParameter3, func() error { return a.qp.Bind(1, a.region, nil, buf, nd2.OpFlagAllowRead) }},
		{nd2.ErrInvalidParameter6, func() error { return a.qp.Bind(1, a.region, a.window, buf, 0) }},
		{nd2.ErrInvalidParameter6, func() error { return a.qp.Bind(1, a.region, a.window, buf, nd2.OpFlagAllowRead|nd2.OpFlagInline) }},
		{nd2.ErrAccessViolation, func() error { return a.qp.Bind(1, a.region, a.window, buf[:0], nd2.OpFlagAllowRead) }},
		{nd2.ErrAccessViolation, func() error { return a.qp.Bind(1, a.region, a.window, b.mem[:8], nd2.OpFlagAllowRead) }},
		{nd2.ErrInvalidParameter2, func() error { return a.qp.Invalidate(1, b.window, 0) }},
		{nd2.ErrInvalidParameter2, func() error { return a.qp.Invalidate(1, nil, 0) }},
		{nd2.ErrInvalidParameter3, func() error { return a.qp.Invalidate(1, a.window, nd2.OpFlagInline) }},
		{nd2.ErrInvalidDeviceRequest, func() error { return a.qp.Invalidate(1, a.window, 0) }},
		{nd2.ErrInvalidParameter6, func() error { return a.qp.Read(1, a.list(0, 8), b.at(0), b.region.GetRemoteToken(), nd2.OpFlagInline) }},
	} {
		assert.ErrorIs(t, w.call(), w.want, "call %d", i)
	}
	ndWorks(a, b)
}

// ndSinks reads into regions that are sinks, and into one that is not, as the first and as the second entry; entries of
// no octets are none.
func ndSinks(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	mem := make([]byte, 64)
	entry := func(r *nd2.MemoryRegion, buf []byte) nd2.SGE {
		return nd2.SGE{Buffer: buf, MemoryRegionToken: r.GetLocalToken()}
	}
	regions := map[nd2.MRFlags]*nd2.MemoryRegion{}
	for _, f := range []nd2.MRFlags{0, nd2.MRFlagAllowLocalWrite, nd2.MRFlagAllowRemoteRead, nd2.MRFlagRDMAReadSink, nd2.MRFlagAllowRemoteWrite} {
		regions[f] = a.register(mem, f)
	}
	token := b.region.GetRemoteToken()
	for f, r := range regions {
		sink := f == nd2.MRFlagRDMAReadSink || f == nd2.MRFlagAllowRemoteWrite
		for at := range 2 {
			list := []nd2.SGE{entry(regions[nd2.MRFlagRDMAReadSink], mem[:8]), entry(regions[nd2.MRFlagRDMAReadSink], mem[8:16])}
			list[at] = entry(r, list[at].Buffer)
			err := a.qp.Read(1, list, b.at(100), token, 0)
			if !sink {
				require.ErrorIs(t, err, nd2.ErrAccessViolation, "flags %#x, entry %d", f, at)
				continue
			}
			require.NoError(t, err, "flags %#x, entry %d", f, at)
			a.done(1, nd2.RequestTypeRead, nd2.Success)
			require.Equal(t, b.mem[100:116], mem[:16])
		}
	}
	none := entry(regions[0], mem[:0])
	clear(mem)
	require.NoError(t, a.qp.Read(2, []nd2.SGE{none, entry(regions[nd2.MRFlagRDMAReadSink], mem[:4]), none, entry(regions[nd2.MRFlagRDMAReadSink], mem[8:12])}, b.at(50), token, 0))
	a.done(2, nd2.RequestTypeRead, nd2.Success)
	require.Equal(t, slicesOf(b.mem[50:54], make([]byte, 4), b.mem[54:58]), mem[:12])
	require.NoError(t, a.qp.Read(3, []nd2.SGE{none, none}, b.at(50), token, 0))
	a.done(3, nd2.RequestTypeRead, nd2.Success)
	require.NoError(t, a.qp.Read(4, nil, b.at(50), token, nd2.OpFlagReadFence))
	a.done(4, nd2.RequestTypeRead, nd2.Success)
	ndWorks(a, b)
}

// ndRegister registers memory twice, and takes it away twice: a region has a token while it has memory.
func ndRegister(t *conformance.T) {
	h := newNDHost(t, ndShape{})
	r := must(h.adapter.CreateMemoryRegion())(t)
	require.NoError(t, r.Close(), "nothing is registered")
	require.ErrorIs(t, r.Deregister(), nd2.ErrInvalidDeviceState)
	require.Zero(t, r.GetLocalToken())
	require.ErrorIs(t, r.Register(nil, 0), nd2.ErrAccessViolation)
	require.ErrorIs(t, r.Register(h.mem, 1<<30), nd2.ErrInvalidParameter)
	for range 2 {
		require.NoError(t, r.Register(h.mem[:8], 0))
		require.NotZero(t, r.GetLocalToken())
		require.ErrorIs(t, r.Register(h.mem[:8], 0), nd2.ErrInvalidDeviceState)
		require.NoError(t, r.Deregister())
		require.Zero(t, r.GetLocalToken())
		require.ErrorIs(t, r.Deregister(), nd2.ErrInvalidDeviceState)
	}
	require.NoError(t, r.Register(h.mem[:8], 0))
	require.NoError(t, r.Close())
	w := h.newWindow()
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Close(), nd2.ErrInvalidHandle)
}

// ndQueuePairGoes ends the connection, or the queue pair, that has a window bound: the window is for others then, and its
// region is free, while its former token is of no use.
func ndQueuePairGoes(t *conformance.T) {
	for end, gone := range named(t, "the %s ends", map[string]bool{"connection": false, "queue pair": true}) {
		a, b := newNDPair(t, ndShape{})
		more, c := b.pair(b, ndShape{depth: 8, sge: 4, inline: 128}), b.connector()
		third := newNDHost(t, ndShape{})
		connectND(third, b, more, c)
		for _, w := range []*nd2.MemoryWindow{b.window, b.newWindow()} { // the second of two, too
			require.NoError(t, b.qp.Bind(1, b.region, w, b.mem[ndOpen:][:ndOpenLen], nd2.OpFlagAllowRead))
			b.done(1, nd2.RequestTypeBind, nd2.Success)
			require.ErrorIs(t, more.Bind(2, b.region, w, b.mem[ndOpen:][:ndOpenLen], nd2.OpFlagAllowRead), nd2.ErrInvalidDeviceState, "it is bound elsewhere")
		}
		former := b.window.GetRemoteToken()
		require.ErrorIs(t, b.region.Deregister(), nd2.ErrDeviceBusy, "windows are bound to it")
		if require.NoError(t, a.conn.Disconnect(t.Context())); gone {
			require.NoError(t, b.qp.Close())
		} else {
			b.over()
		}
		require.NoError(t, more.Bind(3, b.region, b.window, b.mem[ndOpen:][:ndOpenLen], nd2.OpFlagAllowRead), end)
		b.done(3, nd2.RequestTypeBind, nd2.Success)
		require.NoError(t, third.qp.Read(4, third.list(0, 8), b.at(ndOpen), b.window.GetRemoteToken(), 0))
		third.done(4, nd2.RequestTypeRead, nd2.Success)
		require.NoError(t, third.qp.Read(5, third.list(0, 8), b.at(ndOpen), former, 0))
		third.done(5, nd2.RequestTypeRead, nd2.ErrRemoteError)
		require.NoError(t, c.NotifyDisconnect(t.Context()))
		ndEnds(t, more, b.window)
		if gone {
			require.NoError(t, b.region.Deregister(), "no window is bound")
		}
	}
}

// ndSRQModify changes depth and threshold of a shared receive queue with Receives on it: none is lost, each has its
// context, and there are as many as there may be.
func ndSRQModify(t *conformance.T) {
	h, peer := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
	s := must(h.adapter.CreateSharedReceiveQueue(4, 2, 0))(t)
	qp := must(h.adapter.CreateQueuePairWithSrq(h.in, h.out, s, h, 4, 1, 0))(t)
	require.ErrorIs(t, s.Notify(t.Context()), nd2.ErrInvalidDeviceState, "there is no threshold")
	next, taken := 0, 0
	fills := func(most int) {
		for ; next-taken < most; next++ {
			require.NoError(t, s.Receive(next, h.list(0, 8)), "Receive %d of %d", next-taken+1, most)
		}
		require.ErrorIs(t, s.Receive("too many", h.list(0, 8)), nd2.ErrNoMoreEntries)
	}
	connectND(peer, h, qp, h.conn)
	takes := func(n int) {
		for range n {
			require.NoError(t, peer.qp.Send("m", peer.list(0, taken%8), 0))
			peer.done("m", nd2.RequestTypeSend, nd2.Success)
			h.received(taken, taken%8)
			taken++
		}
	}
	fills(4)
	require.ErrorIs(t, s.Receive(0, []nd2.SGE{{}, {}, {}}), nd2.ErrDataOverrun)
	require.ErrorIs(t, s.Modify(3, 0), nd2.ErrBufferOverflow, "four are outstanding")
	require.ErrorIs(t, s.Modify(4, 5), nd2.ErrInvalidParameter)
	takes(3)
	fills(4)
	require.NoError(t, s.Modify(9, 2))
	fills(9)
	takes(6)
	require.NoError(t, s.Modify(3, 1))
	fills(3)
	require.NoError(t, s.Modify(12, 0))
	fills(12)
	over, stop := context.WithCancel(t.Context())
	stop()
	takes(11)
	require.ErrorIs(t, s.Notify(over), nd2.ErrCanceled, "one Receive is left, which is no fewer than the threshold")
	waits := make(chan error, 1)
	go func() { waits <- s.Notify(t.Context()) }()
	takes(1)
	require.NoError(t, receive(t, waits, "Notify waits on, with no Receive left"))
	require.NoError(t, s.Notify(over), "there is no need to wait")
	require.ErrorIs(t, s.Close(), nd2.ErrDeviceBusy, "a queue pair uses it")
	ndEnds(t, qp, s)
	require.ErrorIs(t, s.Receive(0, nil), nd2.ErrInvalidHandle)
	require.ErrorIs(t, s.Notify(t.Context()), nd2.ErrCanceled)
	require.ErrorIs(t, s.Modify(4, 0), nd2.ErrInvalidHandle)
	require.ErrorIs(t, s.Close(), nd2.ErrInvalidHandle)
}

// ndResize makes a completion queue smaller than the results in it, which is refused, and as small as they are.
func ndResize(t *conformance.T) {
	h := newNDHost(t, ndShape{})
	for i := range 4 {
		h.receive(i, 0, 8)
	}
	require.NoError(t, h.qp.Flush())
	require.ErrorIs(t, h.in.Resize(3), nd2.ErrBufferOverflow)
	require.NoError(t, h.in.Resize(4))
	for i := range 4 {
		h.done(i, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	require.NoError(t, h.in.Resize(1))
	h.receive(5, 0, 8)
	require.NoError(t, h.qp.Flush())
	h.done(5, nd2.RequestTypeReceive, nd2.ErrCanceled)
	require.NoError(t, h.qp.Close())
	require.NoError(t, h.in.Close())
	require.ErrorIs(t, h.in.Close(), nd2.ErrInvalidHandle)
	require.Error(t, h.in.Resize(4))
	require.ErrorIs(t, second(h.in.Wait(t.Context(), make([]nd2.Result, 1))), nd2.ErrCanceled)
}

// ndResizeParts changes the size of a completion queue whose queue pair has a part before each fenced Read: what all of their parts
// need stays beside the results, and each Read has one when all are flushed.
func ndResizeParts(t *conformance.T) {
	const depth = 8
	r := newNDRig(t, ndShape{depth: depth, sge: 4})
	require.NoError(t, r.out.Resize(depth+1))
	for i := range depth {
		require.NoError(t, r.qp.Read(i, r.list(0, 4), ndPeerMemory.at, ndPeerMemory.token, nd2.OpFlagReadFence))
	}
	require.NoError(t, r.qp.Flush())
	for i := range depth {
		r.done(i, nd2.RequestTypeRead, nd2.ErrCanceled)
	}
	r.none()
	require.NoError(t, r.out.Resize(2*depth))
}

// ndAdapterClosed closes an adapter while others wait in its objects: they are told, and nothing else is to be had.
func ndAdapterClosed(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	l := must(a.adapter.CreateListener())(t)
	require.NoError(t, l.Bind(ndLoopback))
	require.NoError(t, l.Listen(0))
	s := must(a.adapter.CreateSharedReceiveQueue(4, 1, 2))(t)
	require.NoError(t, s.Receive(1, nil))
	require.NoError(t, s.Receive(2, nil))
	c := a.connector()
	waits := map[string]chan error{}
	for what, wait := range map[string]func(context.Context) error{
		"a result":     func(ctx context.Context) error { return second(a.in.Wait(ctx, make([]nd2.Result, 1))) },
		"a Notify":     func(ctx context.Context) error { return a.out.Notify(ctx, nd2.CQNotifyAny) },
		"an S-RQ":      s.Notify,
		"a request":    func(ctx context.Context) error { return l.GetConnectionRequest(ctx, c) },
		"a disconnect": a.conn.NotifyDisconnect,
	} {
		asleep, ended := &ndAsleep{Context: t.Context(), armed: make(chan struct{})}, make(chan error, 1)
		waits[what] = ended
		go func() { ended <- wait(asleep) }()
		receive(t, asleep.armed, "nobody waits for %s", what)
	}
	require.NoError(t, a.adapter.Close())
	for what, ended := range waits {
		err := receive(t, ended, "who waits for %s is not told", what)
		if what == "a disconnect" {
			require.NoError(t, err, what)
			continue
		}
		require.True(t, errors.Is(err, nd2.ErrCanceled) || errors.Is(err, nd2.ErrDeviceRemoved), "%s: %v", what, err)
	}
	for i, call := range []func() error{
		func() error { return second(a.adapter.CreateCompletionQueue(4)) },
		func() error { return second(a.adapter.CreateSharedReceiveQueue(4, 1, 0)) },
		func() error { return second(a.adapter.CreateQueuePair(a.in, a.out, nil, 1, 1, 1, 1, 0)) },
		func() error { return second(a.adapter.CreateListener()) },
		func() error { return second(a.adapter.CreateMemoryWindow()) },
		func() error { return must(a.adapter.CreateMemoryRegion())(t).Register(a.mem, 0) },
		a.region.Deregister, a.window.Close, func() error { return s.Modify(8, 0) },
	} {
		assert.ErrorIs(t, call(), nd2.ErrDeviceRemoved, "call %d", i)
	}
	b.over()
	p := nd2.Provider{}
	require.ErrorIs(t, second(p.OpenAdapter(1)), nd2.ErrInvalidParameter)
	require.ErrorIs(t, second(p.ResolveAddress(netip.MustParseAddr("192.0.2.1"))), nd2.ErrInvalidAddress)
}
