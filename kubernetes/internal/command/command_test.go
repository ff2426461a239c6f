package command

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/softrnic/softrnic/kubernetes/internal/fakekubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const resource = "softrnic.io/rnic"

// node is what a node has: the folder of the kubelet's, that of the CDI files, and that of rnic.
type node struct{ kubelet, cdi, opt string }

// newNode installs a program that stands for rnic, and a library, from a folder that stands for the image.
func newNode(t *testing.T) node {
	t.Helper()
	dir, err := os.MkdirTemp("", "node") // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	n := node{filepath.Join(dir, "kubelet"), filepath.Join(dir, "cdi"), filepath.Join(dir, "opt")}
	require.NoError(t, os.Mkdir(n.kubelet, 0o755))
	n.install(t)
	return n
}

func (n node) install(t *testing.T) {
	t.Helper()
	image := t.TempDir()
	script := `#!/bin/sh
dir=${0%/*}
[ -f $dir/preload.so ] || { echo "preload.so is not beside this program" >&2; exit 1; }
cat <<END
{"cdiVersion": "0.5.0", "kind": "softrnic.io/rnic", "devices": [{"name": "0", "containerEdits": {
 "env": ["LD_PRELOAD=/c/preload.so", "FLAGS=$*"],
 "mounts": [{"hostPath": "$dir/preload.so", "containerPath": "/c/preload.so", "options": ["ro"]},
   {"hostPath": "$dir/rnic", "containerPath": "/c/rnic"}]}}]}
END
`
	require.NoError(t, os.WriteFile(filepath.Join(image, "rnic"), []byte(script), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(image, "preload.so"), nil, 0o644))
	require.NoError(t, Run(t.Context(), []string{"install", "--from", image, "--to", n.opt}, &fakekubelet.Log{}))
}

// serve runs the plug-in until the test ends.
func (n node) serve(t *testing.T, flags ...string) *fakekubelet.Log {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := &fakekubelet.Log{}, make(chan error, 1)
	args := append([]string{
		"serve", "--rnic", n.opt + "/rnic", "--cdi-dir", n.cdi, "--kubelet-dir", n.kubelet, "--interval", "5ms",
		"--devices", "3",
	}, flags...)
	go func() { ended <- Run(ctx, args, log) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return log
}

// From the image to the container: what is installed, registered and allocated is what a runtime gives a container.
func TestCDI(t *testing.T) {
	n := newNode(t)
	k := fakekubelet.Start(t, n.kubelet)
	n.serve(t)
	p := k.AwaitHealthy(t, resource, 3)
	a, err := p.Allocate(t.Context(), []string{"1"})
	require.NoError(t, err)
	given := a.ContainerResponses[0]
	require.Len(t, given.CdiDevices, 1)
	assert.Equal(t, "softrnic.io/rnic=1", given.CdiDevices[0].Name)
	assert.Empty(t, given.Mounts)
	assert.Empty(t, given.Envs)

	runtime, err := cdi.NewCache(cdi.WithSpecDirs(n.cdi), cdi.WithAutoRefresh(false))
	require.NoError(t, err)
	spec := &oci.Spec{}
	_, err = runtime.InjectDevices(spec, given.CdiDevices[0].Name)
	require.NoError(t, err)
	assert.Equal(t, []string{"LD_PRELOAD=/c/preload.so", "FLAGS=cdi generate"}, spec.Process.Env)
	require.Len(t, spec.Mounts, 2)
	assert.Equal(t, n.opt+"/preload.so", spec.Mounts[0].Source)
}

func TestMounts(t *testing.T) {
	n := newNode(t)
	k := fakekubelet.Start(t, n.kubelet)
	n.serve(t, "--inject", "mounts", "--resource", "example.com/nic")
	p := k.AwaitHealthy(t, "example.com/nic", 3)
	a, err := p.Allocate(t.Context(), []string{"0"})
	require.NoError(t, err)
	given := a.ContainerResponses[0]
	assert.Equal(t, "/c/preload.so", given.Envs["LD_PRELOAD"])
	require.Len(t, given.Mounts, 2)
	assert.Equal(t, n.opt+"/preload.so", given.Mounts[0].HostPath)
	assert.True(t, given.Mounts[0].ReadOnly)
	assert.Empty(t, given.CdiDevices)
	assert.NoDirExists(t, n.cdi)
}

// The devices are as well as the files on the host, and come back with them. The CDI file comes back by itself.
func TestFilesGone(t *testing.T) {
	n := newNode(t)
	k := fakekubelet.Start(t, n.kubelet)
	log := n.serve(t)
	p := k.AwaitHealthy(t, resource, 3)
	for _, what := range []string{n.opt + "/preload.so", n.opt + "/rnic", n.opt} {
		require.NoError(t, os.RemoveAll(what))
		k.Await(t, resource, func(p fakekubelet.Plugin) bool { return len(p.Unhealthy) == 3 })
		_, err := p.Allocate(t.Context(), []string{"0"})
		assert.ErrorContains(t, err, "cannot be used now")
		n.install(t)
		k.AwaitHealthy(t, resource, 3)
	}
	assert.Contains(t, log.Text(), "preload.so")

	file := filepath.Join(n.cdi, "softrnic.io-rnic.json")
	require.NoError(t, os.Remove(file))
	there := func() bool {
		_, err := os.Stat(file)
		return err == nil
	}
	require.Eventually(t, there, fakekubelet.Patience, time.Millisecond)
	require.NoError(t, os.RemoveAll(n.cdi))
	require.NoError(t, os.WriteFile(n.cdi, nil, 0o600)) // no folder can be there now
	k.Await(t, resource, func(p fakekubelet.Plugin) bool { return len(p.Unhealthy) == 3 })
	require.NoError(t, os.Remove(n.cdi))
	k.AwaitHealthy(t, resource, 3)
}

// The plug-in starts before the files are there, and says what it waits for.
func TestNothingInstalled(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.RemoveAll(n.opt))
	k := fakekubelet.Start(t, n.kubelet)
	log := n.serve(t)
	k.Await(t, resource, func(p fakekubelet.Plugin) bool { return len(p.Unhealthy) == 3 })
	log.Await(t, "opt/rnic")
	n.install(t)
	k.AwaitHealthy(t, resource, 3)
}

func TestWrongFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"which command":           nil,
		"no command":              {"server"},
		`takes no "x"`:            {"serve", "x"},
		"flag provided but not":   {"serve", "--device", "3"},
		"begin with /":            {"serve", "--rnic", "bin/rnic"},
		"want cdi or mounts":      {"serve", "--inject", "hooks"},
		"--cdi-kind sets another": {"serve", "--cdi-kind", "rnic"},
		"want more than 0":        {"serve", "--interval", "0s"},
		"want 1 to 1024":          {"serve", "--devices", "0", "--inject", "mounts", "--rnic", "/none/rnic"},
		"begins with /":           {"install", "--to", "opt"},
		"installing":              {"install", "--from", "/none/of/these"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), fakekubelet.Patience) // what is not refused would serve
		assert.ErrorContains(t, Run(ctx, args, &fakekubelet.Log{}), want)
		cancel()
	}
	log := &fakekubelet.Log{}
	require.NoError(t, Run(t.Context(), []string{"-h"}, log))
	assert.Contains(t, log.Text(), "install")
}
