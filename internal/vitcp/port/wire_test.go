package port

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

var two = segment.Discriminator("two")

var filters = []vitcp.Filter{
	{},
	{Called: "x", PeerToPeer: true},
	{Called: segment.Discriminator(make([]byte, 64)), Calling: &two, From: netip.MustParseAddr("192.0.2.1")},
	{Calling: new(segment.Discriminator), From: netip.MustParseAddr("2001:db8::1"), At: netip.MustParseAddr("::")},
}

func TestFilters(t *testing.T) {
	for _, f := range filters {
		got, err := parseFilter(appendFilter(nil, &f))
		require.NoError(t, err)
		assert.Equal(t, f, got)
	}
	assert.Equal(t, "\x02\x01x\x03two\x04\xc0\x00\x02\x01\x00",
		string(appendFilter(nil, &vitcp.Filter{Called: "x", Calling: &two, From: netip.MustParseAddr("192.0.2.1")})))
}

func TestHello(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{
		-1: 0, 0: 0, 1500 * time.Millisecond: 1500 * time.Millisecond, time.Hour * 24 * 365: (1<<32 - 1) * time.Millisecond,
	} {
		got, err := parseHello(appendHello(nil, in))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	assert.Equal(t, "VI port 1\x00\x00\x05\xdc", string(appendHello(nil, 1500*time.Millisecond)))
}

// FuzzMessages: what parses is what would have been sent.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendHello(nil, time.Second))
	for i := range filters {
		f.Add(appendFilter(nil, &filters[i]))
	}
	f.Add([]byte("\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if within, err := parseHello(b); err == nil {
			require.Equal(t, b, appendHello(nil, within))
		}
		if filter, err := parseFilter(b); err == nil {
			require.Equal(t, b, appendFilter(nil, &filter))
		}
		if id, rest, err := parseNumber(b); err == nil {
			require.Len(t, rest, len(b)-4)
			require.Equal(t, byte(id), b[3])
		}
		for _, r := range parseRefusal(b) {
			require.True(t, r >= ' ' && r <= '~')
		}
	})
}
