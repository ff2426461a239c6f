package cdifile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generated is a specification of the kind that `rnic cdi generate` makes, for files in dir.
func generated(dir string) string {
	return fmt.Sprintf(`{"cdiVersion": "0.5.0", "kind": "softrnic.io/rnic",
 "containerEdits": {"env": ["LD_PRELOAD=/c/preload.so", "A=b=c"], "mounts": [
   {"hostPath": %q, "containerPath": "/c/preload.so", "options": ["ro", "bind"]}]},
 "devices": [{"name": "0", "containerEdits": {"env": ["B="], "mounts": [
   {"hostPath": %q, "containerPath": "/c/tree", "options": ["rw", "ro"]}, {"hostPath": %q, "containerPath": "/c/rw"}]}},
   {"name": "1", "containerEdits": {"env": ["NOT=me"]}}]}`, dir+"/preload.so", dir+"/tree", dir)
}

// program writes a shell script that stands for rnic.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rnic")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// host is a folder with the files that generated names, and its edits.
func host(t *testing.T) (string, Edits) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/preload.so", nil, 0o644))
	require.NoError(t, os.Mkdir(dir+"/tree", 0o755))
	e, err := Generate(t.Context(), program(t, "[ \"$*\" = 'cdi generate' ] && cat <<'END'\n"+generated(dir)+"\nEND"))
	require.NoError(t, err)
	return dir, e
}

func TestGenerateAndRespond(t *testing.T) {
	dir, e := host(t)
	r := e.Response()
	assert.Equal(t, map[string]string{"LD_PRELOAD": "/c/preload.so", "A": "b=c", "B": ""}, r.Envs)
	var mounts []string
	for _, m := range r.Mounts {
		mounts = append(mounts, fmt.Sprintf("%s %s %t", m.HostPath, m.ContainerPath, m.ReadOnly))
	}
	assert.Equal(t, []string{
		dir + "/preload.so /c/preload.so true", dir + "/tree /c/tree true", dir + " /c/rw false",
	}, mounts)
	assert.Empty(t, r.CdiDevices)

	require.NoError(t, e.Present())
	require.NoError(t, os.Remove(dir+"/tree"))
	assert.ErrorContains(t, e.Present(), dir+"/tree")
}

func TestGenerateFails(t *testing.T) {
	for want, text := range map[string]string{
		"exit status 3: no libraries here": "echo no libraries here >&2; exit 3",
		"no device in it":                  "echo '{}'",
		"unknown field":                    `echo '{"devices": [], "gadgets": []}'`,
		"more than 1048576 octets":         "head -c 2000000 /dev/zero",
	} {
		_, err := Generate(t.Context(), program(t, text))
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "rnic cdi generate")
	}
	_, err := Generate(t.Context(), filepath.Join(t.TempDir(), "rnic"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// A program that hangs ends with the context, its children too if they hold the output.
func TestGenerateHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Generate(ctx, program(t, "sleep 30 & exec sleep 30"))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestParseRefuses(t *testing.T) {
	good := generated("/d")
	_, err := parse([]byte(good))
	require.NoError(t, err)
	_, err = parse([]byte(`{"devices": [{"containerEdits": {"mounts": [{"hostPath": "/a", "containerPath": "/b"}]}}]}`))
	assert.ErrorContains(t, err, "no variable")
	_, err = parse([]byte(`{"devices": [{"containerEdits": {"env": ["A=b"]}}]}`))
	assert.ErrorContains(t, err, "no mount")
	for old, cases := range map[string][][2]string{
		`"env": ["LD_PRELOAD=/c/preload.so", "A=b=c"]`: {
			{`"env": ["LD_PRELOAD"]`, "no name or no value"}, {`"env": ["=x"]`, "no name or no value"},
		},
		`"hostPath": "/d/tree"`:      {{`"hostPath": ""`, "without a path"}},
		`"containerPath": "/c/tree"`: {{`"type": "bind"`, "without a path"}},
		`"name": "0", "containerEdits": {`: {
			{`"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/x"}], `, "which knows them"},
			{`"name": "0", "containerEdits": {"hooks": [{"hookName": "poststop", "path": "/x"}], `, "which knows them"},
		},
		`"containerEdits": {"env"`: {{`"containerEdits": {"additionalGids": [0], "env"`, "which knows them"}},
	} {
		for _, c := range cases {
			text := strings.Replace(good, old, c[0], 1)
			require.NotEqual(t, good, text, old)
			_, err := parse([]byte(text))
			assert.ErrorContains(t, err, c[1], c[0])
		}
	}
}

// The file is read as container runtimes read it, by the library that they use.
func TestFile(t *testing.T) {
	dir, e := host(t)
	etc := filepath.Join(t.TempDir(), "cdi")
	f, err := NewFile(etc, "example.com/nic", 3)
	require.NoError(t, err)
	require.NoError(t, f.Ensure(e))

	runtime, err := cdi.NewCache(cdi.WithSpecDirs(etc), cdi.WithAutoRefresh(false))
	require.NoError(t, err)
	assert.Empty(t, runtime.GetErrors())
	assert.Equal(t, []string{"example.com/nic=0", "example.com/nic=1", "example.com/nic=2"}, runtime.ListDevices())
	var names []string
	for _, d := range f.Response([]string{"2", "0"}).CdiDevices {
		names = append(names, d.Name)
	}
	assert.Equal(t, []string{"example.com/nic=2", "example.com/nic=0"}, names)
	spec := &oci.Spec{Process: &oci.Process{Env: []string{"LD_PRELOAD=/of/the/image.so"}}}
	unknown, err := runtime.InjectDevices(spec, names...)
	require.NoError(t, err)
	assert.Empty(t, unknown)
	assert.Equal(t, []string{"LD_PRELOAD=/c/preload.so", "A=b=c", "B="}, spec.Process.Env)
	assert.Len(t, spec.Mounts, 3, "two devices bring what one does")
	assert.Nil(t, spec.Hooks)
	sources := map[string]string{}
	for _, m := range spec.Mounts {
		sources[m.Destination] = m.Source
	}
	assert.Equal(t, map[string]string{
		"/c/preload.so": dir + "/preload.so", "/c/tree": dir + "/tree", "/c/rw": dir,
	}, sources)

	before, err := os.Stat(f.Path())
	require.NoError(t, err)
	require.NoError(t, f.Ensure(e))
	after, err := os.Stat(f.Path())
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "what is as it should be is not written")
	for _, spoil := range []func() error{
		func() error { return os.Remove(f.Path()) },
		func() error { return os.WriteFile(f.Path(), []byte("{}"), 0o600) },
		func() error { return os.RemoveAll(etc) },
	} {
		require.NoError(t, spoil())
		require.NoError(t, f.Ensure(e))
		require.NoError(t, runtime.Refresh())
		assert.Len(t, runtime.ListDevices(), 3)
	}
}

func TestFileKinds(t *testing.T) {
	for _, kind := range []string{"", "rnic", "/rnic", "softrnic.io/", "soft rnic/x", "softrnic.io/a/b"} {
		_, err := NewFile("/none", kind, 1)
		assert.ErrorContains(t, err, "VENDOR/CLASS", kind)
	}
}

// Whatever is parsed can be given to a kubelet.
func FuzzParse(f *testing.F) {
	f.Add(generated("/d"))
	f.Add(`devices: [{containerEdits: {env: [A=], mounts: [null]}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parse([]byte(text))
		if err != nil {
			return
		}
		r := e.Response()
		require.NotEmpty(t, r.Envs)
		for _, m := range r.Mounts {
			require.NotEmpty(t, m.HostPath)
			require.NotEmpty(t, m.ContainerPath)
		}
	})
}
