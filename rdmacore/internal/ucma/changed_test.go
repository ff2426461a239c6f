//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// TestChanged: ids are told what becomes of their device, in its turn; a connection that is made while the port is down waits for it;
// one whose device is unplugged ends.
func TestChanged(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	l, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	idle, c := client.create(2), client.create(3)
	client.resolve(c, at)
	d.uv.SetLink(uverbs.Link{Down: true})
	assert.Equal(t, c, client.expect(uabi.CMEventAddrChange).ID)
	assert.Equal(t, l, server.expect(uabi.CMEventAddrChange).ID)
	qp, peer := client.qp(), server.qp()
	require.NoError(t, client.connect(c, qp, ""))
	time.Sleep(30 * time.Millisecond)
	assert.Zero(t, server.tokens())
	d.uv.SetLink(uverbs.Link{})
	s := server.expect(uabi.CMEventConnectRequest).ID
	require.NoError(t, server.accept(s, 4, peer, ""))
	server.expect(uabi.CMEventEstablished)
	client.expect(uabi.CMEventEstablished)
	d.uv.Unplug()
	assert.Equal(t, c, client.expect(uabi.CMEventDeviceRemoval).ID)
	client.expect(uabi.CMEventDisconnected)
	assert.Zero(t, client.destroy(idle), "it is at no device")
}
