//go:build node

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/kubernetes/internal/fakekubelet"
)

// machine is this one, as a node: podman is the container runtime, and reads CDI files.
type machine struct {
	dir   string // the node's folders
	user  string // an image with rdma-core and perftest
	image string // the plug-in's
}

const (
	network = "softrnic-node-test"
	kind    = "node-test.softrnic.io/rnic" // no other specification has it
	cdiDir  = "/var/run/cdi"               // where podman looks
)

// podman is a container with no more than a pod of the level restricted has, and less. It ends when ctx does.
func (m machine) podman(ctx context.Context, flags []string, image string, command ...string) *exec.Cmd {
	args := []string{
		"run", "--rm", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000",
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		args = append([]string{"--runtime=runc", "--cgroup-manager=cgroupfs"}, args...)
	}
	args = append(append(args, flags...), image)
	c := exec.CommandContext(ctx, "podman", append(args, command...)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	return c
}

// TestNode: the image installs, registers, and what it allocates is a device for unprivileged containers.
func TestNode(t *testing.T) {
	m := machine{image: os.Getenv("SOFTRNIC_TEST_PLUGIN"), user: os.Getenv("SOFTRNIC_TEST_IMAGE")}
	require.NotEmpty(t, m.image, "make k8s-node sets it")
	require.NotEmpty(t, m.user, "an image with rdma-core and perftest; make k8s-node K8SUSERIMAGE=NAME")
	var err error
	m.dir, err = os.MkdirTemp("", "node")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(m.dir)) })
	require.NoError(t, os.Chmod(m.dir, 0o755))
	require.NoError(t, os.MkdirAll(cdiDir, 0o755))
	for _, d := range []string{"kubelet", "opt"} {
		require.NoError(t, os.Mkdir(filepath.Join(m.dir, d), 0o755))
	}
	t.Cleanup(func() { _ = os.Remove(filepath.Join(cdiDir, "node-test.softrnic.io-rnic.json")) })

	k := fakekubelet.Start(t, m.dir+"/kubelet")
	mounts := []string{"--network=none", "-v=" + m.dir + "/opt:" + m.dir + "/opt"}
	out, err := m.podman(t.Context(), mounts, m.image, "install", "--to="+m.dir+"/opt").CombinedOutput()
	require.NoError(t, err, "%s", out)
	mounts = append(mounts, "-v="+m.dir+"/kubelet:"+m.dir+"/kubelet", "-v="+cdiDir+":"+cdiDir)
	plug := m.podman(t.Context(), mounts, m.image,
		"serve", "--rnic="+m.dir+"/opt/rnic", "--kubelet-dir="+m.dir+"/kubelet", "--cdi-kind="+kind, "--devices=2")
	log := &fakekubelet.Log{}
	plug.Stdout, plug.Stderr = log, log
	require.NoError(t, plug.Start())
	stop := func() error {
		_ = plug.Process.Signal(os.Interrupt) // podman passes it on
		return plug.Wait()
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = stop()
		}
	})
	p := k.AwaitHealthy(t, "softrnic.io/rnic", 2)
	m.measure(t, p)

	k.Stop()
	k = fakekubelet.Start(t, m.dir+"/kubelet")
	k.AwaitHealthy(t, "softrnic.io/rnic", 2)
	engine := m.dir + "/opt/libsoftrnic-engine.so"
	require.NoError(t, os.Rename(engine, engine+".away"))
	k.Await(t, "softrnic.io/rnic", func(p fakekubelet.Plugin) bool { return len(p.Unhealthy) == 2 && p.Watched })
	require.NoError(t, os.Rename(engine+".away", engine))
	k.AwaitHealthy(t, "softrnic.io/rnic", 2)
	stopped = true
	assert.NoError(t, stop(), "%s", log.Text())
	assert.Contains(t, log.Text(), "the plug-in ends")
}

// measure runs a pair of perftest with devices that the plug-in allocates.
func (m machine) measure(t *testing.T, p fakekubelet.Plugin) {
	a, err := p.Allocate(t.Context(), []string{"1"}, []string{"0"})
	require.NoError(t, err)
	pod := func(i int, more ...string) []string {
		device := a.ContainerResponses[i].CdiDevices[0].Name
		return append([]string{"--user=65534", "--network=" + network, "--device=" + device}, more...)
	}
	_ = exec.Command("podman", "network", "rm", "-f", network).Run() // of a run that was killed
	out, err := exec.Command("podman", "network", "create", network).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() { assert.NoError(t, exec.Command("podman", "network", "rm", "-f", network).Run()) })

	out, err = m.podman(t.Context(), pod(0), m.user, "ibv_devinfo").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "PORT_ACTIVE")

	ctx, cancel := context.WithTimeout(t.Context(), 2*fakekubelet.Patience)
	defer cancel()
	name := fmt.Sprintf("%s-%d", network, os.Getpid())
	server := m.podman(ctx, pod(0, "--name="+name), m.user, "ib_write_bw", "-R")
	said := &fakekubelet.Log{}
	server.Stdout, server.Stderr = said, said
	require.NoError(t, server.Start())
	// The program prints nothing before its end, so the container's sockets are looked at: port 18515, state LISTEN.
	require.Eventually(t, func() bool {
		look := exec.Command("podman", "exec", name, "grep", "-q", ":4853 .* 0A ", "/proc/net/tcp", "/proc/net/tcp6")
		return look.Run() == nil
	}, fakekubelet.Patience, 100*time.Millisecond, "the server does not listen")
	addr, err := exec.Command("podman", "exec", name, "hostname", "-i").Output()
	require.NoError(t, err)
	out, err = m.podman(ctx, pod(1), m.user, "ib_write_bw", "-R", string(bytes.TrimSpace(addr))).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.NoError(t, server.Wait(), "%s", said.Text())
	assert.Contains(t, string(out), "MsgRate")
	t.Logf("%s", out)
}
