package rdmacore_test

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
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
		{Devices: []rdmacore.Device{
			{Name: "mlx5_0", Addr: addr, Interface: "eth0", NUMA: -1, Rate: 100, MTU: 4096, Ports: 1},
			{
				Name: "rxe0", Addr: netip.MustParseAddr("192.0.2.1"), GIDs: []netip.Addr{addr, netip.MustParseAddr("fe80::1%eth1")}, RoCE: true,
				Interface: "eth1", NUMA: 3, PCI: "0000:3b:00.0", Rate: 400, MTU: 1024, Ports: 1, QPs: 3, CQs: 4, MRs: 5,
			},
		}},
	} {
		for _, v := range s.Environment() {
			t.Setenv(v[0], v[1])
		}
		got, err := rdmacore.FromEnvironment(os.Getenv)
		require.NoError(t, err)
		assert.Equal(t, s, got)
	}
}

// TestSettingsRefused: what a variable says wrong is named.
func TestSettingsRefused(t *testing.T) {
	for _, addr := range []string{"host", "fe80::1%lo"} {
		t.Setenv("SOFTRNIC_ADDR", addr)
		_, err := rdmacore.FromEnvironment(os.Getenv)
		assert.ErrorContains(t, err, "SOFTRNIC_ADDR is \""+addr)
	}
	t.Setenv("SOFTRNIC_ADDR", "127.0.0.1")
	for _, name := range []string{"SOFTRNIC_AS", "SOFTRNIC_CRC", "SOFTRNIC_PCAP_PAYLOAD", "SOFTRNIC_STATS"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "maybe")
			_, err := rdmacore.FromEnvironment(os.Getenv)
			assert.ErrorContains(t, err, name+` is "maybe"; want `)
		})
	}
	s, err := rdmacore.FromEnvironment(os.Getenv)
	require.NoError(t, err)
	assert.Equal(t, rdmacore.Settings{Addr: netip.MustParseAddr("127.0.0.1"), CRC: true}, s, "what is not set")
}

// TestTemplate: the files of a device without an address are those of each device, and the engine has the text of each.
func TestTemplate(t *testing.T) {
	template, tree := t.TempDir(), t.TempDir()
	require.NoError(t, rdmacore.WriteTemplate(template))
	s := rdmacore.Settings{Devices: []rdmacore.Device{{
		Name: "softrnic0", Addr: netip.MustParseAddr("192.0.2.1"), RoCE: true, Interface: "eth7", NUMA: -1,
	}}}
	require.NoError(t, s.WriteTree(tree))
	differ := []string{}
	n := 0
	require.NoError(t, filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		n++
		name, err := filepath.Rel(tree, path)
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		said, ok := s.File(name)
		assert.True(t, ok, name)
		assert.Equal(t, string(text), said, name)
		other, err := os.ReadFile(filepath.Join(template, name))
		require.NoError(t, err)
		if string(other) != said {
			differ = append(differ, strings.TrimPrefix(name, "class/infiniband/softrnic0/"))
		}
		return nil
	}))
	assert.Greater(t, n, 20)
	// rdmacore/preload/path.c asks the engine for what is below class/infiniband: these have to be there.
	assert.ElementsMatch(t, []string{"node_type", "node_guid", "sys_image_guid", "ports/1/gids/0", "ports/1/gid_attrs/ndevs/0"}, differ)
	_, ok := s.File("class/infiniband/softrnic0/none")
	assert.False(t, ok)
}
