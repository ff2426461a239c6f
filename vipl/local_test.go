package vipl

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReturnOf(t *testing.T) {
	zero, cancel := TimeoutContext(t.Context(), 0)
	defer cancel()
	never, stop := TimeoutContext(t.Context(), Infinite)
	_, has := never.Deadline()
	require.False(t, has)
	stop()
	require.ErrorIs(t, ended(zero), ErrTimeout)
	require.ErrorIs(t, ended(zero), context.DeadlineExceeded)
	require.NotErrorIs(t, ended(never), ErrTimeout)
	require.ErrorIs(t, ended(never), context.Canceled)
	for _, c := range []struct {
		err  error
		want Return
	}{
		{nil, Success}, {ErrNotDone, ErrNotDone}, {invalid("x"), ErrInvalidParameter}, {resource("x"), ErrResource},
		{ended(zero), ErrTimeout}, {ended(never), ErrTimeout}, {errors.New("x"), ErrResource},
	} {
		assert.Equal(t, c.want, ReturnOf(c.err), c.err)
	}
}

func TestOpenNic(t *testing.T) {
	for _, c := range []struct {
		device string
		config Config
		want   Return
	}{
		{"127.0.0.1", Config{}, Success}, // does not listen yet
		{"127.0.0.1", Config{}, Success},
		{"::1", Config{}, Success},
		{"no such interface", Config{}, ErrInvalidParameter},
		{"127.0.0.1:0", Config{MaxTransferSize: 32<<10 - 1}, ErrInvalidParameter}, // 6.1.1.2
		{"127.0.0.1:0", Config{MaxTransferSize: 32 << 10}, Success},
		{"127.0.0.1:0", Config{MaxDescriptorsPerQueue: maxDepth + 1}, ErrInvalidParameter},
		{"127.0.0.1:0", Config{MaxDescriptorsPerQueue: -1}, ErrInvalidParameter},
		{"127.0.0.1:0", Config{Segment: 255}, ErrInvalidParameter},
		{"127.0.0.1:0", Config{Segment: 65536}, ErrInvalidParameter},
		{"192.0.2.1:0", Config{}, ErrResource}, // not of this host
	} {
		n, err := OpenNic(c.device, c.config)
		require.Equal(t, c.want, ReturnOf(err), "%s: %v", c.device, err)
		if err == nil {
			require.NoError(t, n.CloseNic())
			require.ErrorIs(t, n.CloseNic(), ErrInvalidParameter)
		}
	}
}

func TestQueryNic(t *testing.T) {
	h := newHost(t, Config{})
	a, err := h.nic.QueryNic()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:0", a.Name)
	require.Len(t, a.LocalNicAddress, 6)
	require.EqualValues(t, 6, a.NicAddressLen)
	require.True(t, a.ThreadSafe)
	require.GreaterOrEqual(t, a.MaxSegmentsPerDesc, uint32(252))    // VA-10.4-M1
	require.GreaterOrEqual(t, a.MaxCQEntries, uint32(1024))         // VA-3.4-M2
	require.GreaterOrEqual(t, a.MaxVI, uint32(1024))                // VA-8.1-S2
	require.GreaterOrEqual(t, a.MaxPtags, a.MaxVI)                  // VA-3.2.2.1-M3
	require.GreaterOrEqual(t, a.MaxTransferSize, uint32(32<<10))    // 6.1.1.2
	require.Equal(t, [3]bool{false, true, true}, a.RDMAReadSupport) // table 1
	a.LocalNicAddress[0]++
	again, err := h.nic.QueryNic()
	require.NoError(t, err)
	require.EqualValues(t, 127, again.LocalNicAddress[0])

	n, err := OpenNic("127.0.0.1", Config{})
	require.NoError(t, err)
	a, err = n.QueryNic()
	require.NoError(t, err)
	require.Equal(t, []byte{127, 0, 0, 1}, a.LocalNicAddress)
	require.NoError(t, n.CloseNic())
}

func TestClosedNic(t *testing.T) {
	h := newHost(t, Config{})
	v, q := h.vi(0, nil, nil), h.cq(1)
	h.postRecv(v)
	require.NoError(t, h.nic.CloseNic())
	for name, call := range map[string]func() error{
		"CloseNic":      h.nic.CloseNic,
		"QueryNic":      func() error { _, err := h.nic.QueryNic(); return err },
		"CreateVi":      func() error { _, err := h.nic.CreateVi(h.attributes(0), nil, nil); return err },
		"CreateCQ":      func() error { _, err := h.nic.CreateCQ(1); return err },
		"CreatePtag":    func() error { _, err := h.nic.CreatePtag(); return err },
		"RegisterMem":   func() error { _, err := h.nic.RegisterMem(h.mem, &MemAttributes{Ptag: h.ptag}); return err },
		"Descriptors":   func() error { _, err := h.nic.RegisterDescriptors(h.descs, h.ptag); return err },
		"DeregisterMem": func() error { return h.nic.DeregisterMem(AddressOf(h.mem), h.handle) },
		"ErrorCallback": func() error { return h.nic.ErrorCallback(nil) },
		"ConnectWait":   func() error { _, err := h.nic.ConnectWait(t.Context(), nil); return err },
		"System":        func() error { _, err := h.nic.QuerySystemManagementInfo(SystemInfoUsage); return err },
		"DestroyVi":     v.DestroyVi,
		"Disconnect":    v.Disconnect,
		"QueryVi":       func() error { _, _, err := v.QueryVi(); return err },
		"SetVi":         func() error { return v.SetViAttributes(h.attributes(0)) },
		"PostSend":      func() error { return v.PostSend(h.desc(), h.dh) },
		"SendDone":      func() error { _, err := v.SendDone(); return err },
		"RecvWait":      func() error { _, err := v.RecvWait(t.Context()); return err },
		"RecvNotify":    func() error { return v.RecvNotify(func(*Nic, *Vi, *Descriptor) {}) },
		"Connect": func() error {
			_, err := v.ConnectRequest(t.Context(), nil, &NetAddress{HostAddress: []byte{127, 0, 0, 1}})
			return err
		},
		"Peer": func() error {
			return v.ConnectPeerRequest(t.Context(), nil, &NetAddress{HostAddress: []byte{127, 0, 0, 1}})
		},
		"DestroyCQ": q.DestroyCQ,
		"ResizeCQ":  func() error { return q.ResizeCQ(3) },
		"CQDone":    func() error { _, _, err := q.CQDone(); return err },
		"CQWait":    func() error { _, _, err := q.CQWait(t.Context()); return err },
		"CQNotify":  func() error { return q.CQNotify(func(*Nic, *Vi, bool) {}) },
	} {
		require.ErrorIs(t, call(), ErrInvalidParameter, name)
	}
}

func TestViAttributes(t *testing.T) {
	h := newHost(t, Config{MaxTransferSize: hostMemory})
	v := h.vi(ServiceReliableDelivery, nil, nil)
	for _, c := range []struct {
		change func(*ViAttributes)
		want   Return
	}{
		{func(*ViAttributes) {}, Success},
		{func(a *ViAttributes) { a.ReliabilityLevel = numLevels }, ErrInvalidReliabilityLevel},
		{func(a *ViAttributes) { a.MaxTransferSize = 0 }, ErrInvalidMTU},
		{func(a *ViAttributes) { a.MaxTransferSize++ }, ErrInvalidMTU},
		{func(a *ViAttributes) { a.QoS = 1 }, ErrInvalidQoS},
		{func(a *ViAttributes) { a.Ptag = 0 }, ErrInvalidPtag},
		{func(a *ViAttributes) { a.Ptag += 100 }, ErrInvalidPtag},
		{func(a *ViAttributes) { a.ReliabilityLevel = ServiceUnreliable }, ErrInvalidRdmaRead},
		{func(a *ViAttributes) { a.ReliabilityLevel, a.EnableRdmaRead = ServiceUnreliable, false }, Success},
	} {
		a := h.attributes(ServiceReliableDelivery)
		c.change(a)
		before, err := h.nic.CreateVi(a, nil, nil)
		require.Equal(t, c.want, ReturnOf(err), "%+v", a)
		if err == nil {
			_, got, err := before.QueryVi()
			require.NoError(t, err)
			require.Equal(t, a, got)
		}
		require.Equal(t, c.want, ReturnOf(v.SetViAttributes(a)), "%+v", a)
	}
	_, err := h.nic.CreateVi(nil, nil, nil)
	require.ErrorIs(t, err, ErrInvalidParameter)
	require.ErrorIs(t, v.SetViAttributes(nil), ErrInvalidParameter)
}

// TestThousandVis is VA-8.1-S2: 1024 VIs, each with a protection tag of its own.
func TestThousandVis(t *testing.T) {
	h := newHost(t, Config{})
	q := h.cq(1024)
	var vis []*Vi
	for range 1024 {
		p, err := h.nic.CreatePtag()
		require.NoError(t, err)
		a := h.attributes(ServiceReliableDelivery)
		a.Ptag = p
		v, err := h.nic.CreateVi(a, q, q)
		require.NoError(t, err)
		vis = append(vis, v)
	}
	info, err := h.nic.QuerySystemManagementInfo(SystemInfoUsage)
	require.NoError(t, err)
	require.Equal(t, &Usage{Vis: 1024, CQs: 1, Ptags: 1025, Regions: 2, States: map[ViState]int{StateIdle: 1024}}, info)
	_, err = h.nic.QuerySystemManagementInfo(77)
	require.ErrorIs(t, err, ErrInvalidParameter)
	require.ErrorIs(t, q.DestroyCQ(), ErrResource) // VA-3.4-M5
	for _, v := range vis {
		_, a, err := v.QueryVi()
		require.NoError(t, err)
		require.ErrorIs(t, h.nic.DestroyPtag(a.Ptag), ErrResource) // VA-11.3.9-M2
		require.NoError(t, v.DestroyVi())
		require.NoError(t, h.nic.DestroyPtag(a.Ptag))
	}
	require.NoError(t, q.DestroyCQ())
}

func TestForeignCQ(t *testing.T) { // VA-3.1-M1
	a, b := newHost(t, Config{}), newHost(t, Config{})
	q := b.cq(4)
	_, err := a.nic.CreateVi(a.attributes(0), q, nil)
	require.ErrorIs(t, err, ErrInvalidParameter)
	_, err = a.nic.CreateVi(a.attributes(0), nil, q)
	require.ErrorIs(t, err, ErrInvalidParameter)
	require.NoError(t, q.DestroyCQ())
	_, err = b.nic.CreateVi(b.attributes(0), q, nil)
	require.ErrorIs(t, err, ErrInvalidParameter, "destroyed")
}
