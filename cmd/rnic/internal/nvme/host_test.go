package nvme

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/cmd/rnic/internal/pattern"
	"github.com/softrnic/softrnic/ulp/nvmeof"
)

// served runs a target of these disks, and gives its address.
func served(t *testing.T, disks ...string) string {
	return clitest.StartServer(t, append([]string{"nvme", "serve", "--listen", "127.0.0.1:0"}, disks...)...).Addr
}

func run(t *testing.T, args ...string) clitest.Result {
	return clitest.Run(t.Context(), append([]string{"nvme"}, args...)...)
}

// file makes one of n octets of a pattern.
func file(t *testing.T, n int) (name string, b []byte) {
	b = make([]byte, n)
	pattern.Pattern(7).Fill(b, 0)
	name = filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(name, b, 0o600))
	return name, b
}

func TestLs(t *testing.T) {
	addr := served(t, image(t, 3<<20), "mem:1")
	r := run(t, "ls", addr)
	require.Zero(t, r.Status, r.Stderr)
	assert.Contains(t, r.Stdout, "nqn.2026-01.org.softrnic:disks at "+addr+"\n")
	assert.Regexp(t, `(?m)^ +1  3,145,728    512  [0-9a-f]{32}$`, r.Stdout)
	assert.Regexp(t, `(?m)^ +2  1,048,576    512  [0-9a-f]{32}$`, r.Stdout)
	for _, args := range [][]string{{addr}, {addr, "--nqn", "nqn.2026-01.org.softrnic:disks", "--queues", "3"}} {
		r = run(t, append([]string{"ls", "--json"}, args...)...)
		require.Zero(t, r.Status, r.Stderr)
		var l listing
		clitest.Decode(t, r.Stdout, &l)
		require.Len(t, l.Subsystems, 1)
		s := l.Subsystems[0]
		assert.Equal(t, addr, s.Address)
		assert.Equal(t, 1<<20, s.Controller.MaxTransfer)
		require.Len(t, s.Namespaces, 2)
		assert.EqualValues(t, 3<<20, s.Namespaces[0].Octets)
		assert.EqualValues(t, 2, s.Namespaces[1].ID)
	}
}

// A subsystem that does not answer is told beside those that do, and the status is not 0.
func TestLsUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	require.NoError(t, l.Close())
	addr := served(t, "mem:1", "--advertise", nobody)
	r := run(t, "ls", addr)
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stdout, "softrnic:disks at "+nobody+": no answer\n")
	assert.Contains(t, r.Stderr, "--nqn connects to "+addr+" itself")
	assert.Contains(t, r.Stderr, "is a server listening there?")
	assert.Zero(t, run(t, "ls", addr, "--nqn", "nqn.2026-01.org.softrnic:disks").Status)
	r = run(t, "ls", nobody, "--json")
	assert.Equal(t, 1, r.Status)
	assert.Regexp(t, `^\{"error":\{.*"cause":"unreachable".*\}\}\n$`, r.Stdout)
}

// What is written is read again, whole and in part, of any length.
func TestWriteAndRead(t *testing.T) {
	disk := image(t, 32<<20)
	addr := served(t, "mem:1", disk)
	const octets, at = 20<<20 + 700, 1 << 20
	name, want := file(t, octets)
	r := run(t, "write", addr, name, "--offset", "1M", "--namespace", "2", "--json")
	require.Zero(t, r.Status, r.Stderr)
	var m moved
	clitest.Decode(t, r.Stdout, &m)
	assert.EqualValues(t, octets, m.Octets)
	assert.EqualValues(t, at, m.Offset)
	assert.EqualValues(t, 2, m.Namespace)
	whole, err := os.ReadFile(disk)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, whole[at:at+octets]))
	assert.Zero(t, bytes.Trim(whole[at+octets:], "\x00"), "the rest stays")

	back := filepath.Join(t.TempDir(), "back")
	r = run(t, "read", addr, back, "--offset", "1M", "--length", "20972220", "--namespace", "2")
	require.Zero(t, r.Status, r.Stderr)
	assert.Contains(t, r.Stdout, "20,972,220 octets at 1,048,576 of namespace 2")
	got, err := os.ReadFile(back)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
	r = run(t, "read", addr, back, "--namespace", "2")
	require.Zero(t, r.Status, r.Stderr)
	got, err = os.ReadFile(back)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(whole, got))

	r = clitest.RunInput(t.Context(), "twenty octets of text", "nvme", "write", addr, "-", "--offset", "512", "--length", "20")
	require.Zero(t, r.Status, r.Stderr)
	r = run(t, "read", addr, "-", "--offset", "512", "--length", "21")
	require.Zero(t, r.Status, r.Stderr)
	assert.Equal(t, "twenty octets of tex\x00", r.Stdout, "nothing but the data")
}

func TestCheck(t *testing.T) {
	disk := image(t, 16<<20)
	addr := served(t, disk)
	args := []string{"check", addr, "--offset", "1M", "--length", "9M", "--yes"}
	r := run(t, args...)
	require.Zero(t, r.Status, r.Stderr)
	assert.Contains(t, r.Stdout, "9,437,184 octets at 1,048,576 of namespace 1: all verified")
	r = run(t, append(args, "--json")...)
	var report checked
	clitest.Decode(t, r.Stdout, &report)
	assert.EqualValues(t, 9<<20, report.Verified)
	require.Len(t, report.Steps, 3)
	b, err := os.ReadFile(disk)
	require.NoError(t, err)
	assert.Zero(t, bytes.Trim(b[:1<<20], "\x00"), "nothing before the range")
	assert.Zero(t, bytes.Trim(b[10<<20:], "\x00"), "nothing behind it")
	assert.NotZero(t, bytes.Trim(b[1<<20:10<<20], "\x00"))
}

// forgetful is a disk that spoils an octet when it is flushed.
type forgetful struct{ nvmeof.Disk }

func (f forgetful) Sync() error {
	b := make([]byte, 1)
	_, _ = f.ReadAt(b, 5000)
	b[0]++
	_, err := f.WriteAt(b, 5000)
	return err
}

// A disk that does not keep what it was given is found out, with the place.
func TestCheckFinds(t *testing.T) {
	s, err := nvmeof.NewSubsystem("nqn.2026-01.org.softrnic:forgetful", []nvmeof.Disk{forgetful{nvmeof.Memory(1 << 20)}})
	require.NoError(t, err)
	target, err := nvmeof.New(nvmeof.Config{}, s)
	require.NoError(t, err)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- target.Serve(ctx, l) }()
	r := run(t, "check", l.Addr().String(), "--offset", "4096", "--length", "64K", "--yes")
	assert.Equal(t, 1, r.Status)
	assert.Regexp(t, "octet 5000 of namespace 1 is 0x[0-9a-f]+, and not what was written there", r.Stderr)
	assert.Empty(t, r.Stdout)
	cancel()
	require.NoError(t, <-served)
	require.NoError(t, target.Close())
}

// Nothing is overwritten that the user has not named, and what cannot be is refused before anything is sent.
func TestHostRefusals(t *testing.T) {
	disk := image(t, 1<<20)
	addr := served(t, disk, "mem:1")
	name, _ := file(t, 4096)
	long, _ := file(t, 2<<20)
	empty, _ := file(t, 0)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"argument ADDR is missing", []string{"ls"}},
		{"--offset is missing: what is there is overwritten", []string{"write", addr, name}},
		{"--offset is missing: what is there is overwritten", []string{"check", addr, "--yes", "--length", "1M"}},
		{"--length is missing: what is there is overwritten", []string{"check", addr, "--yes", "--offset", "0"}},
		{"--yes is missing: 512 octets from 1024 on of namespace 1 are lost", []string{"check", addr, "--offset", "1K", "--length", "512"}},
		{"want a block at least", []string{"check", addr, "--offset", "0", "--length", "0", "--yes"}},
		{"want a multiple of the block, 512", []string{"check", addr, "--offset", "1", "--length", "512", "--yes"}},
		{"want a multiple of the block, 512", []string{"check", addr, "--offset", "0", "--length", "513", "--yes"}},
		{"namespace 1 has 1048576", []string{"check", addr, "--offset", "512", "--length", "1M", "--yes"}},
		{"want a multiple of the block, 512", []string{"write", addr, name, "--offset", "100"}},
		{"namespace 1 has 1048576", []string{"write", addr, long, "--offset", "0"}},
		{"is empty", []string{"write", addr, empty, "--offset", "0"}},
		{"does not say how long it is", []string{"write", addr, "-", "--offset", "0"}},
		{"no such file", []string{"write", addr, name + "none", "--offset", "0"}},
		{"namespace 1 has 1048576", []string{"read", addr, name, "--offset", "2M"}},
		{"give a FILE", []string{"read", addr, "-", "--json"}},
	} {
		r := run(t, c.args...)
		assert.Equal(t, 2, r.Status, c.args)
		assert.Contains(t, r.Stderr, c.says)
		if slices.Contains(c.args, "--json") {
			assert.Contains(t, r.Stdout, `{"error":{`)
		} else {
			assert.Empty(t, r.Stdout)
		}
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"namespace 3: it is not there", []string{"read", addr, name, "--namespace", "3"}},
		{"it has no subsystem of that NQN", []string{"ls", addr, "--nqn", "nqn.2026-01.org.softrnic:none"}},
		{"ended before --length", []string{"write", addr, name, "--offset", "0", "--length", "8192"}},
	} {
		r := run(t, c.args...)
		assert.Equal(t, 1, r.Status, c.args)
		assert.Contains(t, r.Stderr, c.says)
	}
	b, err := os.ReadFile(disk)
	require.NoError(t, err)
	assert.Zero(t, bytes.Trim(b, "\x00"))
}

// serve says what to paste on a Linux host.
func TestServeTells(t *testing.T) {
	for _, c := range []struct{ listen, advertise, says string }{
		{"127.0.0.1:0", "", "nvme connect -t rdma -a 127.0.0.1 -s PORT -n nqn.2026-01.org.softrnic:disks"},
		{"127.0.0.1:0", "192.0.2.7:4421", "nvme connect -t rdma -a 192.0.2.7 -s 4421 -n nqn.2026-01.org.softrnic:disks"},
		{"0.0.0.0:0", "", "-s PORT -n nqn.2026-01.org.softrnic:disks"},
	} {
		args := []string{"nvme", "serve", "--listen", c.listen, "mem:1"}
		if c.advertise != "" {
			args = append(args, "--advertise", c.advertise)
		}
		s := clitest.StartServer(t, args...)
		_, port, err := net.SplitHostPort(s.Addr)
		require.NoError(t, err)
		line := <-s.Log
		assert.Contains(t, line, strings.ReplaceAll(c.says, "PORT", port))
		assert.NotContains(t, line, "-a 0.0.0.0")
	}
}
