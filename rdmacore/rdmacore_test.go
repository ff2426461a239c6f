package rdmacore_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore"
)

// TestSettingsThere: the engine reads what `rnic run` has written.
func TestSettingsThere(t *testing.T) {
	addr := netip.MustParseAddr("2001:db8::1")
	for _, s := range []rdmacore.Settings{
		{Addr: addr},
		{Addr: addr, RoCE: true, CRC: true, PcapPayload: true, Stats: true},
		{Engine: "/e", Addr: addr, Strace: "/s", Faults: "/f", Pcap: "/p", Trace: "/t"},
	} {
		for _, v := range s.Environment() {
			t.Setenv(v[0], v[1])
		}
		got, err := rdmacore.FromEnvironment()
		require.NoError(t, err)
		assert.Equal(t, s, got)
	}
}

// TestSettingsRefused: what a variable says wrong is named.
func TestSettingsRefused(t *testing.T) {
	t.Setenv("SOFTRNIC_ADDR", "")
	_, err := rdmacore.FromEnvironment()
	assert.ErrorContains(t, err, "SOFTRNIC_ADDR")
	assert.ErrorContains(t, err, "rnic run")
	t.Setenv("SOFTRNIC_ADDR", "127.0.0.1")
	for _, name := range []string{"SOFTRNIC_AS", "SOFTRNIC_CRC", "SOFTRNIC_PCAP_PAYLOAD", "SOFTRNIC_STATS"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "maybe")
			_, err := rdmacore.FromEnvironment()
			assert.ErrorContains(t, err, name+` is "maybe"; want `)
		})
	}
	s, err := rdmacore.FromEnvironment()
	require.NoError(t, err)
	assert.Equal(t, rdmacore.Settings{Addr: netip.MustParseAddr("127.0.0.1"), CRC: true}, s, "what is not set")
}
