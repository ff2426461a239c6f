package plugin_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/softrnic/softrnic/kubernetes/internal/fakekubelet"
	"github.com/softrnic/softrnic/kubernetes/internal/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const resource = "softrnic.io/rnic"

// running is a plug-in in a test.
type running struct {
	log  *fakekubelet.Log
	ill  *atomic.Pointer[error] // what Check says
	stop func() error           // ends it and returns what Run did
}

// run starts a plug-in with four devices. Its pauses are short, its patience is long but where a test changes it.
func run(t *testing.T, dir string, change func(*plugin.Config)) running {
	t.Helper()
	r := running{log: &fakekubelet.Log{}, ill: &atomic.Pointer[error]{}}
	c := plugin.Config{
		Resource: resource, Devices: 4, Dir: dir, Interval: 5 * time.Millisecond,
		Patience: fakekubelet.Patience, Retry: time.Millisecond, MaxRetry: 10 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(r.log, nil)),
		Check: func(context.Context) error {
			if e := r.ill.Load(); e != nil {
				return *e
			}
			return nil
		},
		Inject: func(ids []string) (*api.ContainerAllocateResponse, error) {
			return &api.ContainerAllocateResponse{Envs: map[string]string{"IDS": strings.Join(ids, ",")}}, nil
		},
	}
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- plugin.Run(ctx, c) }()
	over := false
	r.stop = func() error {
		if over {
			return nil
		}
		over = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { assert.NoError(t, r.stop()) })
	return r
}

func (r running) fallIll(why string) {
	err := errors.New(why)
	r.ill.Store(&err)
}

// folder is short: a socket's path is.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func socket(dir string) string { return filepath.Join(dir, "softrnic.io_rnic.sock") }

func TestRegisterAndAllocate(t *testing.T) {
	dir := folder(t)
	k := fakekubelet.Start(t, dir)
	r := run(t, dir, nil)
	p := k.AwaitHealthy(t, resource, 4)
	assert.Equal(t, []string{"0", "1", "2", "3"}, p.Healthy)
	assert.Equal(t, 1, p.Registrations)
	a, err := p.Allocate(t.Context(), []string{"2"}, []string{"0", "3"})
	require.NoError(t, err)
	require.Len(t, a.ContainerResponses, 2, "one for each container, in their order")
	assert.Equal(t, "2", a.ContainerResponses[0].Envs["IDS"])
	assert.Equal(t, "0,3", a.ContainerResponses[1].Envs["IDS"])
	info, err := os.Stat(socket(dir))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "no other user of the node allocates")

	require.NoError(t, r.stop())
	k.Await(t, resource, func(p fakekubelet.Plugin) bool { return len(p.Unhealthy) == 4 })
	assert.NoFileExists(t, socket(dir))
}

// A kubelet that starts anew knows no plug-in and has removed their sockets.
func TestKubeletRestart(t *testing.T) {
	dir := folder(t)
	k := fakekubelet.Start(t, dir)
	run(t, dir, nil)
	k.AwaitHealthy(t, resource, 4)
	for range 3 {
		k.Stop()
		k = fakekubelet.Start(t, dir)
		p := k.AwaitHealthy(t, resource, 4)
		_, err := p.Allocate(t.Context(), []string{"1"})
		require.NoError(t, err)
	}
}

// Each sign alone is enough.
func TestRestartIsSeenBy(t *testing.T) {
	for what, do := range map[string]func(*testing.T, *fakekubelet.Kubelet, string){
		"the socket removed": func(t *testing.T, _ *fakekubelet.Kubelet, dir string) {
			require.NoError(t, os.Remove(socket(dir)))
		},
		"the connection": func(_ *testing.T, k *fakekubelet.Kubelet, _ string) { k.Drop(resource) },
		"the kubelet's socket touched": func(t *testing.T, _ *fakekubelet.Kubelet, dir string) {
			require.NoError(t, os.Chtimes(filepath.Join(dir, plugin.KubeletSocket), time.Unix(1, 0), time.Unix(1, 0)))
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := folder(t)
			k := fakekubelet.Start(t, dir)
			run(t, dir, nil)
			first := k.AwaitHealthy(t, resource, 4).Registrations
			do(t, k, dir)
			k.Await(t, resource, func(p fakekubelet.Plugin) bool {
				return p.Registrations > first && p.Watched && len(p.Healthy) == 4
			})
			_, err := os.Stat(socket(dir))
			assert.NoError(t, err)
		})
	}
}

// The folder itself may go, with the watch on it.
func TestFolderComesAgain(t *testing.T) {
	dir := filepath.Join(folder(t), "device-plugins")
	r := run(t, dir, nil)
	r.log.Await(t, "the kubelet's folder for device plug-ins")
	for range 2 {
		require.NoError(t, os.Mkdir(dir, 0o755))
		k := fakekubelet.Start(t, dir)
		k.AwaitHealthy(t, resource, 4)
		k.Stop()
		require.NoError(t, os.RemoveAll(dir))
	}
}

func TestNoKubeletYet(t *testing.T) {
	dir := folder(t)
	r := run(t, dir, func(c *plugin.Config) { c.Interval = time.Hour }) // the watch alone has to see it
	r.log.Await(t, "waiting for the kubelet")
	require.NoFileExists(t, socket(dir))
	l, err := net.Listen("unix", filepath.Join(dir, "other.sock")) // an event that is not the kubelet's
	require.NoError(t, err)
	l.Close()
	fakekubelet.Start(t, dir).AwaitHealthy(t, resource, 4)
}

// A kubelet that has ended leaves a socket that nobody serves.
func TestDeadKubelet(t *testing.T) {
	dir := folder(t)
	fakekubelet.Start(t, dir).Stop()
	r := run(t, dir, func(c *plugin.Config) { c.Retry, c.MaxRetry = time.Hour, time.Hour })
	r.log.Await(t, "connection refused")
	fakekubelet.Start(t, dir).AwaitHealthy(t, resource, 4) // which ends the hour
}

// A kubelet that takes connections and says nothing is given up, with a word, and so is one that asks for nothing.
func TestSilentKubelet(t *testing.T) {
	dir := folder(t)
	l, err := net.Listen("unix", filepath.Join(dir, plugin.KubeletSocket))
	require.NoError(t, err)
	defer l.Close()
	r := run(t, dir, func(c *plugin.Config) { c.Patience = 20 * time.Millisecond })
	r.log.Await(t, "the kubelet did not answer a registration")
	k := fakekubelet.StartDeaf(t, dir)
	r.log.Await(t, "but did not ask for the devices")
	k.Await(t, resource, func(p fakekubelet.Plugin) bool { return p.Registrations >= 2 })
}

func TestHealth(t *testing.T) {
	dir := folder(t)
	k := fakekubelet.Start(t, dir)
	r := run(t, dir, nil)
	p := k.AwaitHealthy(t, resource, 4)
	for range 3 {
		r.fallIll("libsoftrnic-engine.so is gone")
		k.Await(t, resource, func(p fakekubelet.Plugin) bool {
			return len(p.Unhealthy) == 4 && len(p.Healthy) == 0 && p.Watched
		})
		_, err := p.Allocate(t.Context(), []string{"1"})
		assert.Equal(t, codes.FailedPrecondition, status.Code(err))
		assert.ErrorContains(t, err, "libsoftrnic-engine.so is gone")
		r.ill.Store(nil)
		p = k.AwaitHealthy(t, resource, 4)
	}
	assert.Equal(t, 1, p.Registrations, "the health changes, not the registration")
	assert.Equal(t, 3, strings.Count(r.log.Text(), "libsoftrnic-engine.so is gone"), "said once each time")

	r.fallIll("another cause")
	r.log.Await(t, "another cause")
	r.fallIll("a third")
	r.log.Await(t, "a third")
}

// A node may have devices of several resources. Of one resource it has one plug-in.
func TestTwoPlugins(t *testing.T) {
	dir := folder(t)
	k := fakekubelet.Start(t, dir)
	first := run(t, dir, nil)
	run(t, dir, func(c *plugin.Config) { c.Resource, c.Devices = "example.com/roce", 2 })
	k.AwaitHealthy(t, resource, 4)
	k.AwaitHealthy(t, "example.com/roce", 2)

	heir := run(t, dir, func(c *plugin.Config) { c.Devices = 7 })
	heir.log.Await(t, "another plug-in serves")
	assert.Equal(t, 1, k.AwaitHealthy(t, resource, 4).Registrations, "it was not disturbed")
	require.NoError(t, first.stop())
	k.AwaitHealthy(t, resource, 7)
	require.FileExists(t, socket(dir))
}

func TestWrongRequests(t *testing.T) {
	dir := folder(t)
	k := fakekubelet.Start(t, dir)
	run(t, dir, func(c *plugin.Config) {
		inject := c.Inject
		c.Inject = func(ids []string) (*api.ContainerAllocateResponse, error) {
			if len(ids) == 3 {
				return nil, errors.New("three are too many")
			}
			return inject(ids)
		}
	})
	p := k.AwaitHealthy(t, resource, 4)
	for want, ids := range map[string][]string{
		"without a device":   {},
		`no device "4"`:      {"4"},
		`no device "-1"`:     {"0", "-1"},
		`no device "01"`:     {"01"},
		`no device "+1"`:     {"+1"},
		`no device ""`:       {""},
		`"1" twice`:          {"1", "0", "1"},
		"three are too many": {"0", "1", "2"},
	} {
		_, err := p.Allocate(t.Context(), []string{"3"}, ids)
		assert.Equal(t, codes.InvalidArgument, status.Code(err), want)
		assert.ErrorContains(t, err, want)
	}
	a, err := p.Allocate(t.Context())
	require.NoError(t, err)
	assert.Empty(t, a.ContainerResponses)
	_, err = p.GetPreferredAllocation(t.Context(), &api.PreferredAllocationRequest{})
	assert.Equal(t, codes.Unimplemented, status.Code(err), "the options say so")
	_, err = p.PreStartContainer(t.Context(), &api.PreStartContainerRequest{DevicesIds: []string{"0"}})
	assert.Equal(t, codes.Unimplemented, status.Code(err))
	o, err := p.GetDevicePluginOptions(t.Context(), &api.Empty{})
	require.NoError(t, err)
	assert.False(t, o.PreStartRequired || o.GetPreferredAllocationAvailable)
}

// What is left of a killed plug-in is replaced. What is no socket is somebody else's.
func TestLeftOvers(t *testing.T) {
	dir := folder(t)
	k := fakekubelet.Start(t, dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket(dir), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	l.Close()
	run(t, dir, nil)
	k.AwaitHealthy(t, resource, 4)

	file := filepath.Join(dir, "example.com_x.sock")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	other := run(t, dir, func(c *plugin.Config) { c.Resource = "example.com/x" })
	other.log.Await(t, "is there and no socket")
	require.NoError(t, other.stop())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
}

func TestConfig(t *testing.T) {
	dir := folder(t)
	for want, c := range map[string]plugin.Config{
		"0 devices; want 1 to":   {Resource: resource, Dir: dir},
		"1025 devices; want 1":   {Resource: resource, Devices: 1025, Dir: dir},
		"want DOMAIN/NAME":       {Resource: "rnic", Devices: 1, Dir: dir},
		"RFC 1123 subdomain":     {Resource: "soft rnic.io/rnic", Devices: 1, Dir: dir},
		"domain kubernetes.io":   {Resource: "kubernetes.io/rnic", Devices: 1, Dir: dir},
		"domain x.kubernetes.io": {Resource: "x.kubernetes.io/rnic", Devices: 1, Dir: dir},
		"domain requests.x":      {Resource: "requests.x/rnic", Devices: 1, Dir: dir},
		"a socket's path":        {Resource: resource, Devices: 1, Dir: dir + strings.Repeat("/long", 20)},
	} {
		assert.ErrorContains(t, plugin.Run(t.Context(), c), want)
	}
}
