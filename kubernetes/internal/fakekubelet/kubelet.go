// Package fakekubelet is the kubelet's end of the device plug-in API, for tests: it does what Kubernetes' own does
// (pkg/kubelet/cm/devicemanager) as far as a plug-in sees it. It empties its folder when it starts, connects to a
// plug-in before it answers a registration, and marks all devices of a plug-in ill whose ListAndWatch ends.
package fakekubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Patience is how long a test waits for what has to happen.
const Patience = time.Minute

// Kubelet is one life of a kubelet.
type Kubelet struct {
	api.UnimplementedRegistrationServer
	dir string
	// deaf: it takes registrations and asks for nothing.
	deaf bool

	server *grpc.Server
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	plugins map[string]*Plugin
	changed chan struct{} // closed at each change
}

// Plugin is what the kubelet knows of a resource.
type Plugin struct {
	api.DevicePluginClient
	conn *grpc.ClientConn
	end  context.CancelFunc
	// Devices by health, as last said.
	Healthy, Unhealthy []string
	// Registrations counts those of this resource with this kubelet.
	Registrations int
	// Watched is whether a ListAndWatch is under way.
	Watched bool
}

// Start starts one in dir, after it has removed all that is there. The test's end stops it.
func Start(t *testing.T, dir string) *Kubelet { return start(t, dir, false) }

// StartDeaf starts one that takes registrations and then asks for nothing.
func StartDeaf(t *testing.T, dir string) *Kubelet { return start(t, dir, true) }

func start(t *testing.T, dir string, deaf bool) *Kubelet {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	k := &Kubelet{
		dir: dir, deaf: deaf, server: grpc.NewServer(), plugins: map[string]*Plugin{}, changed: make(chan struct{}),
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	api.RegisterRegistrationServer(k.server, k)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "kubelet.sock"), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false) // a kubelet that ends leaves its socket
	k.all.Go(func() { _ = k.server.Serve(l) })
	t.Cleanup(k.Stop)
	return k
}

// Stop ends it. It may be called again.
func (k *Kubelet) Stop() {
	k.cancel()
	k.server.Stop()
	k.mu.Lock()
	for _, p := range k.plugins {
		if p.conn != nil {
			p.conn.Close()
		}
	}
	k.mu.Unlock()
	k.all.Wait()
}

// Register is the call of a plug-in.
func (k *Kubelet) Register(ctx context.Context, r *api.RegisterRequest) (*api.Empty, error) {
	if !slices.Contains(api.SupportedVersions[:], r.Version) {
		return nil, fmt.Errorf("version %q is not supported", r.Version)
	}
	if strings.Contains(r.Endpoint, "/") || !strings.Contains(r.ResourceName, "/") {
		return nil, fmt.Errorf("endpoint %q, resource %q", r.Endpoint, r.ResourceName)
	}
	if k.deaf {
		k.update(func() { k.plugin(r.ResourceName).Registrations++ })
		return &api.Empty{}, nil
	}
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient("unix://"+filepath.Join(k.dir, r.Endpoint), plain)
	if err != nil {
		return nil, err
	}
	client := api.NewDevicePluginClient(conn)
	if _, err := client.GetDevicePluginOptions(ctx, &api.Empty{}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("the plug-in does not serve: %w", err)
	}
	watch, end := context.WithCancel(k.ctx)
	k.update(func() {
		p := k.plugin(r.ResourceName)
		p.leave()
		p.DevicePluginClient, p.conn, p.end = client, conn, end
		p.Registrations++
	})
	k.all.Go(func() { k.watch(watch, r.ResourceName, client) })
	return &api.Empty{}, nil
}

// plugin is the one of a resource, with the mutex held.
func (k *Kubelet) plugin(resource string) *Plugin {
	p := k.plugins[resource]
	if p == nil {
		p = &Plugin{}
		k.plugins[resource] = p
	}
	return p
}

// leave ends the connection to a plug-in.
func (p *Plugin) leave() {
	if p.conn != nil {
		p.end()
		p.conn.Close()
	}
}

func (k *Kubelet) update(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	close(k.changed)
	k.changed = make(chan struct{})
}

// watch follows the devices of a plug-in as long as it is the one of its resource.
func (k *Kubelet) watch(ctx context.Context, resource string, client api.DevicePluginClient) {
	set := func(list []*api.Device, watched bool) {
		k.update(func() {
			p := k.plugin(resource)
			if p.DevicePluginClient != client {
				return
			}
			if watched {
				p.Healthy, p.Unhealthy = nil, nil
				for _, d := range list {
					if d.Health == api.Healthy {
						p.Healthy = append(p.Healthy, d.ID)
					} else {
						p.Unhealthy = append(p.Unhealthy, d.ID)
					}
				}
			} else {
				p.Healthy, p.Unhealthy = nil, append(p.Unhealthy, p.Healthy...)
			}
			p.Watched = watched
		})
	}
	defer set(nil, false)
	stream, err := client.ListAndWatch(ctx, &api.Empty{})
	if err != nil {
		return
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return
		}
		set(r.Devices, true)
	}
}

// Await waits until a resource is as the test wants it, and returns what is known of it then.
func (k *Kubelet) Await(t *testing.T, resource string, as func(Plugin) bool) Plugin {
	t.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		k.mu.Lock()
		p, changed := *k.plugin(resource), k.changed
		k.mu.Unlock()
		if as(p) {
			return p
		}
		select {
		case <-changed:
		case <-late.C:
			require.Fail(t, "the kubelet waited in vain", "%s: %+v", resource, p)
		}
	}
}

// AwaitHealthy waits until n devices of a resource are healthy and none is not.
func (k *Kubelet) AwaitHealthy(t *testing.T, resource string, n int) Plugin {
	t.Helper()
	return k.Await(t, resource, func(p Plugin) bool { return len(p.Healthy) == n && len(p.Unhealthy) == 0 })
}

// Drop ends the ListAndWatch of a resource and forgets the plug-in, as a kubelet does whose connection breaks.
func (k *Kubelet) Drop(resource string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plugin(resource).leave()
}

// Allocate asks for devices, a list for each container.
func (p Plugin) Allocate(ctx context.Context, containers ...[]string) (*api.AllocateResponse, error) {
	if p.DevicePluginClient == nil {
		return nil, errors.New("no plug-in has registered")
	}
	r := &api.AllocateRequest{}
	for _, ids := range containers {
		r.ContainerRequests = append(r.ContainerRequests, &api.ContainerAllocateRequest{DevicesIds: ids})
	}
	return p.DevicePluginClient.Allocate(ctx, r)
}
