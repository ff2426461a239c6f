package rdmacore

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChoose(t *testing.T) {
	parse := netip.MustParseAddr
	lo, eth := Address{parse("127.0.0.1"), "lo"}, Address{parse("192.0.2.7"), "eth0"}
	link, six := Address{parse("fe80::1"), "eth0"}, Address{parse("2001:db8::7"), "eth0"}
	for _, tt := range []struct {
		asked string
		list  []Address
		want  Address // none: an error
	}{
		{"", []Address{lo, link, six, eth}, eth},
		{"", []Address{lo, link, six}, six},
		{"", []Address{lo, link}, lo},
		{"", nil, Address{}},
		{"2001:db8::7", []Address{lo, eth, six}, six},
		{"127.1.2.3", []Address{lo, eth}, Address{parse("127.1.2.3"), "lo"}},
		{"192.0.2.8", []Address{lo, eth}, Address{}},
	} {
		var asked netip.Addr
		if tt.asked != "" {
			asked = parse(tt.asked)
		}
		got, err := choose(asked, tt.list)
		assert.Equal(t, tt.want, got, tt.asked)
		assert.Equal(t, tt.want == Address{}, err != nil, tt.asked)
	}
}

// TestHostAddress: this host has its loopback, which has a name.
func TestHostAddress(t *testing.T) {
	a, err := HostAddress(netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	assert.Equal(t, netip.MustParseAddr("127.0.0.1"), a.Addr)
	assert.NotEmpty(t, a.Interface)
	_, err = HostAddress(netip.MustParseAddr("192.0.2.1"))
	assert.ErrorContains(t, err, "192.0.2.1 is no address of this host")
}
