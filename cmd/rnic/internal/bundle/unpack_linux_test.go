package bundle

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// another is a user that this one is not, as root can make files of.
const another = 54321

// library is what stands for one: 300,000 octets.
var library = bytes.Repeat([]byte("library "), 300_000/8)

// bundled are two libraries, as tools/bundle.sh makes them.
func bundled(t *testing.T) []packed {
	t.Helper()
	made, list := fstest.MapFS{}, ""
	for _, name := range []string{"a.so", "b.so"} {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		text := append([]byte(name), library...)
		_, err := w.Write(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		made["made/"+name+".gz"] = &fstest.MapFile{Data: z.Bytes()}
		list += fmt.Sprintf("%x  %s\n", sha256.Sum256(text), name)
	}
	made[sums] = &fstest.MapFile{Data: []byte(list)}
	files, err := load(made)
	require.NoError(t, err)
	require.Len(t, files, 2)
	return files
}

// whole sees that the folder has the libraries and nothing else, for this user alone.
func whole(t *testing.T, dir string, files []packed) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, len(files))
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.name))
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		require.Equal(t, f.hash, hex.EncodeToString(sum[:]))
		info, err := os.Lstat(filepath.Join(dir, f.name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o500), info.Mode())
		require.True(t, own(info))
	}
	for d := range 2 {
		info, err := os.Stat(filepath.Join(dir, []string{".", ".."}[d]))
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o700, info.Mode())
	}
}

// TestUnpack: to a folder that is made, once.
func TestUnpack(t *testing.T) {
	files, cache := bundled(t), filepath.Join(t.TempDir(), "none", "yet")
	dir, err := unpack(cache, files)
	require.NoError(t, err)
	whole(t, dir, files)
	before, err := os.Stat(filepath.Join(dir, "a.so"))
	require.NoError(t, err)
	again, err := unpack(cache, files)
	require.NoError(t, err)
	require.Equal(t, dir, again)
	after, err := os.Stat(filepath.Join(dir, "a.so"))
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "what is right stays")

	files[0].hash = files[1].hash
	_, err = unpack(cache, files)
	assert.ErrorContains(t, err, "damaged")
	assert.ErrorContains(t, err, "XDG_CACHE_HOME")
}

// TestUnpackReplaces what somebody has put in a library's place, or changed.
func TestUnpackReplaces(t *testing.T) {
	files := bundled(t)
	for name, spoil := range map[string]func(file string) error{
		"an octet": func(file string) error {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			b[len(b)/2]++
			if err := os.Chmod(file, 0o700); err != nil {
				return err
			}
			return os.WriteFile(file, b, 0o700)
		},
		"cut":               func(file string) error { return os.Truncate(file, 1000) },
		"gone":              os.Remove,
		"writable to all":   func(file string) error { return os.Chmod(file, 0o722) },
		"another name":      func(file string) error { return os.Link(file, filepath.Join(filepath.Dir(file), "..", "other")) },
		"a link":            func(file string) error { return move(file, func(at string) error { return os.Symlink(at, file) }) },
		"a pipe":            func(file string) error { return move(file, func(string) error { return syscall.Mkfifo(file, 0o600) }) },
		"of another":        chown,
		"folders open":      func(file string) error { return os.Chmod(filepath.Dir(file), 0o777) }, //nolint:gosec // is the fault
		"upper folder open": func(file string) error { return os.Chmod(filepath.Dir(filepath.Dir(file)), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			dir, err := unpack(cache, files)
			require.NoError(t, err)
			require.NoError(t, spoil(filepath.Join(dir, "b.so")))
			dir, err = unpack(cache, files)
			require.NoError(t, err)
			whole(t, dir, files)
		})
	}
}

// move takes the file elsewhere, and puts another thing in its place.
func move(file string, put func(at string) error) error {
	at := filepath.Join(filepath.Dir(file), "..", "elsewhere")
	if err := os.Rename(file, at); err != nil {
		return err
	}
	return put(at)
}

// chown gives the file to another user, which only root can; for others it is taken away.
func chown(file string) error {
	if os.Geteuid() != 0 {
		return os.Remove(file)
	}
	return os.Chown(file, another, another)
}

// TestUnpackRefuses folders that are not this user's, or none at all.
func TestUnpackRefuses(t *testing.T) {
	files, cache := bundled(t), t.TempDir()
	dir, err := unpack(cache, files)
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		for _, d := range []string{dir, filepath.Dir(dir)} {
			require.NoError(t, os.Chown(d, another, another))
			_, err = unpack(cache, files)
			assert.ErrorContains(t, err, d+" belongs to another user")
			require.NoError(t, os.Chown(d, 0, 0))
		}
	}
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Symlink(t.TempDir(), dir))
	_, err = unpack(cache, files)
	assert.ErrorContains(t, err, "is no folder")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a.so", "x"), 0o700))
	_, err = unpack(cache, files)
	assert.ErrorContains(t, err, "XDG_CACHE_HOME", "a folder in the place of a library")
}

// Environment of a process of TestUnpackTogether: where it unpacks to.
const together = "SOFTRNIC_TEST_UNPACK"

// TestUnpackTogether: processes that start at the same time all have whole libraries, also while one of them replaces a spoilt
// one: what was opened stays what it was.
func TestUnpackTogether(t *testing.T) {
	files := bundled(t)
	if cache := os.Getenv(together); cache != "" {
		for range 20 {
			dir, err := unpack(cache, files)
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(dir, "b.so"))
			require.NoError(t, err)
			sum := sha256.Sum256(b)
			require.Equal(t, files[1].hash, hex.EncodeToString(sum[:]))
			tmp := filepath.Join(cache, fmt.Sprint("spoilt-", os.Getpid()))
			require.NoError(t, os.WriteFile(tmp, b, 0o600))
			require.NoError(t, os.Chmod(tmp, 0o720)) // right, and yet to be replaced
			require.NoError(t, os.Rename(tmp, filepath.Join(dir, "b.so")))
		}
		return
	}
	cache := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUnpackTogether$")
			cmd.Env = append(os.Environ(), together+"="+cache)
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
	all.Wait()
	dir, err := unpack(cache, files)
	require.NoError(t, err)
	whole(t, dir, files)
}
