//go:build unix

package stats_test

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

func open(t *testing.T) *verbs.RNIC {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nic.Close() })
	return nic
}

// serve offers the counters of nics.
func serve(t *testing.T, path string, nics ...*verbs.RNIC) *stats.Server {
	s, err := stats.Offer(path, func() []*verbs.RNIC { return nics })
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestSocket: who may open it is this user alone, and gets what has been counted.
func TestSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	x, y := rnictest.Pair(t, rnictest.Config{Loopback: true})
	_, sink := y.Memory(64)
	_, source := x.Memory(64)
	_, err := y.QP.PostRecv(verbs.Recv{SGL: sink.All()})
	require.NoError(t, err)
	x.Post(verbs.Request{SGL: source.All()})
	x.Wait()
	y.Wait()
	s := serve(t, "", x.NIC, y.NIC)
	for path, mode := range map[string]os.FileMode{s.Path(): os.ModeSocket | 0o600, stats.Folder(): os.ModeDir | 0o700} {
		info, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode(), path)
	}
	list, err := stats.Sockets()
	require.NoError(t, err)
	require.Equal(t, []string{s.Path()}, list)
	got, err := stats.Read(s.Path())
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), got.PID)
	require.Len(t, got.RNICs, 2)
	a, b := got.RNICs[0], got.RNICs[1]
	assert.Equal(t, x.NIC.ID().String(), a.ID)
	assert.Equal(t, map[string]uint64{"send": 64}, a.By["out_octets"])
	assert.EqualValues(t, 64, b.Sum("in_octets"))
	assert.EqualValues(t, 1, a.Counters["qp"])
	assert.EqualValues(t, 1, a.Counters["iwOutRdmaSends"])
	require.Len(t, b.QPs, 1)
	assert.Equal(t, "RTS", b.QPs[0].State)
	assert.NotEmpty(t, b.QPs[0].Remote)
	assert.EqualValues(t, 1, b.QPs[0].Counters["iwInRdmaSends"])
	assert.Contains(t, b.Lines(), stats.Line{Name: "completions[Success]", Value: 1})

	left, err := os.ReadDir(stats.Folder())
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing but the socket")
}

// TestSocketRefuses a folder that is not this user's alone, and a path that is in use.
func TestSocketRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	none, err := stats.Sockets()
	require.NoError(t, err)
	assert.Empty(t, none)
	require.NoError(t, os.Mkdir(stats.Folder(), 0o700))
	require.NoError(t, os.Chmod(stats.Folder(), 0o755))
	_, err = stats.Offer("", nil)
	require.ErrorContains(t, err, "mode 0700")
	_, err = stats.Sockets()
	require.ErrorContains(t, err, "mode 0700")
	require.NoError(t, os.Remove(stats.Folder()))
	require.NoError(t, os.Symlink(t.TempDir(), stats.Folder()))
	_, err = stats.Offer("", nil)
	require.ErrorContains(t, err, "has to be a folder of this user")

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = stats.Offer(file, nil)
	require.ErrorContains(t, err, "no socket")
	s := serve(t, filepath.Join(dir, "s"), open(t))
	_, err = stats.Offer(s.Path(), nil)
	require.ErrorContains(t, err, "choose another name")
}

// TestSocketLeftBehind: a socket of a process that was killed is removed by the next, and Close
// removes its own.
func TestSocketLeftBehind(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	first := serve(t, "", open(t))
	require.NoError(t, first.Close())
	_, err := os.Lstat(first.Path())
	require.ErrorIs(t, err, os.ErrNotExist)

	dead := filepath.Join(stats.Folder(), strconv.Itoa(1<<30)+".sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = stats.Read(dead)
	require.ErrorContains(t, err, "is gone")
	s := serve(t, "", open(t))
	list, err := stats.Sockets()
	require.NoError(t, err)
	assert.Equal(t, []string{s.Path()}, list)

	l, err = net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	stats.Tidy()
	list, err = stats.Sockets()
	require.NoError(t, err)
	assert.Equal(t, []string{s.Path()}, list, "the one that serves stays")
}

// TestSocketOfAnother: the end of an offer leaves alone what stands at its path by now, a live socket or a file of
// the user's.
func TestSocketOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := serve(t, path, open(t))
	require.NoError(t, os.Remove(path))
	second := serve(t, path, open(t))
	require.NoError(t, first.Close())
	_, err := stats.Read(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte("the user's"), 0o600))
	require.NoError(t, second.Close())
	assert.FileExists(t, path)
}

// TestSocketTakesNothing: what a reader writes changes nothing, and one that does not read keeps
// nobody.
func TestSocketTakesNothing(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "s"), open(t))
	for range 3 {
		c, err := net.Dial("unix", s.Path())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, _ = c.Write([]byte("{}"))
	}
	got, err := stats.Read(s.Path())
	require.NoError(t, err)
	assert.Len(t, got.RNICs, 1)
}

// TestReadersThatDoNotRead: any number of clients connect and read nothing of more than a socket takes. They keep none
// who reads waiting, and Close does not wait for them either.
func TestReadersThatDoNotRead(t *testing.T) {
	nic := open(t)
	for range 400 {
		_, err := nic.CreateEndpoint(verbs.QPConfig{SendDepth: 1, RecvDepth: 1})
		require.NoError(t, err)
	}
	s := serve(t, filepath.Join(t.TempDir(), "s"), nic)
	var first net.Conn
	for range 200 {
		c, err := net.Dial("unix", s.Path())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		if first == nil {
			first = c
		}
	}
	for range 5 {
		got, err := stats.Read(s.Path())
		require.NoError(t, err)
		require.Len(t, got.RNICs[0].QPs, 400)
	}
	part, _ := io.ReadAll(first)
	t.Logf("%d octets of those queue pairs", len(part))
	require.False(t, json.Valid(part), "all of it was in the socket: make more queue pairs")
	require.NoError(t, s.Close())
}

// TestTables: each counter has a name of its own, a word of help, and one way to be read.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	checkTable(t, seen, stats.QPCounters)
	checkTable(t, seen, stats.CQCounters)
	checkTable(t, seen, stats.SRQCounters)
	checkTable(t, seen, stats.RNICCounters)
}

func checkTable[T any](t *testing.T, seen map[string]bool, table []stats.Counter[T]) {
	for _, c := range table {
		assert.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
		assert.NotEmpty(t, c.Help, c.Name)
		assert.Equal(t, c.Label == "", c.One != nil, c.Name)
		assert.Equal(t, c.Label != "", c.ByLabel != nil, c.Name)
	}
}

// TestJSON: a snapshot comes back as it was, also of a closed RNIC, whose counters stay.
func TestJSON(t *testing.T) {
	nic := open(t)
	require.NoError(t, nic.Close())
	was := stats.Take(nic)
	text, err := json.Marshal(was)
	require.NoError(t, err)
	var is stats.Snapshot
	require.NoError(t, json.Unmarshal(text, &is))
	assert.Equal(t, was.RNICs[0].Counters, is.RNICs[0].Counters)
	assert.NotEqual(t, uuid.UUID{}.String(), is.RNICs[0].ID)
}

// TestName: an RNIC is shown with the name that it was opened with.
func TestName(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{Name: "mlx5_0"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nic.Close() })
	assert.Equal(t, []string{"mlx5_0", ""}, []string{stats.Take(nic).RNICs[0].Name, stats.Take(open(t)).RNICs[0].Name})
}
