package sysfs_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
)

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name      string
		config    sysfs.Config
		node, gid string
	}{
		{
			"IPv4, iWARP", sysfs.Config{Addr: netip.MustParseAddr("192.0.2.254"), GUID: [8]byte{0x52, 0x54, 0, 0xff, 0xfe, 1, 2, 3}, Interface: "eth0"},
			"4: RNIC", "0000:0000:0000:0000:0000:ffff:c000:02fe",
		},
		{
			"IPv6, RoCE", sysfs.Config{Addr: netip.MustParseAddr("2001:db8::1"), RoCE: true, Interface: "lo"},
			"1: CA", "2001:0db8:0000:0000:0000:0000:0000:0001",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, sysfs.Write(dir, tt.config))
			read := func(name string) string {
				text, err := os.ReadFile(filepath.Join(dir, "class", name))
				require.NoError(t, err)
				require.Equal(t, byte('\n'), text[len(text)-1], name)
				return string(text[:len(text)-1])
			}
			assert.Equal(t, tt.node, read("infiniband/softrnic0/node_type"))
			assert.Equal(t, tt.gid, read("infiniband/softrnic0/ports/1/gids/0"))
			assert.Equal(t, tt.config.Interface, read("infiniband/softrnic0/ports/1/gid_attrs/ndevs/0"))
			assert.DirExists(t, filepath.Join(dir, "class", "infiniband", "softrnic0", "device", "net", tt.config.Interface))
			assert.Equal(t, "softrnic0", read("infiniband/softrnic0/device/infiniband_verbs/uverbs0/ibdev"), "a link")
			assert.Equal(t, read("infiniband/softrnic0/device/modalias"), read("infiniband_verbs/uverbs0/device/modalias"), "a link")
			if !tt.config.RoCE {
				assert.Equal(t, "5254:00ff:fe01:0203", read("infiniband/softrnic0/node_guid"))
			}
		})
	}
}

func TestWriteFails(t *testing.T) {
	assert.Error(t, sysfs.Write(t.TempDir()+"/x\x00", sysfs.Config{Interface: "lo"}))
}
