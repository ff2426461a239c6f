package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// session waits for a kubelet, serves, registers, and goes on until the kubelet does not know this plug-in any more or
// the context ends. known is the kubelet's socket that it registered at, watched whether the kubelet asked for the
// devices.
func session(ctx context.Context, c Config, devices *Devices) (known os.FileInfo, watched bool, err error) {
	// The folder is watched before anything is looked at in it, so that no change is missed.
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, false, fmt.Errorf("watching files: %w", err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(c.Dir); err != nil {
		return nil, false, fmt.Errorf("watching %s, the kubelet's folder for device plug-ins: %w", c.Dir, err)
	}
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()

	if known, err = awaitKubelet(ctx, c, devices, w, tick.C); err != nil {
		return nil, false, err
	}
	l, err := listen(c.socket())
	if err != nil {
		return known, false, err
	}
	own, err := os.Lstat(c.socket())
	if err != nil {
		return known, false, errors.Join(err, l.Close())
	}
	s := newServer(devices, c.Inject)
	g := grpc.NewServer()
	api.RegisterDevicePluginServer(g, s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := g.Serve(l); err != nil {
			c.Log.Warn("serving the kubelet", "socket", c.socket(), "why", err)
		}
	}()
	defer func() {
		g.Stop() // ends the streams
		<-served
		removeOwn(c.socket(), own)
	}()
	if err := register(ctx, c); err != nil {
		return known, false, err
	}
	c.Log.Info("registered", "resource", c.Resource, "socket", c.socket())
	watched, err = attend(ctx, c, devices, s, attention{w, tick.C, known, own})
	return known, watched, err
}

// removeOwn removes the plug-in's socket, if it is not another's by now: a kubelet that starts makes room for one.
func removeOwn(path string, own os.FileInfo) {
	if now, err := os.Lstat(path); err == nil && same(now, own) {
		_ = os.Remove(path)
	}
}

// attention is what a session looks at.
type attention struct {
	w          *fsnotify.Watcher
	tick       <-chan time.Time
	known, own os.FileInfo // the sockets of the kubelet and of the plug-in
}

// attend keeps the devices' health up to date until the session is over, and says why it is.
func attend(ctx context.Context, c Config, devices *Devices, s *server, a attention) (watched bool, err error) {
	silent := time.NewTimer(c.Patience)
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return watched, ctx.Err()
		case <-s.watched:
			watched = true
			silent.Stop()
		case <-silent.C:
			return watched, fmt.Errorf("the kubelet took the registration, but did not ask for the devices in %v", c.Patience)
		case <-s.lost:
			return true, errors.New("the kubelet does not watch the devices any more")
		case <-a.tick:
			c.look(ctx, devices)
		case <-a.w.Events:
		case err := <-a.w.Errors: // events were lost, so the sockets are looked at
			c.Log.Warn("watching files", "folder", c.Dir, "why", err)
		}
		if err := a.stale(c); err != nil {
			return watched, err
		}
	}
}

// stale is why the kubelet does not know this plug-in any more, or nil.
func (a attention) stale(c Config) error {
	if now, err := os.Lstat(c.kubelet()); err != nil || !same(now, a.known) {
		return fmt.Errorf("the kubelet has ended or begun anew: %s is not what it was", c.kubelet())
	}
	if now, err := os.Lstat(c.socket()); err != nil || !same(now, a.own) {
		return fmt.Errorf("%s was removed, as a kubelet that starts does", c.socket())
	}
	return nil
}

// awaitKubelet waits for the kubelet's socket.
func awaitKubelet(
	ctx context.Context, c Config, devices *Devices, w *fsnotify.Watcher, tick <-chan time.Time,
) (os.FileInfo, error) {
	for told := false; ; told = true {
		info, err := os.Lstat(c.kubelet())
		if err == nil {
			return info, nil
		}
		if _, gone := os.Lstat(c.Dir); gone != nil || !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for the kubelet: %w", err)
		}
		if !told {
			c.Log.Info("waiting for the kubelet", "socket", c.kubelet())
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.Events:
		case err := <-w.Errors:
			c.Log.Warn("watching files", "folder", c.Dir, "why", err)
		case <-tick:
			c.look(ctx, devices)
		}
	}
}

// register tells the kubelet of the plug-in. The kubelet connects to our socket before it answers.
func register(ctx context.Context, c Config) error {
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	client, err := grpc.NewClient("unix://"+c.kubelet(), plain, grpc.WithNoProxy())
	if err != nil {
		return fmt.Errorf("registering at %s: %w", c.kubelet(), err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	_, err = api.NewRegistrationClient(client).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(c.socket()), ResourceName: c.Resource,
		Options: &api.DevicePluginOptions{},
	})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the kubelet did not answer a registration at %s in %v", c.kubelet(), c.Patience)
	case err != nil:
		return fmt.Errorf("registering at %s: %w", c.kubelet(), err)
	}
	return nil
}

// listen makes the plug-in's socket. It takes the place of one that nobody serves, and of nothing else.
func listen(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is there and no socket; remove it, or use another resource name", path)
	default:
		other, err := net.Dial("unix", path)
		if err == nil {
			_ = other.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("another plug-in serves %s; end it, or use another resource name", path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then another's may be there

	if err := os.Chmod(path, 0o600); err != nil { // the kubelet is root
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
