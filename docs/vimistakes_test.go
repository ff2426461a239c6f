package docs

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/vipl"
)

// viMistake is one that people make with VIs. The sentence is what a run gives; the code has to be the one named.
type viMistake struct {
	code    error
	name    string
	because string
	do      string
	// make makes it, with a NIC, a VI of it, and its address.
	make func(t *testing.T, m *viMade) error
}

type viMade struct {
	ctx  context.Context
	nic  *vipl.Nic
	vi   *vipl.Vi
	ptag vipl.ProtectionHandle
	at   netip.AddrPort
}

// asks connects to a discriminator of the NIC.
func (m *viMade) asks(name string) error {
	_, err := m.vi.ConnectRequest(m.ctx, nil, vipl.NewNetAddress(m.at, []byte(name)))
	return err
}

var viMistakes = []viMistake{
	{vipl.ErrRefused, "ErrRefused", "no NIC waits at that address and port: OpenNic without a port listens from the first ConnectWait on",
		"start the server; mind the port", func(t *testing.T, m *viMade) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			m.at = netip.MustParseAddrPort(l.Addr().String())
			require.NoError(t, l.Close())
			return m.asks("server")
		}},
	{vipl.ErrReject, "ErrReject", "a NIC is there, and nobody waits for that discriminator",
		"compare both ends' discriminators, octet for octet; a ConnectWait is for one request: call it again",
		func(_ *testing.T, m *viMade) error { return m.asks("sever") }},
	{vipl.ErrReject, "ErrReject", "the server's program called ConnectReject", "ask its owner", func(t *testing.T, m *viMade) error {
		go func() {
			if c, err := m.nic.ConnectWait(m.ctx, &vipl.NetAddress{Discriminator: []byte("server")}); err == nil {
				_ = c.ConnectReject()
			}
		}()
		for {
			if err := m.asks("server"); !strings.Contains(err.Error(), "no matching") {
				return err
			}
		}
	}},
	{vipl.ErrInUse, "ErrInUse", "another program listens there: another user's, or one that does not share the port",
		"end that one, or choose another address or port", func(t *testing.T, m *viMade) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			m.at = netip.MustParseAddrPort(l.Addr().String())
			_, err = vipl.OpenNic(l.Addr().String(), vipl.Config{})
			return err
		}},
	{vipl.ErrInvalidParameter, "ErrInvalidParameter", "the name is of no host and no interface", "the name; or an address",
		func(_ *testing.T, _ *viMade) error {
			_, err := vipl.OpenNic("eth-of-another", vipl.Config{})
			return err
		}},
	{vipl.ErrInvalidParameter, "ErrInvalidParameter", "the host is longer or shorter than an IP address",
		"make it with `NewNetAddress` or `ResolveNetAddress`", func(_ *testing.T, m *viMade) error {
			_, err := m.vi.ConnectRequest(m.ctx, nil, &vipl.NetAddress{HostAddress: []byte("server")[:5]})
			return err
		}},
	{vipl.ErrInUse, "ErrInUse", "DestroyVi of a VI that is not Idle, or has Descriptors", "Disconnect, dequeue what has completed, destroy",
		func(t *testing.T, m *viMade) error {
			d := make([]vipl.Descriptor, 1)
			h, err := m.nic.RegisterDescriptors(d, m.ptag)
			require.NoError(t, err)
			require.NoError(t, m.vi.PostRecv(&d[0], h))
			return m.vi.DestroyVi()
		}},
	{vipl.ErrInvalidParameter, "ErrInvalidParameter", "the Descriptor lies in memory that was registered with RegisterMem, or not at all",
		"`RegisterDescriptors` for the slice that it is in", func(t *testing.T, m *viMade) error {
			return m.vi.PostSend(new(vipl.Descriptor), 1)
		}},
	{vipl.ErrInvalidRdmaRead, "ErrInvalidRdmaRead", "RDMA Reads at Unreliable Delivery, which has none", "a reliable level",
		func(t *testing.T, m *viMade) error {
			_, err := m.nic.CreateVi(&vipl.ViAttributes{MaxTransferSize: 1, Ptag: m.ptag, EnableRdmaRead: true}, nil, nil)
			return err
		}},
	{vipl.ErrTimeout, "ErrTimeout", "what listens there says nothing: no NIC, or one whose process stands still", "look at what listens there",
		func(t *testing.T, m *viMade) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			m.at = netip.MustParseAddrPort(l.Addr().String())
			ctx, cancel := vipl.TimeoutContext(m.ctx, 20)
			defer cancel()
			m.ctx = ctx
			return m.asks("server")
		}},
}

// makes makes the mistake, and returns its row. What differs from run to run stands for itself.
func (v viMistake) makes(t *testing.T) string {
	folder, err := os.MkdirTemp("", "vi") // t.TempDir may be too long for a socket's path
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	t.Setenv("XDG_RUNTIME_DIR", folder)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nic, err := vipl.OpenNic("127.0.0.1:0", vipl.Config{MatchTimeout: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, nic.CloseNic()) }()
	m := &viMade{ctx: ctx, nic: nic}
	a, err := nic.QueryNic()
	require.NoError(t, err)
	m.at, err = (&vipl.NetAddress{HostAddress: a.LocalNicAddress}).AddrPort()
	require.NoError(t, err)
	m.ptag, err = nic.CreatePtag()
	require.NoError(t, err)
	m.vi, err = nic.CreateVi(&vipl.ViAttributes{MaxTransferSize: 1 << 15, Ptag: m.ptag}, nil, nil)
	require.NoError(t, err)
	err = v.make(t, m)
	require.ErrorIs(t, err, v.code)
	text := strings.TrimPrefix(err.Error(), "vipl: ")
	before, _, _ := strings.Cut(text, m.at.String()) // what follows is of the system
	for _, end := range []string{": vitcp: ", ": lookup", " (XDG"} {
		before, _, _ = strings.Cut(before, end)
	}
	before = strings.TrimRight(strings.TrimSuffix(before, "vitcp: connect to "), ": ")
	if _, why, ok := strings.Cut(text, `": vitcp: `); ok {
		before += ": " + why
	}
	code := "`"
	return fmt.Sprintf("| %s: %s | %s | %s |\n", code+v.name+code, code+before+code, v.because, v.do)
}

// TestVIMistakes has the table of docs/refused.md be what a run gives.
func TestVIMistakes(t *testing.T) {
	text := "\n| you see | because | do |\n|---|---|---|\n"
	for _, m := range viMistakes {
		t.Run(m.because, func(t *testing.T) { text += m.makes(t) })
	}
	docgen.Generated(t, "refused.md", "vi", text+"\n")
}
