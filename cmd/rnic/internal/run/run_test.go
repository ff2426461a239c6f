package run

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/rdmacore"
)

func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"run", "COMMAND is missing"},
		{"run --as ib -- true", "want iwarp or roce"},
		{"run --crc maybe -- true", "want on or off"},
		{"run --check -- true", "runs no COMMAND"},
		{"run --addr host -- true", "want an address"},
		{"run --addr fe80::1%lo -- true", "want an address"},
		{"run --device mlx5_0,nic=1 -- true", `there is no "nic=1"; want NAME`},
		{"run --device a --addr 127.0.0.1 -- true", "give each --device its own: --device NAME=127.0.0.1"},
		{"run --devices /nowhere -- true", "--devices: open /nowhere"},
	} {
		r := clitest.Run(t.Context(), strings.Fields(tt.args)...)
		assert.Equal(t, 2, r.Status, tt.args)
		assert.Contains(t, r.Stderr, tt.want)
	}
}

func TestLibrariesIn(t *testing.T) {
	dir := t.TempDir()
	_, err := librariesIn(dir)
	require.ErrorContains(t, err, rdmacore.EngineLibrary)
	require.ErrorContains(t, err, "make c")
	require.NoError(t, os.WriteFile(filepath.Join(dir, rdmacore.EngineLibrary), nil, 0o644))
	_, err = librariesIn(dir)
	require.ErrorContains(t, err, rdmacore.PreloadLibrary)
	require.NoError(t, os.WriteFile(filepath.Join(dir, rdmacore.PreloadLibrary), nil, 0o644))
	got, err := librariesIn(dir)
	require.NoError(t, err)
	assert.Equal(t, libraries{filepath.Join(dir, rdmacore.EngineLibrary), filepath.Join(dir, rdmacore.PreloadLibrary)}, got)

	spaced := filepath.Join(dir, "a b")
	require.NoError(t, os.Rename(dir, dir+"x"))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.Rename(dir+"x", spaced))
	_, err = librariesIn(spaced)
	assert.ErrorContains(t, err, "without spaces")
}

func TestEnvironment(t *testing.T) {
	f := flags{addr: netip.MustParseAddr("127.0.0.1"), as: "roce", crc: true, strace: "/t"}
	got := map[string]string{}
	libs := libraries{"/e", "/p"}
	for _, v := range environment(f.settings(libs), "/tree", "/p:/other") {
		got[v[0]] = v[1]
	}
	assert.Equal(t, map[string]string{
		"LD_PRELOAD": "/p:/other", "SYSFS_PATH": "/tree", "SOFTRNIC_ENGINE": "/e", "SOFTRNIC_ADDR": "127.0.0.1", "SOFTRNIC_DEVICES": "",
		"SOFTRNIC_AS": "roce", "SOFTRNIC_CRC": "on", "SOFTRNIC_STRACE": "/t",
		"SOFTRNIC_FAULTS": "", "SOFTRNIC_PCAP": "", "SOFTRNIC_TRACE": "", "SOFTRNIC_PCAP_PAYLOAD": "off", "SOFTRNIC_STATS": "off",
	}, got)
}

func TestHost(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	put("etc/os-release", "NAME=x\nID=rocky\nID_LIKE=\"rhel centos fedora\"\n")
	rows, complete := host(root)
	assert.False(t, complete)
	assert.Contains(t, rows, row{"libibverbs", "no", "dnf install libibverbs"})
	assert.Contains(t, rows, row{"ib_write_bw, ib_send_lat", "no, not needed", "dnf install perftest"})
	put("usr/lib64/libibverbs.so.1", "")
	put("usr/lib/x86_64-linux-gnu/librdmacm.so.1", "")
	put("usr/lib64/libibverbs/libhfi1verbs-rdmav34.so", "")
	_, complete = host(root)
	assert.False(t, complete)
	put("etc/libibverbs.d/hfi1verbs.driver", "")
	rows, complete = host(root)
	assert.True(t, complete)
	assert.Contains(t, rows, row{"libibverbs", "yes", ""})
}

func TestInstall(t *testing.T) {
	p := packages{"a", "b", "c"}
	assert.Equal(t, "apt-get install a", install("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", p))
	assert.Equal(t, "zypper install c", install("ID=\"opensuse-leap\"\n", p))
	assert.Equal(t, "zypper install c", install("ID=\"sles\"\nID_LIKE=\"suse\"\n", p))
	assert.Equal(t, "Debian: apt-get install a; Fedora: dnf install b; SUSE: zypper install c", install("ID=arch\n", p))
}
