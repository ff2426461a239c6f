package cases

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// failsVI are limits and counts of VIs, and calls that fail: nothing changes then.
var failsVI = []conformance.Case{
	apiCase("3.2/vi-peers-receives-modulo", viPeersReceivesModulo, "VT-3.2-M10", "PT-3.2-M8"),
	apiCase("3.2/vi-receives-told-modulo", viReceivesToldModulo, "VT-3.3-M3", "PT-3.2-M8"),
	apiCase("3.2/vi-many-leave-at-once", viManyLeaveAtOnce, "VT-3.2-M10", "VA-6.4.2-S1"),
	apiCase("2.5.1/vi-guesses", viGuesses, "PA-2.5.1-M2", "VA-3.2.1-M1"),
	apiCase("9.5.2/vi-tags-of-changes", onVIHost(viTagsOfChanges), "PA-9.5.2-M1", "VA-11.3.9-M2"),
	apiCase("9.3.1/vi-limits", viLimits, "VA-3.3-M1"),
	apiCase("3.1/vi-closed", viClosed, "VA-3.1-M3"),
	apiCase("3.4/vi-entries-of-others", onVIHost(viEntriesOfOthers), "VA-3.4-M5", "VA-9.7.3-M2"),
	apiCase("9.4.1/vi-requests-of-one", viRequestsOfOne, "VA-4.1-S1", "VA-4.3-M4"),
	apiCase("9.4.1/vi-peer-told-once", viPeerToldOnce, "VA-4.1-M7"),
}

// viPeersReceivesModulo has the peer tell of 65,536 receives and some: a VI with flow control sends as many messages, and
// never one more.
func viPeersReceivesModulo(t *conformance.T) {
	const burst, all = 256, 1<<16 + 512
	r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, vi: func(a *vipl.ViAttributes) { a.FlowControl = true }})
	posted := 0
	more := func(n int) {
		posted += n
		r.nop(viSegment{posted: uint16(posted)})
	}
	sends := func(n int) {
		for range n {
			r.sends(r.v)
		}
		b := make([]byte, n*viHeaderLen) // at once, or most of the time goes here
		require.NoError(t, second(io.ReadFull(r.conn, b)), "%d Sends", n)
		last := must(readVI(b[len(b)-viHeaderLen:], false))(t)
		require.Equal(t, []any{byte(viSend), r.subject + uint32(posted)}, []any{last.kind, last.number}, "the last Send")
		for range n {
			require.NoError(t, second(r.v.SendWait(t.Context())))
		}
	}
	noMore := func() {
		d := r.sends(r.v)
		for range 2 { // what may be sent would come between the answers
			s := r.message(viSegment{kind: viReadRequest, flags: viLast, rdma: r.at(0, 8)})
			s.posted = uint16(posted)
			r.put(s)
			r.answer(r.number)
		}
		require.ErrorIs(t, second(r.v.SendDone()), vipl.ErrNotDone, "%d receives, and one Send more", posted)
		more(1)
		r.get(viSend)
		r.sent(r.v, d, viDone)
	}
	for posted < all {
		more(burst)
		sends(burst)
		if posted < burst+2 || posted > 1<<16-2*burst {
			noMore()
		}
	}
	for range 1 << 2 { // around zero one by one
		noMore()
	}
}

// viManyLeaveAtOnce has thousands of Sends wait for the peer's receives, of which it tells at once: a handler is called for
// each, though nothing else happens at the VI.
func viManyLeaveAtOnce(t *conformance.T) {
	const many = 9000
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, nic: vipl.Config{MaxDescriptorsPerQueue: many}, vi: func(a *vipl.ViAttributes) { a.FlowControl = true }})
	calls := make(chan *vipl.Descriptor, many)
	for range many {
		r.sends(r.v)
		require.NoError(t, r.v.SendNotify(func(_ *vipl.Nic, _ *vipl.Vi, d *vipl.Descriptor) { calls <- d }))
	}
	r.nop(viSegment{posted: many})
	require.NoError(t, second(io.ReadFull(r.conn, make([]byte, many*viHeaderLen))), "the Sends")
	for i := range many {
		receive(t, calls, "%d calls for %d Sends", i, many)
	}
}

// viReceivesToldModulo has a VI tell a peer with flow control of 65,536 receives and some: of one, when the peer has no
// other, at once.
func viReceivesToldModulo(t *conformance.T) {
	const burst = 256
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, ce: func(c *viCE) { c.attributes |= viFlowControl }})
	posted := 0
	uses := func(n int) {
		var b []byte
		for range n {
			s := r.message(viSegment{kind: viSend, flags: viLast})
			b = append(b, s.octets(false)...)
		}
		r.says(b)
		for range n {
			require.NoError(t, second(r.v.RecvWait(t.Context())))
		}
	}
	for posted < 1<<16-burst {
		for range burst {
			r.recv(r.v)
		}
		posted += burst
		for s := r.next(); s.posted != uint16(posted); s = r.next() {
			if s.kind == viNOP && int(s.posted)+burst/2 >= posted&(1<<16-1) {
				r.sends(r.v) // the rest is told by and by
				require.NoError(t, second(r.v.SendWait(t.Context())))
			}
		}
		uses(burst)
	}
	for range 2 * burst {
		r.recv(r.v)
		posted++
		s := r.next()
		for s.kind == viSend {
			s = r.next()
		}
		require.Equal(t, []any{byte(viNOP), uint16(posted)}, []any{s.kind, s.posted}, "receive %d is told", posted)
		uses(1)
	}
}

// viGuesses has a peer at Unreliable write to memory by wrong handles: many of one are a mistake, of which the program hears
// nothing; from the sixteenth other one on they cost time, and are told as their number doubles. The connection goes on.
func viGuesses(t *conformance.T) {
	r := newVIRig(t, viSetup{level: vipl.ServiceUnreliable, receives: 3})
	wrong := func(i int) {
		at := r.at(0, 8)
		at.handle ^= uint32(i) << 8
		r.rdmaWrite(at, "guess")
	}
	before := append([]byte{}, r.mem...)
	for range 64 {
		wrong(1)
	}
	for i := range 14 {
		wrong(2 + i)
	}
	r.takes("x", r.receives[0], viDone|viOpReceive)
	require.Empty(t, r.errors, "a program makes mistakes")
	require.Equal(t, 78, int(r.usage().Misdirected))
	begin := time.Now()
	wrong(16)
	wrong(16)
	r.reported(r.v, vipl.ErrorRdmaWProt, vipl.StatusOpRemoteRdmaWrite)
	for i := range 4 {
		wrong(17 + i)
	}
	r.takes("y", r.receives[1], viDone|viOpReceive)
	require.GreaterOrEqual(t, time.Since(begin), 31*time.Millisecond, "1 ms, and twice as much each time")
	require.Empty(t, r.errors, "their number has not doubled")
	r.rdmaWrite(r.at(100, 5), "right")
	r.takes("z", r.receives[2], viDone|viOpReceive)
	require.Equal(t, "right", string(r.mem[100:105]))
	copy(r.mem[100:105], before[100:105])
	require.Equal(t, before[:viSlots], r.mem[:viSlots], "nothing else was written")
}

// viTagsOfChanges changes attributes, and fails to: a tag is in use by what has it, and by nothing else.
func viTagsOfChanges(t *conformance.T, h *viHost) {
	mem, descs := make([]byte, 64), make([]vipl.Descriptor, 1)
	v := h.vi(vipl.ServiceReliableDelivery)
	handle, dh := h.register(mem, vipl.MemAttributes{Ptag: h.ptag}), must(h.nic.RegisterDescriptors(descs, h.ptag))(t)
	setVI := func(level vipl.ReliabilityLevel, p vipl.ProtectionHandle) error {
		a := h.attributes(level)
		a.Ptag = p
		return v.SetViAttributes(&a)
	}
	setMem := func(p vipl.ProtectionHandle) error {
		return h.nic.SetMemAttributes(vipl.AddressOf(mem), handle, &vipl.MemAttributes{Ptag: p, EnableRdmaRead: true})
	}
	setDescs := func(p vipl.ProtectionHandle) error {
		return h.nic.SetMemAttributes(vipl.AddressOf(descs), dh, &vipl.MemAttributes{Ptag: p})
	}
	var former vipl.ProtectionHandle
	for range counted(t, "change %d", 3) {
		tag := h.newPtag()
		for i, refused := range []func() error{
			func() error { return v.SetViAttributes(nil) },
			func() error { return setVI(7, tag) },
			func() error { return setVI(vipl.ServiceReliableDelivery, tag+1) },
			func() error { return h.nic.SetMemAttributes(vipl.AddressOf(mem), handle, nil) },
			func() error {
				return h.nic.SetMemAttributes(vipl.AddressOf(mem)+1, handle, &vipl.MemAttributes{Ptag: tag})
			},
			func() error { return setMem(tag + 1) },
			func() error { return setDescs(tag + 1) },
			func() error {
				return h.nic.SetMemAttributes(vipl.AddressOf(descs), dh, &vipl.MemAttributes{Ptag: tag, EnableRdmaRead: true})
			},
			func() error {
				return h.nic.SetMemAttributes(vipl.AddressOf(descs), dh, &vipl.MemAttributes{Ptag: tag, EnableRdmaWrite: true})
			},
		} {
			require.Error(t, refused(), "call %d", i)
		}
		require.NoError(t, h.nic.DestroyPtag(tag), "nothing has it")
		tag = h.newPtag()
		for i, change := range []func() error{
			func() error { return setVI(vipl.ServiceReliableDelivery, tag) }, func() error { return setMem(tag) }, func() error { return setDescs(tag) },
		} {
			if former != 0 {
				viCode(t, vipl.ErrResource, h.nic.DestroyPtag(former), "something has it")
			}
			require.NoError(t, change(), "change %d", i)
			viCode(t, vipl.ErrResource, h.nic.DestroyPtag(tag), "something has it")
		}
		if former != 0 {
			require.NoError(t, h.nic.DestroyPtag(former), "all that had it has another one")
		}
		former = tag
		a := must(h.nic.QueryMem(vipl.AddressOf(mem), handle))(t)
		require.Equal(t, vipl.MemAttributes{Ptag: tag, EnableRdmaRead: true}, *a)
		require.Equal(t, vipl.MemAttributes{Ptag: tag}, *must(h.nic.QueryMem(vipl.AddressOf(descs), dh))(t))
		_, va, err := v.QueryVi()
		require.NoError(t, err)
		require.Equal(t, tag, va.Ptag)
		require.NoError(t, v.PostRecv(&descs[0], dh), "the tags of the VI and of its Descriptors match")
		require.NoError(t, v.Disconnect())
		require.NoError(t, second(v.RecvDone()))
		descs[0] = vipl.Descriptor{}
	}
	require.NoError(t, v.DestroyVi())
	require.NoError(t, h.nic.DeregisterMem(vipl.AddressOf(mem), handle))
	require.NoError(t, h.nic.DeregisterMem(vipl.AddressOf(descs), dh))
	require.NoError(t, h.nic.DestroyPtag(former), "nothing has it")
}

// viLimits opens NICs and creates VIs at each limit, and beyond.
func viLimits(t *conformance.T) {
	for _, c := range []vipl.Config{
		{MaxTransferSize: 32<<10 - 1}, {MaxDescriptorsPerQueue: -1}, {MaxDescriptorsPerQueue: 32769}, {Segment: 255}, {Segment: 65536}, {Segment: -1},
	} {
		viCode(t, vipl.ErrInvalidParameter, second(vipl.OpenNic("127.0.0.1:0", c)), fmt.Sprintf("%+v", c))
	}
	viCode(t, vipl.ErrInvalidParameter, second(vipl.OpenNic("127.0.0.1:x", vipl.Config{})), "no port")
	for _, c := range []vipl.Config{{MaxTransferSize: 32 << 10, Segment: 256, MaxDescriptorsPerQueue: 1}, {Segment: 65535, MaxDescriptorsPerQueue: 32768}} {
		h := newVIHost(t, c)
		a := must(h.nic.QueryNic())(t)
		most := either(c.MaxTransferSize == 0, uint32(math.MaxUint32), c.MaxTransferSize)
		require.Equal(t, []uint32{most, uint32(c.Segment), uint32(c.MaxDescriptorsPerQueue)}, []uint32{a.MaxTransferSize, a.NativeMTU, a.MaxDescriptorsPerQueue})
		create := func(change func(*vipl.ViAttributes)) error {
			a := h.attributes(vipl.ServiceReliableDelivery)
			a.MaxTransferSize = most
			change(&a)
			return second(h.nic.CreateVi(&a, nil, nil))
		}
		viCode(t, vipl.ErrInvalidParameter, second(h.nic.CreateVi(nil, nil, nil)), "no attributes")
		viCode(t, vipl.ErrInvalidReliabilityLevel, create(func(a *vipl.ViAttributes) { a.ReliabilityLevel = vipl.ServiceReliableReception + 1 }), "level")
		viCode(t, vipl.ErrInvalidMTU, create(func(a *vipl.ViAttributes) { a.MaxTransferSize = 0 }), "no octets")
		viCode(t, vipl.ErrInvalidQoS, create(func(a *vipl.ViAttributes) { a.QoS = 1 }), "quality of service")
		viCode(t, vipl.ErrInvalidRdmaRead, create(func(a *vipl.ViAttributes) { a.ReliabilityLevel = vipl.ServiceUnreliable }), "Reads")
		if most < math.MaxUint32 {
			viCode(t, vipl.ErrInvalidMTU, create(func(a *vipl.ViAttributes) { a.MaxTransferSize = most + 1 }), "one octet more")
		}
		require.Zero(t, h.usage().Vis)
		require.NoError(t, create(func(*vipl.ViAttributes) {}))
		require.NoError(t, create(func(a *vipl.ViAttributes) { a.MaxTransferSize = 1 }))
		tags := 1
		for ; ; tags++ {
			if _, err := h.nic.CreatePtag(); err != nil {
				viCode(t, vipl.ErrResource, err, "one tag too many")
				break
			}
		}
		require.EqualValues(t, a.MaxPtags, tags)
	}
	h := newVIHost(t, vipl.Config{MaxDescriptorsPerQueue: 2})
	v := h.vi(vipl.ServiceUnreliable)
	h.recv(v)
	h.recv(v)
	viCode(t, vipl.ErrResource, v.PostRecv(h.desc(), h.dh), "one Descriptor too many")
	viCode(t, vipl.ErrInvalidParameter, v.RecvNotify(nil), "no handler")
	viCode(t, vipl.ErrInvalidParameter, h.cq(1).CQNotify(nil), "no handler")
	require.NoError(t, h.nic.ErrorCallback(nil), "the default handler")
}

// viClosed calls everything of a NIC that is closed, and of what was on it; requests that were found and not answered have
// ended.
func viClosed(t *conformance.T) {
	h, peer := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	v, q, a := h.vi(vipl.ServiceUnreliable), h.cq(4), h.attributes(vipl.ServiceUnreliable)
	spare, mem := h.newPtag(), make([]byte, 8)
	answer := make(chan error, 1)
	server := h.address("server")
	go func() {
		answer <- second(peer.vi(vipl.ServiceUnreliable).ConnectRequest(t.Context(), nil, server))
	}()
	request := must(h.nic.ConnectWait(t.Context(), server))(t)
	waits := make(chan error, 1)
	go func() { waits <- second(h.nic.ConnectWait(t.Context(), server)) }()
	require.NoError(t, h.nic.CloseNic())
	require.Error(t, receive(t, answer, "a request that nobody answers waits on"))
	viCode(t, vipl.ErrInvalidParameter, receive(t, waits, "ConnectWait waits on"), "ConnectWait")
	for name, call := range map[string]func() error{
		"CloseNic":            h.nic.CloseNic,
		"QueryNic":            func() error { return second(h.nic.QueryNic()) },
		"CreatePtag":          func() error { return second(h.nic.CreatePtag()) },
		"DestroyPtag":         func() error { return h.nic.DestroyPtag(spare) },
		"RegisterMem":         func() error { return second(h.nic.RegisterMem(mem, &vipl.MemAttributes{Ptag: h.ptag})) },
		"RegisterDescriptors": func() error { return second(h.nic.RegisterDescriptors(h.descs, h.ptag)) },
		"DeregisterMem":       func() error { return h.nic.DeregisterMem(vipl.AddressOf(h.mem), h.handle) },
		"CreateVi":            func() error { return second(h.nic.CreateVi(&a, nil, nil)) },
		"CreateCQ":            func() error { return second(h.nic.CreateCQ(1)) },
		"ErrorCallback":       func() error { return h.nic.ErrorCallback(nil) },
		"usage":               func() error { return second(h.nic.QuerySystemManagementInfo(vipl.SystemInfoUsage)) },
		"ConnectWait":         func() error { return second(h.nic.ConnectWait(t.Context(), server)) },
		"ConnectAccept":       func() error { return request.ConnectAccept(v) },
		"ConnectReject":       request.ConnectReject,
		"ConnectRequest":      func() error { return second(v.ConnectRequest(t.Context(), nil, server)) },
		"ConnectPeerRequest":  func() error { return v.ConnectPeerRequest(t.Context(), nil, server) },
		"Disconnect":          v.Disconnect,
		"DestroyVi":           v.DestroyVi,
		"SetViAttributes":     func() error { return v.SetViAttributes(&a) },
		"SendDone":            func() error { return second(v.SendDone()) },
		"RecvWait":            func() error { return second(v.RecvWait(t.Context())) },
		"RecvNotify":          func() error { return v.RecvNotify(func(*vipl.Nic, *vipl.Vi, *vipl.Descriptor) {}) },
		"ResizeCQ":            func() error { return q.ResizeCQ(2) },
		"DestroyCQ":           q.DestroyCQ,
		"CQNotify":            func() error { return q.CQNotify(func(*vipl.Nic, *vipl.Vi, bool) {}) },
		"CQWait":              func() error { _, _, err := q.CQWait(t.Context()); return err },
	} {
		viCode(t, vipl.ErrInvalidParameter, call(), name)
	}
	require.Empty(t, h.errors)
}

// viEntriesOfOthers destroys one of three VIs whose entries are on a CQ among each other, in a ring that has wrapped: those of
// the others are told in order, and its own are not.
func viEntriesOfOthers(t *conformance.T, h *viHost) {
	q := h.cq(7)
	var vis [3]*vipl.Vi
	for i := range vis {
		vis[i] = h.tied(vipl.ServiceUnreliable, q, q)
	}
	flush := func(i int) { h.sends(vis[i]) } // it is not connected
	for range 5 {
		flush(0)
		_, _, err := q.CQDone()
		require.NoError(t, err)
		require.NoError(t, second(vis[0].SendDone()))
	}
	order := []int{1, 0, 2, 1, 0, 0, 2}
	for _, i := range order {
		flush(i)
	}
	for range 3 {
		require.NoError(t, second(vis[0].SendDone()))
	}
	require.NoError(t, vis[0].DestroyVi())
	for _, i := range order {
		if i == 0 {
			continue
		}
		v, recv, err := q.CQDone()
		require.NoError(t, err)
		require.Same(t, vis[i], v, "whose entry it is")
		require.False(t, recv)
	}
	_, _, err := q.CQDone()
	require.ErrorIs(t, err, vipl.ErrNotDone)
	viCode(t, vipl.ErrResource, q.DestroyCQ(), "two VIs are tied to it")
	for _, i := range []int{1, 2} {
		require.NoError(t, second(vis[i].SendDone()))
		require.NoError(t, second(vis[i].SendDone()))
		require.NoError(t, vis[i].DestroyVi())
	}
	require.NoError(t, q.DestroyCQ())
	viCode(t, vipl.ErrInvalidParameter, q.ResizeCQ(4), "it is destroyed")
}

// viRequestsOfOne waits for requests of a certain host and VI: others are left to others.
func viRequestsOfOne(t *conformance.T) {
	h, peer := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	server := h.address("server")
	answers := make(chan error, 2)
	calls := func(name string) {
		v, from := peer.vi(vipl.ServiceReliableDelivery, func(a *vipl.ViAttributes) { a.MaxTransferSize = 4711 }), peer.address(name)
		go func() { answers <- second(v.ConnectRequest(t.Context(), from, server)) }()
	}
	here := func(name []byte) *vipl.NetAddress {
		a := peer.address("")
		a.Discriminator = name
		return a
	}
	elsewhere := vipl.NewNetAddress(netip.MustParseAddrPort("192.0.2.1:0"), nil)
	other := (&scene{t: t, wait: func(ctx context.Context) error { return second(h.nic.ConnectWaitFrom(ctx, server, elsewhere)) }}).sleeps()
	bad := &vipl.NetAddress{HostAddress: []byte{1, 2, 3}}
	viCode(t, vipl.ErrInvalidParameter, second(h.nic.ConnectWaitFrom(t.Context(), server, bad)), "no address")
	is := func(c *vipl.Conn, name string) {
		require.Equal(t, name, string(c.RemoteAddr().Discriminator))
		a := c.RemoteViAttribs()
		require.Equal(t, []any{vipl.ServiceReliableDelivery, uint32(4711), true, true}, []any{a.ReliabilityLevel, a.MaxTransferSize, a.EnableRdmaWrite, a.EnableRdmaRead})
		require.NoError(t, c.ConnectReject())
		viCode(t, vipl.ErrReject, receive(t, answers, "the answer"), "the answer")
	}
	// Who waits for "two" has waited longer than who waits for any of the host.
	came := make(chan *vipl.Conn, 1)
	two := (&scene{t: t, wait: func(ctx context.Context) error {
		c, err := h.nic.ConnectWaitFrom(ctx, server, here([]byte("two")))
		came <- c
		return err
	}}).sleeps()
	calls("one")
	is(must(h.nic.ConnectWaitFrom(t.Context(), server, here(nil)))(t), "one")
	calls("two")
	two.wakes()
	is(<-came, "two")
	other.stop()
	other.gaveUp()
}

// viPeerToldOnce has two VIs ask for each other: the outcome is not there before, and is told once.
func viPeerToldOnce(t *conformance.T) {
	a, b := newVIHost(t, vipl.Config{}), newVIHost(t, vipl.Config{})
	va, vb := a.vi(vipl.ServiceUnreliable), b.vi(vipl.ServiceUnreliable)
	one, two := a.address("one"), b.address("two")
	viCode(t, vipl.ErrInvalidParameter, second(va.ConnectPeerDone()), "no ConnectPeerRequest")
	viCode(t, vipl.ErrInvalidParameter, second(va.ConnectPeerWait(t.Context())), "no ConnectPeerRequest")
	viCode(t, vipl.ErrInvalidParameter, va.ConnectPeerRequest(t.Context(), two, two), "an address of another host")
	viCode(t, vipl.ErrInvalidParameter, va.ConnectPeerRequest(t.Context(), one, &vipl.NetAddress{HostAddress: []byte{1}}), "no address")
	require.Equal(t, vipl.StateIdle, a.state(va))
	require.NoError(t, va.ConnectPeerRequest(t.Context(), one, b.address("nobody")))
	require.ErrorIs(t, second(va.ConnectPeerDone()), vipl.ErrNotDone)
	soon, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	viCode(t, vipl.ErrTimeout, second(va.ConnectPeerWait(soon)), "ConnectPeerWait")
	require.NoError(t, va.Disconnect(), "an attempt is given up")
	require.Error(t, second(va.ConnectPeerWait(t.Context())), "what came of it")
	viCode(t, vipl.ErrInvalidParameter, second(va.ConnectPeerDone()), "it has been told")
	require.NoError(t, va.ConnectPeerRequest(t.Context(), one, two))
	require.NoError(t, vb.ConnectPeerRequest(t.Context(), two, one))
	var got *vipl.ViAttributes
	eventually(t, func() bool {
		var err error
		if got, err = va.ConnectPeerDone(); err != nil {
			require.ErrorIs(t, err, vipl.ErrNotDone)
		}
		return err == nil
	}, "the attempt is over")
	require.Equal(t, vipl.ServiceUnreliable, got.ReliabilityLevel)
	viCode(t, vipl.ErrInvalidParameter, second(va.ConnectPeerDone()), "it has been told")
	must(vb.ConnectPeerWait(t.Context()))(t)
	viCode(t, vipl.ErrInvalidParameter, second(vb.ConnectPeerWait(t.Context())), "it has been told")
}
