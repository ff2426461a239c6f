package cdi

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/rdmacore"

	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() *cobra.Command { return cli.Root(Command()) })
}

// TestSpecification: what engines read is right by the specification 0.5.0, and gives nothing but files and variables.
func TestSpecification(t *testing.T) {
	list, err := names("0..1,lab")
	require.NoError(t, err)
	text, err := json.Marshal(specification("/usr/lib/softrnic", list))
	require.NoError(t, err)
	var s specs.Spec
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&s))
	assert.Equal(t, "0.5.0", s.Version)
	assert.Equal(t, "softrnic.io/rnic", s.Kind)
	assert.Nil(t, s.Annotations, "which are of 0.6.0")

	mounts := s.ContainerEdits.Mounts
	require.Len(t, mounts, 4)
	has := map[string]bool{}
	for _, m := range mounts {
		assert.Equal(t, filepath.Dir(m.HostPath), "/usr/lib/softrnic")
		assert.Equal(t, filepath.Base(m.HostPath), filepath.Base(m.ContainerPath))
		assert.Subset(t, m.Options, []string{"ro", "nosuid", "nodev"})
		has[m.ContainerPath] = true
	}
	mounts = s.ContainerEdits.Mounts
	s.ContainerEdits.Mounts = nil
	assert.Equal(t, specs.ContainerEdits{}, s.ContainerEdits, "nothing but mounts")
	require.Len(t, s.Devices, 3)
	for i, d := range s.Devices {
		assert.Equal(t, []string{"0", "1", "lab"}[i], d.Name)
		require.Len(t, d.ContainerEdits.Env, 3)
		for _, v := range d.ContainerEdits.Env {
			name, value, _ := strings.Cut(v, "=")
			assert.Contains(t, []string{"LD_PRELOAD", "SOFTRNIC_ENGINE", "SOFTRNIC_TREE"}, name)
			assert.True(t, has[value], "%s leads to no mount", v)
		}
		d.ContainerEdits.Env = nil
		assert.Equal(t, specs.ContainerEdits{}, d.ContainerEdits, "nothing but variables")
	}
	assert.NotEmpty(t, mounts)
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		list string
		want string // "": an error
	}{
		{"0", "0"}, {"0..3", "0 1 2 3"}, {"7..7", "7"}, {"a,b-1.x,2..3", "a b-1.x 2 3"},
		{"", ""}, {"3..0", ""}, {"0..", ""}, {"..3", ""}, {"-1..3", ""}, {"a..b", ""}, {"0..65536", ""}, {"a b", ""}, {"a=b", ""},
		{"a,", ""}, {"0,0", ""}, {"0..3,2", ""}, {"-a", ""}, {"0..1023", "1024"}, {"0..1024", ""},
	} {
		got, err := names(tt.list)
		switch {
		case tt.want == "":
			assert.Error(t, err, tt.list)
		case len(got) == most:
			assert.Equal(t, tt.want, fmt.Sprint(len(got)))
		default:
			require.NoError(t, err, tt.list)
			assert.Equal(t, tt.want, strings.Join(got, " "))
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"0", "0..3", "a,b", "0..65535", "1..0", ",", ".."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got, err := names(list)
		if err != nil {
			return
		}
		assert.NotEmpty(t, got)
		assert.LessOrEqual(t, len(got), most)
		for _, name := range got {
			assert.Regexp(t, deviceName, name)
		}
	})
}

// installed is a folder as `make c` fills it.
func installed(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, name := range []string{program, rdmacore.EngineLibrary, rdmacore.PreloadLibrary} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
	}
	return dir
}

// TestPrepare: the folder of files is made once, for any user, and is left alone then.
func TestPrepare(t *testing.T) {
	dir := installed(t)
	require.NoError(t, prepare(dir))
	files := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, tree), func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		if d.Type() != fs.ModeSymlink {
			assert.Equal(t, needed(info), info.Mode()&needed(info), path)
		}
		files++
		return nil
	}))
	assert.Greater(t, files, 20)
	before, err := os.Stat(filepath.Join(dir, tree))
	require.NoError(t, err)
	require.NoError(t, prepare(dir))
	after, err := os.Stat(filepath.Join(dir, tree))
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 4, "nothing else is left")
}

func TestPrepareRefuses(t *testing.T) {
	for _, tt := range []struct {
		what string
		do   func(dir string) error
		want string
	}{
		{"no library", func(dir string) error { return os.Remove(filepath.Join(dir, rdmacore.EngineLibrary)) }, "make c"},
		{"another name", func(dir string) error { return os.Rename(filepath.Join(dir, program), filepath.Join(dir, "x")) }, "not named rnic"},
		{"a secret library", func(dir string) error { return os.Chmod(filepath.Join(dir, rdmacore.PreloadLibrary), 0o700) }, "chmod a+rX"},
		{"a program that only its user runs", func(dir string) error { return os.Chmod(filepath.Join(dir, program), 0o744) }, "chmod a+rX"},
	} {
		dir := installed(t)
		require.NoError(t, tt.do(dir))
		assert.ErrorContains(t, prepare(dir), tt.want, tt.what)
	}
	assert.ErrorContains(t, prepare(t.TempDir()+"/none"), "none")
}

// TestWriteFile: a file is replaced as a whole, and its folder made.
func TestWriteFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "etc", "cdi", "softrnic.json")
	require.NoError(t, writeFile(name, []byte("a")))
	require.NoError(t, writeFile(name, []byte("b")))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "b", string(text))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode())
	entries, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	assert.ErrorContains(t, writeFile(name+".bak", nil), ".json or .yaml")
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"cdi generate --name 3..1", "the smaller first"},
		{"cdi generate --host-folder lib", "absolute"},
		{"cdi generate x", "x"},
	} {
		r := clitest.Run(t.Context(), strings.Fields(tt.args)...)
		assert.Equal(t, 2, r.Status, tt.args)
		assert.Contains(t, r.Stderr, tt.want)
	}
	r := clitest.Run(t.Context(), "cdi", "generate") // a test is not named rnic, and has no libraries beside it
	assert.Equal(t, 1, r.Status)
	assert.Empty(t, r.Stdout)
}
