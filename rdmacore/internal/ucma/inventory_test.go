//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestInventory: of a program that ends with connections, requests and listening ids, nothing is left.
func TestInventory(t *testing.T) {
	leakcheck.Inventory(t)
	d := newDevice(t)
	client, server := d.program(), d.program()
	_, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	for i := range uint64(3) {
		c := client.create(2 + i)
		client.resolve(c, at)
		require.NoError(t, client.connect(c, client.qp(), "a request"))
		if i == 2 { // its event is read by nobody
			server.token()
			break
		}
		e := server.expect(uabi.CMEventConnectRequest)
		if i == 1 { // and this request is left without an answer
			continue
		}
		require.NoError(t, server.accept(e.ID, 10+i, server.qp(), "a reply"))
		server.expect(uabi.CMEventEstablished)
		client.expect(uabi.CMEventEstablished)
	}
}
