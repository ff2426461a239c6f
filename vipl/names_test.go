package vipl

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
)

// TestDeviceNames: an address, an interface or a host, with a port or without; or a port alone.
func TestDeviceNames(t *testing.T) {
	loopback, err := net.InterfaceByIndex(1)
	require.NoError(t, err)
	for name, want := range map[string]string{
		"127.0.0.1": "127.0.0.1:0 false", "127.0.0.1:7": "127.0.0.1:7 true", "::1": "[::1]:0 false", "[::1]:7": "[::1]:7 true",
		":7": "[::]:7 true", loopback.Name: "127.0.0.1:0 false", loopback.Name + ":7": "127.0.0.1:7 true",
		"::ffff:127.0.0.1": "127.0.0.1:0 false",
	} {
		host, explicit, err := device(name)
		require.NoError(t, err, name)
		assert.Equal(t, want, fmt.Sprintln(host, explicit)[:len(want)], name)
	}
	for _, name := range []string{"localhost", "localhost:7"} {
		host, explicit, err := device(name)
		require.NoError(t, err)
		assert.True(t, host.Addr().IsLoopback(), "%v", host)
		assert.Equal(t, name != "localhost", explicit)
	}
	for name, want := range map[string]string{
		"": "neither an address nor an interface nor a host", "no.such.host.invalid": "nor a host", "127.0.0.1:no-port": "no-port",
	} {
		_, _, err := device(name)
		require.ErrorIs(t, err, ErrInvalidParameter, name)
		assert.ErrorContains(t, err, want, name)
	}
}

func TestResolveNetAddress(t *testing.T) {
	x := []byte("x")
	for host, want := range map[string]string{
		"192.0.2.1": `192.0.2.1/"x"`, "192.0.2.1:7": `192.0.2.1:7/"x"`, "192.0.2.1:22089": `192.0.2.1/"x"`,
		"::1": `::1/"x"`, "[::1]": `::1/"x"`, "[::1]:7": `[::1]:7/"x"`,
	} {
		all, err := ResolveNetAddress(t.Context(), host, x)
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, want, all[0].String(), host)
	}
	all, err := ResolveNetAddress(t.Context(), "localhost:7", nil)
	require.NoError(t, err)
	for _, a := range all {
		at, err := a.AddrPort()
		require.NoError(t, err)
		assert.True(t, at.Addr().IsLoopback() && at.Port() == 7, "%v", at)
	}
	for _, host := range []string{"", "no.such.host.invalid", "localhost:no-port", "localhost:0", "localhost:"} {
		_, err := ResolveNetAddress(t.Context(), host, nil)
		assert.ErrorIs(t, err, ErrInvalidParameter, host)
	}
	_, err = ResolveNetAddress(t.Context(), "127.0.0.1", make([]byte, 65))
	require.ErrorIs(t, err, ErrInvalidParameter)
}

// heard has errors told with what the appendix does not have.
func heard(t *testing.T, n *Nic) <-chan *ErrorDescriptor {
	c := make(chan *ErrorDescriptor, 100)
	require.NoError(t, n.ErrorCallback(func(e *ErrorDescriptor) { c <- e }))
	return c
}

// TestLostConnectionsAreNamed: which VI, with which peer, and why.
func TestLostConnectionsAreNamed(t *testing.T) {
	p := newPair(t, ServiceReliableDelivery, Config{})
	client, server := heard(t, p.a.nic), heard(t, p.b.nic)
	d := p.a.desc()
	d.SetSend(p.a.data(0, 1)) // for which there is no receive
	p.a.postSend(p.va, d)
	here, there := p.a.address("client").String(), p.b.address("server").String()
	e := <-server
	assert.Equal(t, ErrorRecvQEmpty, e.ErrorCode)
	assert.Equal(t, fmt.Sprintf(`Receive Queue Empty (VI, Receive): VI %s, connected with 127.0.0.1/"client": vitcp: inbound message refused`, there), e.String())
	e = <-client
	assert.Equal(t, fmt.Sprintf("Connection Lost (VI, Send): VI %s, connected with %s: vitcp: closed by the peer", here, there), e.String())
	assert.Same(t, p.va, e.ViHandle)
	var cause *endpoint.EndError
	require.ErrorAs(t, e.Err, &cause)

	v := p.a.vi(ServiceReliableDelivery, nil, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0") // what answers there makes no sense
	require.NoError(t, err)
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write(make([]byte, 24))
			_ = c.Close()
		}
	}()
	all, err := ResolveNetAddress(t.Context(), l.Addr().String(), []byte("web"))
	require.NoError(t, err)
	_, err = v.ConnectRequest(within(t), &NetAddress{Discriminator: []byte("lost")}, all[0])
	require.Error(t, err)
	e = <-client
	assert.Equal(t, ErrorConnLost, e.ErrorCode)
	assert.Equal(t, all[0], e.RemoteAddr)
	assert.Equal(t, "lost", string(e.LocalAddr.Discriminator))
	require.ErrorIs(t, err, e.Err)
}

// TestQueuesAreNamed: the CQ that an error of a queue belongs to, and the one that has lost entries.
func TestQueuesAreNamed(t *testing.T) {
	h := newHost(t, Config{MaxDescriptorsPerQueue: 4})
	heard := heard(t, h.nic)
	send, recv := h.cq(1), h.cq(1)
	v := h.vi(ServiceReliableDelivery, send, recv)
	for range 4 { // flushed at once: three have no room on the CQ
		d := h.desc()
		d.SetSend()
		h.postSend(v, d)
	}
	for range 2 {
		e := <-heard
		assert.Equal(t, "Completion Queue Overrun (CQ, Send)", e.String())
		assert.Equal(t, ErrorDescriptor{
			NicHandle: h.nic, ViHandle: v, CQHandle: send, OpCode: StatusOpSend, ResourceCode: ResourceCQ, ErrorCode: ErrorCQOverrun,
		}, *e)
	}
	usage, err := h.nic.QuerySystemManagementInfo(SystemInfoUsage)
	require.NoError(t, err)
	assert.EqualValues(t, 3, usage.(*Usage).Lost, "the third is not told")
	assert.Empty(t, heard)

	w := h.vi(ServiceReliableDelivery, send, recv)
	for range 5 {
		d := h.desc()
		d.SetRecv()
		err = w.PostRecv(d, h.dh)
	}
	require.ErrorIs(t, err, ErrResource)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = w.ConnectRequest(ctx, nil, h.address("x")) // when it is told
	e := <-heard
	assert.Equal(t, ErrorViOverrun, e.ErrorCode)
	assert.Same(t, recv, e.CQHandle)
	assert.Equal(t, ResourceVi, e.ResourceCode)
}

// failing is a listener that has no descriptors for a while, and then fails.
type failing struct {
	net.Listener
	errs chan error
}

func (f failing) Accept() (net.Conn, error) { return nil, <-f.errs }

// TestListenerIsNamed: the Nic, of trouble with taking connections.
func TestListenerIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := failing{l, make(chan error, 2)}
	n, err := OpenNic("127.0.0.1", Config{Listener: f})
	require.NoError(t, err)
	heard := heard(t, n)
	f.errs <- errNoFiles
	e := <-heard
	assert.Equal(t, ResourceNic, e.ResourceCode)
	assert.Equal(t, ErrorListen, e.ErrorCode)
	assert.Regexp(t, `^Listening \(NIC\): .*ulimit -n`, e.String())
	f.errs <- net.ErrClosed
	require.NoError(t, n.CloseNic())
}
