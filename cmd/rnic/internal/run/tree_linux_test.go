package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder makes a folder of two days ago with a file in it, and returns that file.
func folder(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(path, "class", "file")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte("the user's"), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	return file
}

// swept makes the next tree in dir, which sweeps, and removes it.
func swept(t *testing.T, dir string) {
	t.Helper()
	next, err := newTree(dir)
	require.NoError(t, err)
	next.remove(false)
	assert.NoDirExists(t, next.path)
}

// killed makes a tree whose process was killed: nobody holds it.
func killed(t *testing.T, dir string) string {
	t.Helper()
	dead, err := newTree(dir)
	require.NoError(t, err)
	folder(t, dead.path, treeMode)
	dead.close()
	return dead.path
}

// TestTree: the folder of a process that was killed goes when the next is made; one that is held stays.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	dead := killed(t, dir)
	held, err := newTree(dir)
	require.NoError(t, err)
	info, err := os.Stat(held.path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o755, info.Mode(), "others may read them, and put no files there")
	assert.NoDirExists(t, dead)
	folder(t, held.path, treeMode)
	swept(t, dir)
	assert.DirExists(t, held.path)
	held.remove(false)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestTreeOutlives: what a program has left behind has the folder still, whether it has come to lock the marker or not, and
// the next run after its end removes it.
func TestTreeOutlives(t *testing.T) {
	dir := t.TempDir()
	left, err := newTree(dir)
	require.NoError(t, err)
	marker, err := os.Open(filepath.Join(left.path, markerName))
	require.NoError(t, err)
	defer marker.Close()
	require.NoError(t, syscall.Flock(int(marker.Fd()), syscall.LOCK_SH))
	left.remove(false)
	swept(t, dir)
	assert.DirExists(t, left.path)
	require.NoError(t, marker.Close())
	swept(t, dir)
	assert.NoDirExists(t, left.path)

	left, err = newTree(dir)
	require.NoError(t, err)
	daemon := exec.Command("sleep", "1000")
	daemon.Env = []string{envTree + "=" + left.path}
	require.NoError(t, daemon.Start())
	left.remove(false)
	assert.DirExists(t, left.path)
	require.NoError(t, daemon.Process.Kill())
	_ = daemon.Wait()
	swept(t, dir)
	assert.NoDirExists(t, left.path)
}

// TestTreeOfTheDying: a process that ends at the same signal as the program, but later, leaves no folder behind.
func TestTreeOfTheDying(t *testing.T) {
	defer func(was time.Duration) { dyingTime = was }(dyingTime)
	dyingTime = time.Minute
	left, err := newTree(t.TempDir())
	require.NoError(t, err)
	marker, err := os.Open(filepath.Join(left.path, markerName))
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(marker.Fd()), syscall.LOCK_SH))
	time.AfterFunc(50*time.Millisecond, func() { _ = marker.Close() })
	left.remove(true)
	assert.NoDirExists(t, left.path)
}

// TestTreeElsewhere: where the first folder cannot be written to, the next is taken; without any, each is named.
func TestTreeElsewhere(t *testing.T) {
	dir, none := t.TempDir(), filepath.Join(t.TempDir(), "none")
	tree, err := newTreeIn([]string{none, dir})
	require.NoError(t, err)
	assert.Equal(t, dir, filepath.Dir(tree.path))
	tree.remove(false)
	_, err = newTreeIn([]string{none, none + "2"})
	require.ErrorContains(t, err, none+":")
	require.ErrorContains(t, err, none+"2:")
	assert.ErrorContains(t, err, "TMPDIR")
}

// TestSweepSparesTheUsers: nothing goes that `rnic run` has not made, whatever its name and its age.
func TestSweepSparesTheUsers(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	marker := func(t *testing.T, path string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(path, markerName))
		require.NoError(t, err)
		return text
	}
	stay := map[string]string{
		"a tarball of this project": folder(t, filepath.Join(dir, "softrnic-1.0"), 0o755),
		"the counters' sockets":     folder(t, filepath.Join(dir, "softrnic-"+strconv.Itoa(os.Getuid())), 0o700),
		"the prefix alone":          folder(t, filepath.Join(dir, treePrefix+"a"), treeMode),
	}
	dead := killed(t, dir)
	right := marker(t, dead)

	for what, text := range map[string][]byte{
		"a copy, with its marker": right, "an empty marker": nil, "another marker": []byte("x"),
	} {
		path := filepath.Join(dir, treePrefix+strconv.Itoa(len(what)))
		stay[what] = folder(t, path, treeMode)
		require.NoError(t, os.WriteFile(filepath.Join(path, markerName), text, 0o600))
	}
	open := killed(t, elsewhere)
	moved := filepath.Join(dir, filepath.Base(open))
	require.NoError(t, os.Rename(open, moved))
	require.NoError(t, os.Chmod(moved, 0o777))
	stay["one that others may write to"] = filepath.Join(moved, "class", "file")

	linked := filepath.Join(dir, "linked")
	made := killed(t, elsewhere)
	require.NoError(t, os.Rename(made, linked))
	require.NoError(t, os.Symlink("linked", filepath.Join(dir, treePrefix+"link")))
	stay["where a link leads"] = filepath.Join(linked, "class", "file")

	inner := killed(t, elsewhere)
	renamed := filepath.Join(dir, filepath.Base(inner))
	require.NoError(t, os.Rename(inner, renamed))
	require.NoError(t, os.Rename(filepath.Join(renamed, markerName), filepath.Join(dir, "marker")))
	require.NoError(t, os.Symlink("../marker", filepath.Join(renamed, markerName)))
	stay["a marker that is a link"] = filepath.Join(renamed, "class", "file")

	outside := folder(t, filepath.Join(dir, "else"), 0o755)
	require.NoError(t, os.Symlink("../else", filepath.Join(dead, "class", "link")))
	stay["what a link in a tree leads to"] = outside

	swept(t, dir)
	for what, file := range stay {
		assert.FileExists(t, file, what)
	}
	assert.NoDirExists(t, dead)
}

// TestSweepSparesABeginner: a run has made its folder, and has not come to lock it; another run neither removes it
// nor takes its lock, and one that has the lock and no marker as yet is not touched either.
func TestSweepSparesABeginner(t *testing.T) {
	dir := t.TempDir()
	path, err := os.MkdirTemp(dir, treePrefix)
	require.NoError(t, err)
	old := time.Now().Add(-48 * time.Hour) // the clock was set, say
	require.NoError(t, os.Chtimes(path, old, old))
	swept(t, dir)
	require.DirExists(t, path)
	tree, err := begin(path)
	require.NoError(t, err)
	swept(t, dir)
	assert.FileExists(t, filepath.Join(path, markerName))
	tree.remove(false)
	assert.NoDirExists(t, path)
}

// TestSweepsAtOnce: several runs begin at once, in a folder with the trees of killed ones. None fails, and none is
// swept.
func TestSweepsAtOnce(t *testing.T) {
	dir := t.TempDir()
	var dead []*tree
	for range 20 {
		made, err := newTree(dir)
		require.NoError(t, err)
		dead = append(dead, made)
	}
	for _, d := range dead {
		d.close()
	}
	trees := make(chan *tree)
	const runs = 16
	for range runs {
		go func() {
			made, err := newTree(dir)
			assert.NoError(t, err)
			trees <- made
		}()
	}
	var live []*tree
	for range runs {
		if made := <-trees; made != nil {
			live = append(live, made)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, runs)
	for _, made := range live {
		assert.FileExists(t, filepath.Join(made.path, markerName))
		made.remove(false)
	}
}
