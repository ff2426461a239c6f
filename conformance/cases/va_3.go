package cases

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

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
