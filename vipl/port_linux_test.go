package vipl

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// sharedDevice is an address of this host that no other test uses, with a port that goes without saying.
func sharedDevice(t *testing.T) string {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	pid := os.Getpid()
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 77, byte(pid >> 8), byte(pid)}), 22089).String()
}

// TestNicsShareAPort: two Nics of a process have one port, each its VIs, and the end of one is no end of the other.
func TestNicsShareAPort(t *testing.T) {
	device := sharedDevice(t)
	client := newHost(t, Config{})
	a, b := newHostAt(t, device, Config{}), newHostAt(t, device, Config{})
	require.Equal(t, a.addr, b.addr)
	ledger := leakcheck.Open(t)
	va, vb := a.vi(ServiceReliableReception, nil, nil), b.vi(ServiceReliableReception, nil, nil)
	accepted := make(chan error, 2)
	for _, s := range []struct {
		h    *host
		v    *Vi
		name string
	}{{a, va, "a"}, {b, vb, "b"}} {
		go func() {
			c, err := s.h.nic.ConnectWait(within(t), &NetAddress{Discriminator: []byte(s.name)})
			if err == nil {
				err = c.ConnectAccept(s.v)
			}
			accepted <- err
		}()
	}
	ca, cb := client.vi(ServiceReliableReception, nil, nil), client.vi(ServiceReliableReception, nil, nil)
	for _, c := range []struct {
		v    *Vi
		name string
	}{{cb, "b"}, {ca, "a"}} {
		_, err := c.v.ConnectRequest(within(t), nil, a.address(c.name))
		require.NoError(t, err)
		require.NoError(t, <-accepted)
	}
	pa, pb := &pair{client, a, ca, va}, &pair{client, b, cb, vb}
	pa.works(t)
	pb.works(t)
	waited := make(chan error, 1)
	go func() { _, err := a.nic.ConnectWait(within(t), nil); waited <- err }()
	require.NoError(t, a.nic.CloseNic())
	require.ErrorIs(t, <-waited, ErrInvalidParameter)
	pb.works(t)
	_, err := a.nic.ConnectWait(within(t), nil)
	require.ErrorIs(t, err, ErrInvalidParameter)
	require.NoError(t, ca.Disconnect())
	require.NoError(t, cb.Disconnect())
	require.NoError(t, b.nic.CloseNic())
	ledger.Settle()
	again := newHostAt(t, device, Config{})
	connect(t, client, ca, again, again.vi(ServiceReliableReception, nil, nil))
}

// TestKilledWhileDataFlows: the process that has the port is killed. The other one's connections go on, and it has the
// port.
func TestKilledWhileDataFlows(t *testing.T) {
	device := sharedDevice(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), portEnv+"="+device)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)

	client, server := newHost(t, Config{}), newHostAt(t, device, Config{})
	theirs := client.vi(ServiceUnreliable, nil, nil)
	_, err = theirs.ConnectRequest(within(t), nil, server.address("child"))
	require.NoError(t, err)
	p := &pair{client, server, client.vi(ServiceReliableReception, nil, nil), server.vi(ServiceReliableReception, nil, nil)}
	connect(t, p.a, p.va, p.b, p.vb)
	for range 50 {
		p.works(t)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	for range 50 {
		p.works(t)
	}
	waitState(t, theirs, StateError)
	require.Equal(t, ErrorConnLost, client.waitError().ErrorCode)
	connect(t, client, client.vi(ServiceReliableReception, nil, nil), server, server.vi(ServiceReliableReception, nil, nil))
	p.works(t)
	server.noError()
}

// TestPortInUse: a port that another program has is not one where nothing listens.
func TestPortInUse(t *testing.T) {
	device := sharedDevice(t)
	l, err := net.Listen("tcp", device)
	require.NoError(t, err)
	defer l.Close()
	_, err = OpenNic(device, Config{})
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorIs(t, err, ErrResource)
	require.NotErrorIs(t, err, ErrRefused)
	require.Equal(t, ErrResource, ReturnOf(err))
	assert.Regexp(t, `^vipl: in use: the port is in use: .*end that one, or use another address or port$`, err.Error())

	lazy, err := OpenNic(netip.MustParseAddrPort(device).Addr().String(), Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, lazy.CloseNic()) }()
	_, err = lazy.ConnectWait(within(t), nil)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, l.Close())
	v := newHost(t, Config{}).vi(0, nil, nil)
	_, err = v.ConnectRequest(within(t), nil, NewNetAddress(netip.MustParseAddrPort(device), nil))
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorIs(t, err, ErrResource)
	require.NotErrorIs(t, err, ErrInUse)
	assert.Contains(t, err.Error(), "vipl: refused: nothing listens at that address and port")
}
