package vipl

import (
	"bytes"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLimits goes to the end of what the attributes of a Nic promise.
func TestLimits(t *testing.T) {
	h := newHost(t, Config{})
	a, err := h.nic.QueryNic()
	require.NoError(t, err)
	info, err := h.nic.QuerySystemManagementInfo(SystemInfoUsage)
	require.NoError(t, err)
	u := info.(*Usage)
	for name, c := range map[string]struct {
		used  int
		most  uint32
		again func() error
	}{
		"VIs":           {u.Vis, a.MaxVI, func() error { _, err := h.nic.CreateVi(h.attributes(0), nil, nil); return err }},
		"CQs":           {u.CQs, a.MaxCQ, func() error { _, err := h.nic.CreateCQ(1); return err }},
		"tags":          {u.Ptags, a.MaxPtags, func() error { _, err := h.nic.CreatePtag(); return err }},
		"regions, VA-3": {u.Regions, a.MaxRegisterRegions, func() error { _, err := h.nic.RegisterMem(h.mem, &MemAttributes{Ptag: h.ptag}); return err }},
	} {
		for range int(c.most) - c.used {
			require.NoError(t, c.again(), name)
		}
		require.ErrorIs(t, c.again(), ErrResource, name)
	}
	_, err = h.nic.RegisterDescriptors(h.descs, h.ptag)
	require.ErrorIs(t, err, ErrResource)
}

// TestDefaultErrorHandler is 9.9.1: without a handler errors are logged.
func TestDefaultErrorHandler(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	h := newHost(t, Config{})
	v := h.vi(ServiceReliableDelivery, nil, nil)
	fault := func() {
		_, err := v.begin(t.Context(), EventConnectRequest)
		require.NoError(t, err)
		require.Error(t, v.PostRecv(new(Descriptor), h.dh))
		require.NoError(t, v.Disconnect())
		done := make(chan struct{})
		h.nic.dispatch.do(func() { close(done) })
		<-done
	}
	fault()
	require.Empty(t, log.String())
	require.Equal(t, ErrorPostDesc, h.waitError().ErrorCode)
	require.NoError(t, h.nic.ErrorCallback(nil))
	fault()
	require.Contains(t, log.String(), `error="Post Descriptor Error" resource=Descriptor operation=Receive`)
	h.noError()
}

func TestInterfaceAsDevice(t *testing.T) {
	nifs, err := net.Interfaces()
	require.NoError(t, err)
	for _, nif := range nifs {
		if nif.Flags&net.FlagLoopback == 0 {
			continue
		}
		n, err := OpenNic(nif.Name, Config{})
		require.NoError(t, err)
		a, err := n.QueryNic()
		require.NoError(t, err)
		require.Equal(t, nif.Name, a.Name)
		require.Contains(t, []int{4, 16}, len(a.LocalNicAddress))
		require.NoError(t, n.CloseNic())
	}
}
