package sysfs_test

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
)

func addrs(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func rate(t *testing.T, gbps int) sysfs.Rate {
	r, err := sysfs.RateOf(gbps)
	require.NoError(t, err)
	return r
}

// reader reads files below a folder.
func reader(t *testing.T, dir string) func(name string) string {
	return func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, byte('\n'), text[len(text)-1], name)
		return string(text[:len(text)-1])
	}
}

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name      string
		config    sysfs.Config
		node, gid string
	}{
		{
			"IPv4, iWARP", sysfs.Config{GIDs: addrs("192.0.2.254"), GUID: [8]byte{0x52, 0x54, 0, 0xff, 0xfe, 1, 2, 3}, Interface: "eth0"},
			"4: RNIC", "0000:0000:0000:0000:0000:ffff:c000:02fe",
		},
		{
			"IPv6, RoCE", sysfs.Config{GIDs: addrs("2001:db8::1"), RoCE: true, Interface: "lo"},
			"1: CA", "2001:0db8:0000:0000:0000:0000:0000:0001",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.config.Rate = rate(t, 0)
			require.NoError(t, sysfs.Write(dir, t.TempDir(), []sysfs.Config{tt.config}))
			read := reader(t, filepath.Join(dir, "class"))
			assert.Equal(t, tt.node, read("infiniband/softrnic0/node_type"))
			assert.Equal(t, tt.gid, read("infiniband/softrnic0/ports/1/gids/0"))
			assert.Equal(t, "100 Gb/sec (4X EDR)", read("infiniband/softrnic0/ports/1/rate"))
			assert.Equal(t, tt.config.Interface, read("infiniband/softrnic0/ports/1/gid_attrs/ndevs/0"))
			assert.DirExists(t, filepath.Join(dir, "class", "infiniband", "softrnic0", "device", "net", tt.config.Interface))
			assert.Equal(t, "softrnic0", read("infiniband/softrnic0/device/infiniband_verbs/uverbs0/ibdev"), "a link")
			assert.Equal(t, read("infiniband/softrnic0/device/modalias"), read("infiniband_verbs/uverbs0/device/modalias"), "a link")
			if !tt.config.RoCE {
				assert.Equal(t, "5254:00ff:fe01:0203", read("infiniband/softrnic0/node_guid"))
			}
			assert.NoDirExists(t, filepath.Join(dir, "bus"), "it is no PCI function")
		})
	}
}

// TestWriteFunctions: devices that are PCI functions, on a host that has one itself. Programs find all by the bus, and ours where
// the kernel has such devices.
func TestWriteFunctions(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	hosts := root + "/sys/devices/pci0000:00/0000:00:01.0"
	require.NoError(t, os.MkdirAll(hosts, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(hosts, "vendor"), []byte("0x1af4\n"), 0o644))
	require.NoError(t, os.MkdirAll(root+"/sys/bus/pci/devices", 0o755))
	require.NoError(t, os.Symlink("../../../devices/pci0000:00/0000:00:01.0", root+"/sys/bus/pci/devices/0000:00:01.0"))
	devices := []sysfs.Config{
		{Name: "mlx5_0", GIDs: addrs("192.0.2.1", "fe80::1"), GUID: [8]byte{1}, Interface: "eth0", Rate: rate(t, 400), PCI: "0000:3b:00.0", NUMA: 1, CPUs: "0-3,33"},
		{Name: "mlx5_1", Number: 1, GIDs: addrs("192.0.2.2"), GUID: [8]byte{2}, RoCE: true, Interface: "eth1", Rate: rate(t, 10), PCI: "0000:3b:00.1", NUMA: -1, CPUs: "0"},
	}
	require.NoError(t, sysfs.Write(dir, root, devices))
	read := reader(t, dir)
	for _, function := range []string{"class/infiniband/mlx5_0/device", "bus/pci/devices/0000:3b:00.0", "class/pci_bus/0000:3b/../../0000:3b:00.0"} {
		// A shell's .. would be the text's; the kernel, and these, go by the link.
		real, err := filepath.EvalSymlinks(dir + "/" + function)
		require.NoError(t, err)
		assert.Equal(t, dir+"/devices/pci0000:3b/0000:3b:00.0", real, function)
	}
	assert.Equal(t, "1", read("class/infiniband/mlx5_0/device/numa_node"))
	assert.Equal(t, "00000002,0000000f", read("class/infiniband/mlx5_0/device/local_cpus"))
	assert.Equal(t, "0-3,33", read("class/infiniband/mlx5_0/device/local_cpulist"))
	assert.Equal(t, "32.0 GT/s PCIe", read("class/infiniband/mlx5_0/device/max_link_speed"))
	assert.Equal(t, "16", read("bus/pci/devices/0000:3b:00.0/max_link_width"))
	assert.Equal(t, "400 Gb/sec (4X NDR)", read("class/infiniband/mlx5_0/ports/1/rate"))
	assert.Equal(t, "fe80:0000:0000:0000:0000:0000:0000:0001", read("class/infiniband/mlx5_0/ports/1/gids/1"))
	assert.Equal(t, "RoCE v2", read("class/infiniband/mlx5_0/ports/1/gid_attrs/types/1"))
	assert.Equal(t, "mlx5_1", read("class/infiniband_verbs/uverbs1/ibdev"))
	assert.Equal(t, "231:193", read("class/infiniband_verbs/uverbs1/dev"))
	assert.Equal(t, "-1", read("class/infiniband_verbs/uverbs1/device/numa_node"))
	assert.Equal(t, "1: CA", read("class/infiniband/mlx5_1/node_type"))
	assert.Equal(t, "0x1af4", read("bus/pci/devices/0000:00:01.0/vendor"), "the host's")
	to, err := os.Readlink(dir + "/class/infiniband/mlx5_0")
	require.NoError(t, err)
	assert.Equal(t, "../../devices/pci0000:3b/0000:3b:00.0/infiniband/mlx5_0", to, "hwloc looks for the function in it")

	config, err := os.ReadFile(dir + "/class/infiniband/mlx5_0/device/config")
	require.NoError(t, err)
	require.Len(t, config, 256)
	assert.Equal(t, []byte{0x86, 0x80, 0xf0, 0x24}, config[:4])
	assert.Equal(t, []byte{5, 1}, config[0x40+0x12:][:2], "32 GT/s, 16 lanes")

	n := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "config" {
			return err
		}
		n++
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		text, ok := sysfs.Text(devices, name)
		assert.True(t, ok, name)
		assert.Equal(t, read(name)+"\n", text, name)
		return nil
	}))
	assert.Greater(t, n, 80)
	text, ok := sysfs.Text(devices, "class/infiniband/mlx5_1/ports/1/rate")
	assert.True(t, ok)
	assert.Equal(t, "10 Gb/sec (1X FDR10)\n", text, "by the name that programs use")

	assert.True(t, sysfs.HostHasBus(root, "0000:00:05.0"))
	assert.False(t, sysfs.HostHasBus(root, "0000:3b:00.0"))
}

func TestWriteFails(t *testing.T) {
	assert.Error(t, sysfs.Write(t.TempDir()+"/x\x00", "/", []sysfs.Config{{Interface: "lo"}}))
}

func TestRates(t *testing.T) {
	_, err := sysfs.RateOf(123)
	assert.ErrorContains(t, err, "10g, 25g")
	for octets, want := range map[int]uint8{0: 5, 256: 1, 1024: 3, 4096: 5} {
		got, ok := sysfs.MTUOf(octets)
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
	_, ok := sysfs.MTUOf(1500)
	assert.False(t, ok)
}

func TestCPUs(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		name = filepath.Join(root, "sys", "devices", "system", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	list, there := sysfs.CPUsOf(root, 0)
	assert.Equal(t, "0", list, "no /sys")
	assert.False(t, there)
	put("cpu/online", "0-7\n")
	put("node/node1/cpulist", "4-7\n")
	list, there = sysfs.CPUsOf(root, 1)
	assert.Equal(t, "4-7", list)
	assert.True(t, there)
	for _, node := range []int{-1, 2} {
		list, there = sysfs.CPUsOf(root, node)
		assert.Equal(t, "0-7", list)
		assert.False(t, there)
	}
}
