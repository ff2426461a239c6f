//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/internal/test/exhaustion"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// TestConnectWithoutPorts: the user is told what is lacking.
func TestConnectWithoutPorts(t *testing.T) {
	exhaustion.Ports(t, func(string) {
		said := make(chan string, 8)
		d := newDevice(t, func(c *uverbs.Config) { c.Report = func(s string) { said <- s } })
		p := d.program()
		err := p.bind(p.create(1), netip.AddrPortFrom(loopback, 0))
		assert.Equal(t, syscall.EADDRNOTAVAIL, refused(t, err), "as cma_alloc_any_port of Linux")
		assert.Contains(t, <-said, "no local port")
	})
}
