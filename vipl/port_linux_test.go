package vipl

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

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
	ca, cb := client.vi(ServiceReliableReception, nil, nil), client.vi(ServiceReliableReception, nil, nil)
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

// startChild starts another process that has the port: portChild.
func startChild(t *testing.T, device string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), portEnv+"="+device)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd
}

// TestPortOfOneThatStands: the process that has the port stands still. Calls that need the port end with their contexts,
// CloseNic ends them, and none waits out the patience that the port has with the other process, which is 5 s.
func TestPortOfOneThatStands(t *testing.T) {
	device := sharedDevice(t)
	cmd := startChild(t, device)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	_, err := syscall.Wait4(cmd.Process.Pid, nil, syscall.WUNTRACED, nil) // until it stands
	require.NoError(t, err)
	const soon = 3 * time.Second // less than that patience, and much more than it takes
	lazy := func() *Nic {
		n, err := OpenNic(netip.MustParseAddrPort(device).Addr().String(), Config{MatchTimeout: long})
		require.NoError(t, err)
		return n
	}
	ledger := leakcheck.Open(t)
	n := lazy()
	begun := time.Now()
	wait := func() error {
		brief, cancel := TimeoutContext(t.Context(), 50)
		defer cancel()
		_, err := n.ConnectWait(brief, nil)
		return err
	}
	v := func() *Vi {
		ptag, err := n.CreatePtag()
		require.NoError(t, err)
		v, err := n.CreateVi(&ViAttributes{MaxTransferSize: hostMemory, Ptag: ptag}, nil, nil)
		require.NoError(t, err)
		return v
	}()
	peer := func() error {
		brief, cancel := TimeoutContext(t.Context(), 0)
		defer cancel()
		return v.ConnectPeerRequest(brief, nil, NewNetAddress(netip.MustParseAddrPort("127.0.0.1:1"), []byte("x")))
	}
	for _, err := range atOnce(wait, wait, peer) {
		require.ErrorIs(t, err, ErrTimeout)
		require.ErrorContains(t, err, "the process that has the port has not answered")
	}
	require.Less(t, time.Since(begun), soon)

	ended := make(chan error, 1)
	go func() { _, err := n.ConnectWait(t.Context(), nil); ended <- err }()
	begun = time.Now()
	require.NoError(t, n.CloseNic())
	require.ErrorIs(t, <-ended, ErrInvalidParameter)
	require.Less(t, time.Since(begun), soon)
	ledger.Settle()

	n = lazy() // when that process goes on, so does the opening that a call with no time has begun
	defer func() { assert.NoError(t, n.CloseNic()) }()
	zero, cancel := TimeoutContext(t.Context(), 0)
	defer cancel()
	_, err = n.ConnectWait(zero, nil)
	require.ErrorIs(t, err, ErrTimeout)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	client := newHost(t, Config{}).vi(0, nil, nil)
	called := NewNetAddress(netip.MustParseAddrPort(device), []byte("lazy"))
	result := request(t, client, nil, called)
	c, err := n.ConnectWait(within(t), called)
	require.NoError(t, err)
	require.NoError(t, c.ConnectReject())
	require.ErrorIs(t, <-result, ErrReject)
}

// TestKilledWhileDataFlows: the process that has the port is killed. The other one's connections go on, and it has the
// port.
func TestKilledWhileDataFlows(t *testing.T) {
	device := sharedDevice(t)
	cmd := startChild(t, device)
	client, server := newHost(t, Config{}), newHostAt(t, device, Config{})
	theirs := client.vi(ServiceUnreliable, nil, nil)
	_, err := theirs.ConnectRequest(within(t), nil, server.address("child"))
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
