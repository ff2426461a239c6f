package cases

import (
	"bytes"
	"runtime"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// va5 is the states of a VI, and what does not go together: VI Architecture 5.
var va5 = []conformance.Case{
	apiCase("5/vi-calls-out-of-state", viOutOfState, "VA-5-M1", "PA-5.2-M1", "PA-9.3.2-M1"),
	apiCase("5.2/vi-pending-is-silent", viPendingSilent, "VA-5.2-M1", "PA-5.1-M1", "PA-5.2-M5", "PA-5.2-M6"),
	apiCase("8.1/vi-forward-together", viForwardTogether, "VA-8.1-M2"),
}

// viOutOfState calls what the state does not allow, in each state.
func viOutOfState(t *conformance.T) {
	refused := func(h *viHost, v *vipl.Vi, s vipl.ViState) {
		t.Part("%v", s)
		require.Equal(t, s, h.state(v))
		viCode(t, vipl.ErrInvalidParameter, second(v.ConnectRequest(t.Context(), nil, h.address("nobody"))), "ConnectRequest")
		viCode(t, vipl.ErrInvalidParameter, v.ConnectPeerRequest(t.Context(), nil, h.address("nobody")), "ConnectPeerRequest")
		a := h.attributes(vipl.ServiceUnreliable)
		viCode(t, vipl.ErrInvalidParameter, v.SetViAttributes(&a), "SetViAttributes")
		viCode(t, vipl.ErrResource, v.DestroyVi(), "DestroyVi")
		p, ce := dialVI(t, h), viPeerCE(vipl.ServiceReliableDelivery, "extra")
		p.asks(ce)
		c := must(h.nic.ConnectWait(t.Context(), h.address("extra")))(t)
		viCode(t, vipl.ErrInvalidParameter, c.ConnectAccept(v), "ConnectAccept")
		require.NoError(t, c.ConnectReject())
		require.Equal(t, s, h.state(v), "nothing has changed")
	}
	pending := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	refused(pending.viHost, pending.v, vipl.StateConnectPending)
	require.NoError(t, pending.answers(pending.agrees()), "and it goes on")
	refused(pending.viHost, pending.v, vipl.StateConnected)
	require.NoError(t, pending.conn.Close())
	pending.becomes(pending.v, vipl.StateError)
	refused(pending.viHost, pending.v, vipl.StateError)
	require.NoError(t, pending.v.Disconnect())
	a := pending.attributes(vipl.ServiceUnreliable)
	require.NoError(t, pending.v.SetViAttributes(&a))
	require.NoError(t, pending.v.DestroyVi())
}

// viPendingSilent posts to a VI whose ConnectRequest is not answered, and sends to it.
func viPendingSilent(t *conformance.T) {
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	require.Equal(t, vipl.StateConnectPending, r.state(r.v))
	waiting := r.recv(r.v, r.data(0, 8))
	for _, tr := range viTransfers {
		d := r.desc()
		tr.set(d, r.remote(0), r.data(0, 1))
		r.sent(r.v, r.post(r.v, d), viDone|viFlushed|tr.op)
	}
	r.notDone(r.v.RecvDone)
	require.NoError(t, r.answers(r.agrees()))
	r.sends(r.v, r.data(7, 1))
	require.Equal(t, r.mem[7:8], r.get(viSend).payload, "the first that is sent")
	r.send("now")
	r.received(r.v, waiting, viDone|viOpReceive)

	t.Part("data instead of an answer")
	r = newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	waiting = r.recv(r.v, r.data(0, 8))
	before := string(r.mem)
	early := r.message(viSegment{kind: viSend, flags: viLast, payload: []byte("too early")})
	_, _ = r.conn.Write(early.octets(false)) // the VI may hang up on the header
	require.Error(t, receive(t, r.done, "nothing came"), "ConnectRequest")
	if waiting.Done() {
		require.NotZero(t, waiting.Control.Status.Errors(), "the receive")
	}
	require.Equal(t, before, string(r.mem))
}

// viForwardTogether sends on 64 connections of a NIC while one does not get rid of its
// data.
func viForwardTogether(t *conformance.T) {
	stuck := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery,
		vi:    func(a *vipl.ViAttributes) { a.MaxTransferSize = 1 << 25 },
		ce:    func(c *viCE) { c.mtu = 1 << 25 },
	})
	h := stuck.viHost
	mem := make([]byte, 1<<25) // more than TCP takes off
	handle := h.register(mem, vipl.MemAttributes{Ptag: h.ptag})
	h.sends(stuck.v, vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: 1 << 25})
	stuck.next()
	type end struct {
		*viPeer
		v *vipl.Vi
	}
	var ends []end
	for range 64 {
		e := end{dialVI(t, h), h.vi(vipl.ServiceReliableDelivery)}
		done := serveVI(h, e.v, "server")
		ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
		e.connects(ce, done)
		ends = append(ends, e)
	}
	for range 5 {
		for i, e := range ends {
			d := h.recv(e.v, h.data(8*i, 8))
			s := h.sends(e.v, h.data(8*i, 8))
			e.get(viSend)
			e.send("forward!")
			h.received(e.v, d, viDone|viOpReceive)
			h.sent(e.v, s, viDone)
		}
	}
	h.notDone(stuck.v.SendDone)
}

// va6 is how Descriptors are posted and completed: VI Architecture 6.
var va6 = []conformance.Case{
	apiCase("6.1/vi-descriptor-memory", onVI(vipl.ServiceUnreliable, viDescriptorMemory), "VA-6.1-M2", "VA-6.1-M3", "VA-9.5.3-M1"),
	apiCase("6.1.1.1/vi-252-segments", vi252Segments, "VA-6.1.1.1-M1", "VA-10.4-M1"),
	apiCase("6.4/vi-completes", eachLevel(viCompletes),
		"VA-6.4-M1", "VA-6.4.1-M1", "PA-2.3.2-M1", "PA-2.3.2-M2", "PA-10.2-M5", "PA-10.2-M14", "PA-10.2-M15"),
	apiCase("6.4.1/vi-status-last", onVI(vipl.ServiceUnreliable, viStatusLast), "VA-6.4.1-M2"),
	strict(apiCase("6.4.2/vi-sleepers-woken", viSleepersWoken, "VA-6.4.2-S1", "VA-6-S1")),
	strict(apiCase("7/vi-asynchronous-errors", onVI(vipl.ServiceReliableDelivery, viAsynchronousErrors), "VA-7-S1")),
	apiCase("9.5.3/vi-read-only-pages", viReadOnlyPages, "VA-9.5.3-S1"),
	apiCase("9.5.1/vi-tags-match", eachLevel(viTagsMatch), "VA-9.5.1-M1", "PA-3.2.2.1-M1", "PA-10.2-M6"),
}

// viDescriptorMemory posts Descriptors that are not where their handle says.
func viDescriptorMemory(t *conformance.T, r *viRig) {
	stray := make([]vipl.Descriptor, 3)
	inside := must(r.nic.RegisterDescriptors(stray[1:2], r.ptag))(t)
	gone := must(r.nic.RegisterDescriptors(stray[2:], r.ptag))(t)
	require.NoError(t, r.nic.DeregisterMem(vipl.AddressOf(stray[2:]), gone))
	for c := range inTurn(t, "%s", []struct {
		name   string
		d      *vipl.Descriptor
		handle vipl.MemHandle
	}{
		{"never registered", new(vipl.Descriptor), r.dh},
		{"no handle", r.desc(), 0},
		{"the handle of another region", r.desc(), inside},
		{"the handle of data", r.desc(), r.handle},
		{"in front of the region", &stray[0], inside},
		{"behind the region", &stray[2], inside},
		{"deregistered", &stray[2], gone},
		{"no Descriptor", nil, r.dh},
	}) {
		if c.d != nil {
			c.d.SetSend(r.data(0, 1))
		}
		viCode(t, vipl.ErrInvalidParameter, r.v.PostSend(c.d, c.handle), "PostSend")
		viCode(t, vipl.ErrInvalidParameter, r.v.PostRecv(c.d, c.handle), "PostRecv")
	}
	r.notDone(r.v.SendDone)
	stray[1].SetSend(r.data(2, 2))
	require.NoError(t, r.v.PostSend(&stray[1], inside))
	require.Equal(t, r.mem[2:4], r.get(viSend).payload, "the first that is sent")
}

// vi252Segments uses 252 data segments and 253, in each kind of Descriptor.
func vi252Segments(t *conformance.T) {
	p := newVIPair(t, vipl.ServiceReliableReception)
	list := func(h *viHost, n int) (l []vipl.DataSegment) {
		for i := range n {
			l = append(l, h.data((n-1-i)*3, 1)) // backwards, with gaps
		}
		return l
	}
	to := p.b.recv(p.vb, list(p.b, 252)...)
	from := p.a.sends(p.va, list(p.a, 252)...)
	p.b.received(p.vb, to, viDone|viOpReceive)
	p.a.sent(p.va, from, viDone)
	require.Equal(t, uint32(252), to.Control.Length)
	for i := range 252 {
		require.Equal(t, p.a.mem[i*3], p.b.mem[i*3], "octet %d", i)
	}
	p.a.sent(p.va, p.a.writes(p.va, p.b.remote(5000), list(p.a, 252)...), viDone|viOpWrite)
	for i := range 252 {
		require.Equal(t, p.a.mem[(251-i)*3], p.b.mem[5000+i], "octet %d", i)
	}
	clear(p.a.mem)
	p.a.sent(p.va, p.a.reads(p.va, p.b.remote(5000), list(p.a, 252)...), viDone|viOpRead)
	for i := range 252 {
		require.Equal(t, p.b.mem[5000+i], p.a.mem[(251-i)*3], "octet %d", i)
	}
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable})
	for _, tr := range viTransfers[:2] {
		d := r.desc()
		tr.set(d, r.remote(0), list(r.viHost, 253)...)
		r.sent(r.v, r.post(r.v, d), viDone|viFormat|tr.op)
	}
}

// viCompletes carries out each kind of transfer at each level, and looks at what is
// written into the Descriptors.
func viCompletes(t *conformance.T, l viLevel) {
	p := newVIPair(t, l.level)
	for _, n := range []int{0, 1, 30000} {
		for _, immediate := range []bool{false, true} {
			for _, tr := range viTransfers {
				if tr.op == viOpRead && l.level == vipl.ServiceUnreliable {
					continue
				}
				d := p.a.desc()
				tr.set(d, p.b.remote(30000), p.a.data(0, n))
				var want uint32
				if immediate {
					d.SetImmediate(0x1234)
					want = viHasImmediate
				}
				to := p.b.recv(p.vb, p.b.data(0, 30000))
				to.Control.ImmediateData = 1
				p.a.sent(p.va, p.a.post(p.va, d), viDone|tr.op)
				require.Equal(t, uint32(n), d.Control.Length, "%s of %d octets", tr.name, n)
				length := uint32(n)
				switch {
				case tr.op == 0:
					want |= viOpReceive
				case tr.op == viOpWrite && immediate:
					want |= viOpRemoteWrite
					length = 0
				default: // nothing is told there: use the receive up
					last := p.a.sends(p.va)
					p.a.sent(p.va, last, viDone)
					want, length = viOpReceive, 0
				}
				p.b.received(p.vb, to, viDone|want)
				require.Equal(t, length, to.Control.Length, "%s of %d octets, received", tr.name, n)
				if want&viHasImmediate != 0 {
					require.Equal(t, uint32(0x1234), to.Control.ImmediateData)
				}
			}
		}
	}
}

// viStatusLast polls a Descriptor while it completes: with the Done bit all the rest is
// there. The next message comes after that, so that each is looked at as it completes.
func viStatusLast(t *conformance.T, r *viRig) {
	for i := range 200 {
		d := r.recv(r.v, r.data(0, 8))
		s := r.message(viSegment{kind: viSend, flags: viLast | viImmediate, immediate: uint32(i), payload: make([]byte, i%7+1)})
		r.put(s)
		for !d.Done() {
			if t.Context().Err() != nil {
				t.Fatalf("receive %d does not complete", i)
			}
		}
		c := d.Control
		require.Equal(t, vipl.Status(viDone|viOpReceive|viHasImmediate), c.Status)
		require.Equal(t, uint32(i%7+1), c.Length)
		require.Equal(t, uint32(i), c.ImmediateData)
		require.NotZero(t, c.Control&vipl.ControlImmediate)
		require.NoError(t, second(r.v.RecvWait(t.Context())))
	}
}

// viSleepersWoken waits on both queues and on a CQ before something completes.
func viSleepersWoken(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, receives: 1})
	q := r.cq(1)
	tied := r.tied(vipl.ServiceUnreliable, q, nil)
	woken := make(chan error, 2)
	go func() {
		d, err := r.v.RecvWait(t.Context())
		if err == nil && d != r.receives[0] {
			err = vipl.ErrNotDone
		}
		woken <- err
	}()
	go func() {
		_, _, err := q.CQWait(t.Context())
		woken <- err
	}()
	r.send("x")
	require.NoError(t, receive(t, woken, "nothing came"))
	r.sends(tied)
	require.NoError(t, receive(t, woken, "nothing came"))
}

// viAsynchronousErrors breaks a connection by what no Descriptor tells.
func viAsynchronousErrors(t *conformance.T, r *viRig) {
	r.rdmaWrite(viRDMA{address: 1, handle: 1}, "x")
	r.reported(r.v, vipl.ErrorRdmaWProt, viOpRemoteWrite)
}

// viReadOnlyPages has a receive and an RDMA Write go to a constant of this program, which is
// in pages that can only be read.
func viReadOnlyPages(t *conformance.T) {
	const text = "what cannot be written to"
	mem := unsafe.Slice(unsafe.StringData(text), len(text))
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable})
	handle, err := r.nic.RegisterMem(mem, &vipl.MemAttributes{Ptag: r.ptag, EnableRdmaWrite: true})
	if err == nil && runtime.GOOS != "linux" { // only Linux tells
		r.rdmaWrite(viRDMA{address: uint64(vipl.AddressOf(mem)), handle: uint32(handle)}, "written")
	} else {
		viCode(t, vipl.ErrInvalidParameter, err, "RegisterMem with RDMA Writes")
	}
	handle = r.register(mem, vipl.MemAttributes{Ptag: r.ptag})
	data := vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: uint32(len(mem))}
	d := r.recv(r.v, data)
	r.takes("written", d, viDone|viProtection|viOpReceive)
	r.sends(r.v, data)
	require.Equal(t, text, string(r.get(viSend).payload), "it can be sent")
}

// viTagsMatch uses buffers and Descriptors of another protection tag than the VI's.
func viTagsMatch(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level})
	tag := r.newPtag()
	mem, descs := make([]byte, 16), make([]vipl.Descriptor, 1)
	handle := r.register(mem, vipl.MemAttributes{Ptag: tag, EnableRdmaWrite: true, EnableRdmaRead: true})
	data := vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: 16}
	if l.level == vipl.ServiceUnreliable {
		dh := must(r.nic.RegisterDescriptors(descs, tag))(t)
		descs[0].SetSend()
		viCode(t, vipl.ErrInvalidParameter, r.v.PostSend(&descs[0], dh), "a Descriptor of another tag")
		require.NoError(t, r.nic.SetMemAttributes(vipl.AddressOf(descs), dh, &vipl.MemAttributes{Ptag: r.ptag}))
		require.NoError(t, r.v.PostSend(&descs[0], dh), "of the same")
		r.get(viSend)
		r.sent(r.v, &descs[0], viDone)
		r.rdmaWrite(viRDMA{address: uint64(data.Data), handle: uint32(handle)}, "other tag")
	}
	d := r.recv(r.v, data)
	r.takes("other tag", d, viDone|viProtection|viOpReceive)
	require.Equal(t, make([]byte, 16), mem)
	if l.level == vipl.ServiceUnreliable {
		r.sent(r.v, r.sends(r.v, data), viDone|viProtection)
		require.NoError(t, r.nic.SetMemAttributes(data.Data, handle, &vipl.MemAttributes{Ptag: r.ptag}))
		d := r.recv(r.v, data)
		r.takes("same tag", d, viDone|viOpReceive)
		require.True(t, bytes.HasPrefix(mem, []byte("same tag")))
	}
}
