//go:build amd64 || arm64

package run

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
)

// program writes the beginning of a program: its header, and its interpreter if it has one.
func program(t *testing.T, m elf.Machine, interpreter string) string {
	t.Helper()
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(m), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	var b bytes.Buffer
	if interpreter != "" {
		h.Phnum = 1
	}
	require.NoError(t, binary.Write(&b, binary.LittleEndian, h))
	if interpreter != "" {
		p := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 64 + 56, Filesz: uint64(len(interpreter) + 1)}
		require.NoError(t, binary.Write(&b, binary.LittleEndian, p))
		b.WriteString(interpreter + "\x00")
	}
	name := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o755))
	return name
}

func TestPreloads(t *testing.T) {
	good := program(t, machine(), "/lib64/ld-linux-x86-64.so.2")
	assert.NoError(t, preloads(good))
	assert.ErrorContains(t, preloads(program(t, machine(), "/lib/ld-musl-x86_64.so.1")), "musl")
	static := program(t, machine(), "")
	assert.ErrorContains(t, preloads(static), "statically linked")
	assert.ErrorContains(t, preloads(program(t, elf.EM_386, "/lib/ld-linux.so.2")), "EM_386")

	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#! "+static+" -x\n"), 0o755))
	assert.ErrorContains(t, preloads(script), "statically linked", "its interpreter is")
	require.NoError(t, os.WriteFile(script, []byte("echo\n"), 0o755))
	assert.NoError(t, preloads(script))

	f, err := os.Open(good)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Chmod(good, 0o755|os.ModeSetuid))
	assert.NoError(t, privileged(f), "setuid to who runs it changes nothing")
	require.NoError(t, os.Truncate(static, 40))
	assert.Error(t, preloads(static))
}

// The status of the program is the command's; a signal that ended it is as a shell has it.
func TestWait(t *testing.T) {
	for _, tt := range []struct {
		script string
		want   int
	}{{"exit 0", 0}, {"exit 7", 7}, {"kill -TERM $$", 128 + 15}} {
		err := wait(exec.Command("/bin/sh", "-c", tt.script), nil)
		r := statusOf(t, err)
		assert.Equal(t, tt.want, r, tt.script)
	}
	assert.ErrorContains(t, wait(exec.Command("/none/x"), nil), "/none/x")
}

// A signal goes on to the program, and its end is the command's.
func TestWaitPassesSignals(t *testing.T) {
	signals := make(chan os.Signal, 1)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	p := exec.Command("/bin/sh", "-c", `trap 'exit 9' USR1; echo ready; while :; do read -r x; done`)
	stdin, err := p.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	p.Stdout = w
	done := make(chan error)
	go func() { done <- wait(p, signals) }()
	_, err = bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	signals <- syscall.SIGUSR1
	assert.Equal(t, 9, statusOf(t, <-done))
	w.Close()
}

// statusOf is the exit status that an error of a command means.
func statusOf(t *testing.T, err error) int {
	t.Helper()
	status, ok := cli.Status(err)
	require.True(t, ok, "%v", err)
	return status
}

// Without the libraries, which are not beside a test, nothing is run and no folder is left.
func TestExecuteWithoutLibraries(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	r := clitest.Run(t.Context(), "run", "--", "true")
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "make c")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
	_, status, err := find("no-such-program-anywhere")
	assert.Equal(t, 127, status)
	assert.True(t, errors.Is(err, exec.ErrNotFound))
}
