package cases

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// va2 is the data transfer models and the reliability levels: VI Architecture 1.5.3 to 2.5.
var va2 = []conformance.Case{
	apiCase("1.5.3/vi-handle-qualifies", eachLevel(viHandleQualifies),
		"VA-1.5.3-M3", "VA-3.2.1-M1", "VA-9.5.3-M1", "VA-10.4-M3", "PA-2.5.1-M2", "PA-10.2-M6"),
	apiCase("2.3.1/vi-receive-too-small", eachLevel(viReceiveTooSmall), "VA-2.3.1-M1", "PA-2.5.1-M2", "PA-2.5.2-M2", "PA-10.2-M9"),
	apiCase("2.3.1/vi-no-receive", eachLevel(viNoReceive), "VA-2.3.1-M1", "VA-2.3.2-M3", "PA-2.5.1-M2", "PA-2.5.2-M2", "PA-9.9.1-M1"),
	apiCase("2.3.2/vi-write-gathers", viWriteGathers, "VA-2.3.2-M1"),
	apiCase("2.3.2/vi-read-scatters", viReadScatters, "VA-2.3.2-M2"),
	strict(apiCase("2.3.2/vi-limits-told", viLimitsTold, "VA-2.3.2-S1", "VA-6.1.1.2-S1", "VA-10.4-S1")),
	apiCase("2.4/vi-cq-only", onVIHost(viCQOnly),
		"VA-2.4-M1", "VA-9.3.1-M1", "VA-9.6.3-M1", "VA-9.6.6-M1", "VA-9.6.7-M2", "VA-9.6.8-M2", "VA-9.6.9-M2",
		"VA-9.6.10-M2"),
	apiCase("2.5.1/vi-posting-order", eachLevel(viPostingOrder),
		"VA-2.5.1-M2", "VA-6.3.1-M1", "PT-2.2.2.2.3-M1", "PT-3.2-M1", "PT-3.2-M3", "PT-3.2-M4", "PT-3.2-M5"),
	apiCase("2.5.1/vi-no-delay", onVI(vipl.ServiceUnreliable, viNoDelay), "VA-2.5.1-M4"),
}

// viHandleQualifies names memory by handles and addresses that do not belong together.
func viHandleQualifies(t *conformance.T, l viLevel) {
	mem := make([]byte, 64)
	for _, spoil := range named(t, "%s", map[string]func(*viRig) vipl.DataSegment{
		"no handle":           func(r *viRig) vipl.DataSegment { d := r.data(0, 8); d.Handle = 0; return d },
		"a handle of nothing": func(r *viRig) vipl.DataSegment { d := r.data(0, 8); d.Handle ^= 0x00F00000; return d },
		"that of Descriptors": func(r *viRig) vipl.DataSegment { d := r.data(0, 8); d.Handle = r.dh; return d },
		"that of another region": func(r *viRig) vipl.DataSegment {
			d := r.data(0, 8)
			d.Handle = r.register(mem, vipl.MemAttributes{Ptag: r.ptag})
			return d
		},
		"no address":              func(r *viRig) vipl.DataSegment { d := r.data(0, 8); d.Data = 0; return d },
		"memory never registered": func(r *viRig) vipl.DataSegment { d := r.data(0, 8); d.Data = vipl.AddressOf(mem); return d },
		"an octet too many":       func(r *viRig) vipl.DataSegment { return r.data(viMemory-7, 8) },
		"an octet too early":      func(r *viRig) vipl.DataSegment { return r.data(-1, 8) },
	}) {
		r := newVIRig(t, viSetup{level: l.level})
		r.sent(r.v, r.sends(r.v, spoil(r)), viDone|viProtection)
		r2 := newVIRig(t, viSetup{level: l.level})
		before := bytes.Clone(r2.mem)
		d := r2.recv(r2.v, spoil(r2))
		r2.takes("12345678", d, viDone|viProtection|viOpReceive)
		require.True(t, bytes.Equal(before, r2.mem), "the memory")
		require.Equal(t, make([]byte, 64), mem, "other memory")
		if l.level != vipl.ServiceUnreliable {
			r.over()
			continue
		}
		r.sends(r.v, r.data(0, 2))
		require.Equal(t, r.mem[:2], r.get(viSend).payload, "the first that is sent")
	}
}

// viReceiveTooSmall posts a receive of an octet less than comes.
func viReceiveTooSmall(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level})
	d, next := r.recv(r.v, r.data(0, 3), r.data(8, 4)), r.recv(r.v, r.data(16, 8))
	before := bytes.Clone(r.mem[12:])
	r.takes("12345678", d, viDone|viLength|viOpReceive)
	require.True(t, bytes.Equal(before, r.mem[12:]), "memory behind the receive")
	if l.level == vipl.ServiceUnreliable {
		r.takes("12345678", next, viDone|viOpReceive)
		return
	}
	r.received(r.v, next, viDone|viFlushed|viOpReceive)
	require.Equal(t, vipl.StateError, r.state(r.v))
}

// viNoReceive sends what needs a receive, and there is none.
func viNoReceive(t *conformance.T, l viLevel) {
	for kind := range inTurn(t, "type %d", []byte{viSend, viWrite}) {
		r := newVIRig(t, viSetup{level: l.level})
		s := viSegment{kind: kind, flags: viLast, payload: []byte("lost")}
		if kind == viWrite {
			s.flags |= viImmediate
			s.rdma = r.at(0, 4)
		}
		r.put(r.message(s))
		if l.level != vipl.ServiceUnreliable {
			r.reported(r.v, vipl.ErrorRecvQEmpty, viOpReceive)
			r.over()
			require.Equal(t, vipl.StateError, r.state(r.v))
			continue
		}
		dropped := func() bool { return r.usage().Untold == 1 }
		require.Eventually(t, dropped, patience(t), time.Millisecond, "the message is dropped")
		d := r.recv(r.v, r.data(100, 8))
		r.takes("found", d, viDone|viOpReceive)
		require.Equal(t, "found", string(r.mem[100:105]))
		require.Equal(t, vipl.StateConnected, r.state(r.v))
	}
}

// viWriteGathers writes from three places to one.
func viWriteGathers(t *conformance.T) {
	for _, l := range viLevels {
		p := newVIPair(t, l.level)
		to := p.b.mem[1000:1100]
		clear(to)
		d := p.a.writes(p.va, p.b.remote(1010), p.a.data(500, 7), p.a.data(0, 0), p.a.data(3, 20), p.a.data(500, 1))
		last := p.b.recv(p.vb)
		p.a.sends(p.va)
		p.b.received(p.vb, last, viDone|viOpReceive)
		p.a.sent(p.va, d, viDone|viOpWrite)
		want := make([]byte, 100)
		copy(want[10:], p.a.mem[500:507])
		copy(want[17:], p.a.mem[3:23])
		want[37] = p.a.mem[500]
		require.Equal(t, want, to)
		require.Equal(t, uint32(28), d.Control.Length)
	}
}

// viReadScatters reads from one place to three.
func viReadScatters(t *conformance.T) {
	for _, l := range viLevels[1:] {
		p := newVIPair(t, l.level)
		clear(p.a.mem)
		d := p.a.reads(p.va, p.b.remote(77), p.a.data(500, 7), p.a.data(9, 0), p.a.data(3, 20), p.a.data(900, 1))
		p.a.sent(p.va, d, viDone|viOpRead)
		want := make([]byte, viMemory)
		copy(want[500:], p.b.mem[77:84])
		copy(want[3:], p.b.mem[84:104])
		want[900] = p.b.mem[104]
		require.True(t, bytes.Equal(want, p.a.mem))
	}
}

// viLimitsTold asks what the NIC supports, and does it.
func viLimitsTold(t *conformance.T) {
	h := newVIHost(t, vipl.Config{MaxTransferSize: 40 << 10})
	a := must(h.nic.QueryNic())(t)
	assert.Equal(t, [3]bool{false, true, true}, a.RDMAReadSupport, "table 1, and what viReadScatters does")
	assert.Equal(t, uint32(40<<10), a.MaxTransferSize)
	assert.GreaterOrEqual(t, a.MaxSegmentsPerDesc, uint32(252))
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery})
	segments := make([]vipl.DataSegment, a.MaxSegmentsPerDesc)
	for i := range segments {
		segments[i] = r.data(i, 1)
	}
	r.sent(r.v, r.sends(r.v, segments...), viDone)
	require.Equal(t, r.mem[:len(segments)], r.get(viSend).payload, "as many segments as are told")
	r.sent(r.v, r.sends(r.v, append(segments, r.data(0, 1))...), viDone|viFormat)
	bad := h.attributes(vipl.ServiceUnreliable)
	bad.MaxTransferSize = 40<<10 + 1
	viCode(t, vipl.ErrInvalidMTU, second(h.nic.CreateVi(&bad, nil, nil)), "more than the NIC's")
	bad = h.attributes(vipl.ServiceUnreliable)
	bad.MaxTransferSize, bad.EnableRdmaRead = 1, true
	viCode(t, vipl.ErrInvalidRdmaRead, second(h.nic.CreateVi(&bad, nil, nil)), "RDMA Reads on an Unreliable VI")
}

// viCQOnly ties the queues of a VI to a CQ each, and both to one.
func viCQOnly(t *conformance.T, h *viHost) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a call that waits ends with another error
	for _, c := range []struct{ send, recv *vipl.CQ }{{h.cq(4), nil}, {nil, h.cq(4)}, {h.cq(4), h.cq(4)}} {
		v := h.tied(vipl.ServiceUnreliable, c.send, c.recv)
		_, sendWait := v.SendWait(ctx)
		_, recvWait := v.RecvWait(ctx)
		sendNotify := v.SendNotify(func(*vipl.Nic, *vipl.Vi, *vipl.Descriptor) {})
		recvNotify := v.RecvNotify(func(*vipl.Nic, *vipl.Vi, *vipl.Descriptor) {})
		if c.send != nil {
			viCode(t, vipl.ErrResource, sendWait, "SendWait")
			viCode(t, vipl.ErrResource, sendNotify, "SendNotify")
		} else {
			require.ErrorIs(t, sendWait, context.Canceled)
			require.NoError(t, sendNotify)
		}
		if c.recv != nil {
			viCode(t, vipl.ErrResource, recvWait, "RecvWait")
			viCode(t, vipl.ErrResource, recvNotify, "RecvNotify")
		} else {
			require.ErrorIs(t, recvWait, context.Canceled)
			require.NoError(t, recvNotify)
		}
		if c.send == nil {
			continue
		}
		d := h.sends(v)
		vi, isRecv, err := c.send.CQWait(t.Context())
		require.NoError(t, err)
		require.Same(t, v, vi)
		require.False(t, isRecv)
		got, err := v.SendDone()
		require.NoError(t, err)
		require.Same(t, d, got)
	}
}

// viPostingOrder posts Sends and RDMA Writes of all sizes at once.
func viPostingOrder(t *conformance.T, l viLevel) {
	r := newVIRig(t, viSetup{level: l.level, nic: vipl.Config{Segment: 300}})
	var posted []*vipl.Descriptor
	for i := range 40 {
		d := r.desc()
		d.SetSend(r.data(i, i*37))
		if i%3 == 1 {
			d.SetRdmaWrite(vipl.AddressSegment{Data: 1, Handle: 1}, r.data(i, i*37))
		}
		posted = append(posted, r.post(r.v, d))
	}
	for i := range posted {
		kind := either(i%3 == 1, viWrite, byte(viSend))
		parts, payload := r.whole(kind)
		require.Equal(t, r.subject+1+uint32(i), parts[0].number, "sequential numbers")
		require.True(t, bytes.Equal(r.mem[i:][:i*37], payload), "message %d", i)
	}
	if l.level == vipl.ServiceReliableReception {
		r.nop(viSegment{ack: r.subject + 40})
	}
	for i, d := range posted {
		op := either(i%3 == 1, viOpWrite, uint32(0))
		r.sent(r.v, d, viDone|op)
	}
}

// viNoDelay sends to a peer that says nothing at all after establishment.
func viNoDelay(t *conformance.T, r *viRig) {
	for i := range 300 {
		d := r.sends(r.v, r.data(i, 10))
		require.Equal(t, r.mem[i:][:10], r.get(viSend).payload)
		r.sent(r.v, d, viDone)
	}
}

// va3 is NICs, memory and VIs: VI Architecture 3.1 to 3.3.
var va3 = []conformance.Case{
	apiCase("3.1/vi-other-nic", viOtherNIC, "VA-3.1-M1", "VA-3.2.1-M3", "VA-3.2.2.1-M2"),
	apiCase("3.1/vi-close-ends-all", viCloseEndsAll, "VA-3.1-M3", "VA-11.3.18-M1"),
	apiCase("3.2.1/vi-deregister", onVI(vipl.ServiceUnreliable, viDeregister), "VA-3.2.1-M2"),
	apiCase("3.2.1/vi-register-atomic", onVIHost(viRegisterAtomic), "VA-3.2.1-M4"),
	apiCase("3.2.2.1/vi-tags-unique", onVIHost(viTagsUnique), "VA-3.2.2.1-M1", "VA-11.3.9-M1"),
	apiCase("3.2.2.1/vi-tag-for-each", onVIHost(viTagForEach), "VA-3.2.2.1-M3", "VA-8.1-S2"),
	apiCase("11.3.9/vi-tag-in-use", onVIHost(viTagInUse), "VA-11.3.9-M2", "VA-11.3.10-S1", "PA-9.5.2-M1"),
	apiCase("3.3/vi-no-room", onVIHost(viNoRoom), "VA-3.3-M1"),
	apiCase("3.3/vi-destroy-with-descriptors", onVIHost(viDestroyInUse), "VA-3.3-M2", "VA-5.1-M1", "PA-5.1-M3", "PA-9.3.2-M1"),
}

// viOtherNIC uses CQs, tags, handles and VIs of one NIC on another.
func viOtherNIC(t *conformance.T) {
	h, other := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	a := h.attributes(vipl.ServiceUnreliable)
	for _, q := range [][2]*vipl.CQ{{other.cq(1), nil}, {nil, other.cq(1)}, {h.cq(1), other.cq(1)}} {
		viCode(t, vipl.ErrInvalidParameter, second(h.nic.CreateVi(&a, q[0], q[1])), "CreateVi with a CQ of another NIC")
	}
	tag := other.newPtag() // the other NIC's second
	a.Ptag = tag
	_, err := h.nic.CreateVi(&a, nil, nil)
	viCode(t, vipl.ErrInvalidPtag, err, "CreateVi with a tag of another NIC")
	_, err = h.nic.RegisterMem(make([]byte, 1), &vipl.MemAttributes{Ptag: tag})
	viCode(t, vipl.ErrInvalidPtag, err, "RegisterMem with a tag of another NIC")
	_, err = h.nic.RegisterDescriptors(make([]vipl.Descriptor, 1), tag)
	viCode(t, vipl.ErrInvalidPtag, err, "RegisterDescriptors with a tag of another NIC")
	require.Equal(t, 0, h.usage().Vis)

	p := newVIPair(t, vipl.ServiceUnreliable)
	foreign := other.data(0, 8)
	p.a.sent(p.va, p.a.sends(p.va, foreign), viDone|viProtection)
	d := other.desc()
	d.SetSend()
	viCode(t, vipl.ErrInvalidParameter, p.va.PostSend(d, other.dh), "a Descriptor in memory of another NIC")
	_, err = h.nic.QueryMem(vipl.AddressOf(other.mem), other.handle)
	viCode(t, vipl.ErrInvalidParameter, err, "QueryMem")
	viCode(t, vipl.ErrInvalidParameter, h.nic.DeregisterMem(vipl.AddressOf(other.mem), other.handle), "DeregisterMem")
}

// viCloseEndsAll closes a NIC on which there is something of everything.
func viCloseEndsAll(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, receives: 2})
	idle, q := r.vi(vipl.ServiceUnreliable), r.cq(4)
	waiting := r.recv(idle, r.data(0, 1))
	u := r.usage()
	require.Equal(t, []int{2, 1, 1, 2}, []int{u.Vis, u.CQs, u.Ptags, u.Regions}, "VIs, CQs, tags, regions")
	require.Equal(t, map[vipl.ViState]int{vipl.StateIdle: 1, vipl.StateConnected: 1}, u.States)
	before := bytes.Clone(r.mem)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = r.conn.Read(make([]byte, 1))
		_ = r.conn.Close()
	}()
	require.NoError(t, r.nic.CloseNic())
	<-over
	for _, d := range append(slices.Clone(r.receives), waiting) {
		require.True(t, d.Done())
		assert.Equal(t, vipl.Status(viDone|viFlushed|viOpReceive), d.Control.Status)
	}
	require.Equal(t, before, r.mem)
	_, _, err := r.v.QueryVi()
	viCode(t, vipl.ErrInvalidParameter, err, "QueryVi")
	viCode(t, vipl.ErrInvalidParameter, idle.PostSend(r.desc(), r.dh), "PostSend")
	_, _, err = q.CQDone()
	viCode(t, vipl.ErrInvalidParameter, err, "CQDone")
	_, err = r.nic.QueryMem(vipl.AddressOf(r.mem), r.handle)
	viCode(t, vipl.ErrInvalidParameter, err, "QueryMem")
	viCode(t, vipl.ErrInvalidParameter, r.nic.DestroyPtag(r.ptag), "DestroyPtag")
	_, err = r.nic.CreatePtag()
	viCode(t, vipl.ErrInvalidParameter, err, "CreatePtag")
	viCode(t, vipl.ErrInvalidParameter, r.nic.CloseNic(), "CloseNic again")
}

// viDeregister takes memory away from posted Descriptors.
func viDeregister(t *conformance.T, r *viRig) {
	mem := []byte("untouched")
	handle := r.register(mem, vipl.MemAttributes{Ptag: r.ptag, EnableRdmaWrite: true})
	data := vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: 9}
	first, second := r.recv(r.v, data), r.recv(r.v, data)
	r.takes("before", first, viDone|viOpReceive)
	require.Equal(t, "beforehed", string(mem), "what is registered is in use, whatever the program has in mind")
	require.NoError(t, r.nic.DeregisterMem(vipl.AddressOf(mem), handle))
	r.takes("behind", second, viDone|viProtection|viOpReceive)
	r.rdmaWrite(viRDMA{address: uint64(vipl.AddressOf(mem)), handle: uint32(handle)}, "behind")
	r.sent(r.v, r.sends(r.v, data), viDone|viProtection)
	d := r.recv(r.v)
	r.takes("", d, viDone|viOpReceive)
	require.Equal(t, "beforehed", string(mem))
	viCode(t, vipl.ErrInvalidParameter, r.nic.DeregisterMem(vipl.AddressOf(mem), handle), "once more")
}

// viRegisterAtomic fails to register in every way.
func viRegisterAtomic(t *conformance.T, h *viHost) {
	tag := h.newPtag()
	mem, descs := make([]byte, 8), make([]vipl.Descriptor, 1)
	regions := h.usage().Regions
	for name, call := range map[string]func() error{
		"no memory":       func() error { _, err := h.nic.RegisterMem(nil, &vipl.MemAttributes{Ptag: tag}); return err },
		"no attributes":   func() error { _, err := h.nic.RegisterMem(mem, nil); return err },
		"no tag":          func() error { _, err := h.nic.RegisterMem(mem, &vipl.MemAttributes{}); return err },
		"unknown tag":     func() error { _, err := h.nic.RegisterMem(mem, &vipl.MemAttributes{Ptag: tag + 1}); return err },
		"no Descriptors":  func() error { _, err := h.nic.RegisterDescriptors(nil, tag); return err },
		"for unknown tag": func() error { _, err := h.nic.RegisterDescriptors(descs, tag+1); return err },
	} {
		require.Error(t, call(), name)
		require.Equal(t, regions, h.usage().Regions, name)
	}
	a := must(h.nic.QueryNic())(t)
	h.register(mem, vipl.MemAttributes{Ptag: h.ptag})
	for range int(a.MaxRegisterRegions) - regions - 1 { // Descriptors, whose pages nobody looks at, cost a tenth
		require.NoError(t, second(h.nic.RegisterDescriptors(descs, h.ptag)))
	}
	viCode(t, vipl.ErrResource, second(h.nic.RegisterMem(mem, &vipl.MemAttributes{Ptag: tag})), "one region too many")
	viCode(t, vipl.ErrResource, second(h.nic.RegisterDescriptors(descs, tag)), "one region too many")
	require.Equal(t, int(a.MaxRegisterRegions), h.usage().Regions)
	require.NoError(t, h.nic.DestroyPtag(tag), "nothing has this tag")
}

// viTagsUnique creates and destroys tags by turns.
func viTagsUnique(t *conformance.T, h *viHost) {
	live := map[vipl.ProtectionHandle]bool{h.ptag: true}
	for round := range 3 {
		for range 500 {
			p := h.newPtag()
			require.False(t, live[p], "tag %d is there already", p)
			live[p] = true
		}
		for p := range live {
			if p != h.ptag && int(p)%3 == round {
				require.NoError(t, h.nic.DestroyPtag(p))
				delete(live, p)
			}
		}
	}
	require.Equal(t, len(live), h.usage().Ptags)
}

// viTagForEach gives each of 1024 VIs a tag of its own.
func viTagForEach(t *conformance.T, h *viHost) {
	a := must(h.nic.QueryNic())(t)
	require.GreaterOrEqual(t, a.MaxPtags, a.MaxVI)
	require.GreaterOrEqual(t, a.MaxVI, uint32(1024))
	for range 1024 {
		p := h.newPtag()
		h.vi(vipl.ServiceReliableReception, func(a *vipl.ViAttributes) { a.Ptag = p })
	}
	require.Equal(t, 1024, h.usage().Vis)
}

// viTagInUse destroys tags that a VI, a region or Descriptors have.
func viTagInUse(t *conformance.T, h *viHost) {
	tag := h.newPtag()
	refused := func(what string) { viCode(t, vipl.ErrResource, h.nic.DestroyPtag(tag), what) }
	v := h.vi(vipl.ServiceUnreliable, func(a *vipl.ViAttributes) { a.Ptag = tag })
	refused("a VI has it")
	mem, descs := make([]byte, 1), make([]vipl.Descriptor, 1)
	handle := h.register(mem, vipl.MemAttributes{Ptag: tag})
	require.NoError(t, v.DestroyVi())
	refused("a region has it")
	dh := must(h.nic.RegisterDescriptors(descs, tag))(t)
	require.NoError(t, h.nic.SetMemAttributes(vipl.AddressOf(mem), handle, &vipl.MemAttributes{Ptag: h.ptag}))
	refused("Descriptors have it")
	require.NoError(t, h.nic.DeregisterMem(vipl.AddressOf(descs), dh))
	require.NoError(t, h.nic.DestroyPtag(tag), "nothing has it")
	viCode(t, vipl.ErrInvalidParameter, h.nic.DestroyPtag(tag), "it is gone")
}

// viNoRoom creates VIs until there is no room, and with attributes that cannot be.
func viNoRoom(t *conformance.T, h *viHost) {
	q := h.cq(1)
	bad := h.attributes(vipl.ServiceUnreliable)
	bad.Ptag = 0
	_, err := h.nic.CreateVi(&bad, q, q)
	viCode(t, vipl.ErrInvalidPtag, err, "no tag")
	require.Zero(t, h.usage().Vis)
	require.NoError(t, q.DestroyCQ(), "nothing is tied to it")
	a, err := h.nic.QueryNic()
	require.NoError(t, err)
	for range a.MaxVI {
		h.vi(vipl.ServiceUnreliable)
	}
	good := h.attributes(vipl.ServiceUnreliable)
	v, err := h.nic.CreateVi(&good, nil, nil)
	viCode(t, vipl.ErrResource, err, "one too many")
	require.Nil(t, v)
	require.Equal(t, int(a.MaxVI), h.usage().Vis)
}

// viDestroyInUse destroys an idle VI with something on one of its queues.
func viDestroyInUse(t *conformance.T, h *viHost) {
	v := h.vi(vipl.ServiceUnreliable)
	refused := func(what string) {
		viCode(t, vipl.ErrResource, v.DestroyVi(), what)
		require.Equal(t, 1, h.usage().Vis)
	}
	d := h.sends(v)
	refused("a Send that has completed")
	h.sent(v, d, viDone|viFlushed)
	d = h.recv(v)
	refused("a posted receive")
	require.NoError(t, v.Disconnect())
	refused("a receive that has completed")
	h.received(v, d, viDone|viFlushed|viOpReceive)
	require.NoError(t, v.DestroyVi(), "empty queues")
	viCode(t, vipl.ErrInvalidParameter, v.DestroyVi(), "again")
}
