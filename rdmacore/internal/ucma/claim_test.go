//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// TestOwnPortSpace: a program listens by RDMA at the number at which it listens by TCP, as Valkey does, and a client finds it
// there; both see that number, and no other id gets it.
func TestOwnPortSpace(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	at := tcp.Addr().(*net.TCPAddr).AddrPort()
	said := make(chan string, 8)
	d := newDevice(t, func(c *uverbs.Config) { c.Report = func(s string) { said <- s } })
	server, client := d.program(), newDevice(t).program()
	l, got := server.listen(1, at)
	assert.Equal(t, at, got)
	assert.Contains(t, <-said, "is taken: by RDMA that number is TCP port")
	assert.Equal(t, syscall.EADDRINUSE, refused(t, client.bind(client.create(9), at)), "another id has the number")
	all := netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
	assert.Equal(t, syscall.EADDRINUSE, refused(t, client.bind(client.create(9), all)), "it overlaps")

	c := client.create(2)
	client.resolve(c, at)
	require.NoError(t, client.connect(c, client.qp(), "by RDMA"))
	e := server.expect(uabi.CMEventConnectRequest)
	assert.Equal(t, at.Port(), server.port(e.ID), "the child's address is what its listener was bound to")
	require.NoError(t, server.accept(e.ID, 3, server.qp(), ""))
	client.expect(uabi.CMEventEstablished)
	r := client.route(c)
	dst, ok := r.Dst.AddrPort()
	assert.True(t, ok)
	assert.Equal(t, at, dst)

	server.destroy(l)
	_, again := client.listen(4, at)
	assert.Equal(t, at, again, "the number is free again")
}
