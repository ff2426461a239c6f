//go:build unix

package stats_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// told is a Controller that keeps what it is told.
type told []stats.Command

func (c *told) Port(*verbs.RNIC) *stats.Port { return &stats.Port{Device: "x0", State: "ACTIVE"} }

func (c *told) Control(cmd stats.Command) (string, error) {
	if cmd.Do == "up" {
		return "", errors.New("it is up")
	}
	*c = append(*c, cmd)
	return "done", nil
}

func controlled(t *testing.T) (*stats.Server, *told) {
	c := &told{}
	nic := open(t)
	s, err := stats.OfferControl(filepath.Join(t.TempDir(), "s"), func() []*verbs.RNIC { return []*verbs.RNIC{nic} }, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, c
}

// TestControl: a command is carried out, once, and who sent it is told what became of it; readers see the port, and the end.
func TestControl(t *testing.T) {
	s, c := controlled(t)
	cmd := stats.Command{Do: "plan", Device: "x0", Text: strings.Repeat("# \n", 10_000)}
	done, err := stats.Order(s.Path(), cmd)
	require.NoError(t, err)
	assert.Equal(t, "done", done)
	assert.Equal(t, told{cmd}, *c)
	_, err = stats.Order(s.Path(), stats.Command{Do: "up"})
	require.EqualError(t, err, "it is up")
	got, err := stats.Read(s.Path())
	require.NoError(t, err)
	assert.Equal(t, &stats.Port{Device: "x0", State: "ACTIVE"}, got.RNICs[0].Port)
	nc, err := net.Dial("unix", s.Path())
	require.NoError(t, err)
	defer nc.Close()
	text, err := io.ReadAll(nc)
	require.NoError(t, err)
	assert.True(t, json.Valid(text))
	assert.Len(t, *c, 1)
	require.NoError(t, s.Close())
	_, err = stats.Order(s.Path(), cmd)
	require.Error(t, err)
}

// TestNoControl: a process that offers its counters alone takes no command.
func TestNoControl(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "s"), open(t))
	_, err := stats.Order(s.Path(), stats.Command{Do: "down"})
	require.ErrorContains(t, err, "takes no commands: it offers its counters alone")
}

// TestControlLarge: a long plan reaches a process that has as much to say.
func TestControlLarge(t *testing.T) {
	const many = 1000
	c, nic := &told{}, open(t)
	s, err := stats.OfferControl(filepath.Join(t.TempDir(), "s"), func() []*verbs.RNIC { return slices.Repeat([]*verbs.RNIC{nic}, many) }, c)
	require.NoError(t, err)
	defer s.Close()
	cmd := stats.Command{Do: "plan", Text: strings.Repeat("#", stats.MaxText-1)}
	_, err = stats.Order(s.Path(), cmd)
	require.NoError(t, err)
	assert.Equal(t, told{cmd}, *c)
}

// TestControlDies: a process that ends of what it is told takes commands all the same.
func TestControlDies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		_ = json.NewEncoder(nc).Encode(stats.Snapshot{PID: 4711, RNICs: []stats.RNIC{{Port: &stats.Port{}}}})
		_ = nc.Close()
	}()
	_, err = stats.Order(path, stats.Command{Do: "fatal"})
	require.ErrorContains(t, err, "process 4711 has ended, or has closed the connection, before it answered")
}

// TestControlNonsense: what is no command does nothing.
func TestControlNonsense(t *testing.T) {
	s, c := controlled(t)
	for _, text := range []string{"", "{", "[1,2]", strings.Repeat("{", 1<<20), `{"do":7}`, "\x00\xff"} {
		nc, err := net.Dial("unix", s.Path())
		require.NoError(t, err)
		_, _ = io.WriteString(nc, text)
		_ = nc.(*net.UnixConn).CloseWrite()
		_, _ = io.Copy(io.Discard, nc)
		_ = nc.Close()
	}
	assert.Empty(t, *c)
}

// TestControlOfAnother: another user's process cannot reach the socket; one that is handed a way there, as past the folder, is refused.
func TestControlOfAnother(t *testing.T) {
	if path := os.Getenv("SOFTRNIC_TEST_CONTROL"); path != "" {
		_, err := stats.Order(path, stats.Command{Do: "down"})
		_, _ = os.Stdout.WriteString("said: " + err.Error() + "\n")
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	s, c := controlled(t)
	exe, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	public, err := os.MkdirTemp("", "control") //nolint:usetesting // others may enter it
	require.NoError(t, err)
	defer os.RemoveAll(public)
	require.NoError(t, os.Chmod(public, 0o755))
	copied := filepath.Join(public, "test")
	require.NoError(t, os.WriteFile(copied, exe, 0o755))
	other := func() string {
		cmd := exec.Command(copied, "-test.run", "TestControlOfAnother$", "-test.v")
		cmd.Dir = "/"
		cmd.Env = []string{"SOFTRNIC_TEST_CONTROL=" + s.Path()}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	assert.Contains(t, other(), "permission denied")
	for dir := filepath.Dir(s.Path()); dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.NoError(t, os.Chmod(s.Path(), 0o666))
	assert.Contains(t, other(), "that is for processes of this user alone: it is a process of another user (65534)")
	assert.Empty(t, *c)
}
