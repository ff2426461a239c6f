// Package plugin is the device plug-in: it tells the kubelet of a node how many devices of a resource there are, and
// what a container with one is given, over the API that the kubelet publishes (k8s.io/kubelet, deviceplugin/v1beta1).
//
// A session is one socket of the plug-in's, one registration and the kubelet's ListAndWatch over it. It lasts until
// something says that the kubelet does not know this plug-in any more: a new kubelet.sock, our socket removed (a
// kubelet that starts empties the folder), the end of ListAndWatch. Then the next session begins.
package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// KubeletSocket is the kubelet's own socket in Config.Dir.
const KubeletSocket = "kubelet.sock"

// Config is a plug-in.
type Config struct {
	// Resource is the name of the resource, such as softrnic.io/rnic.
	Resource string
	// Devices is how many there are, 1 to 1024.
	Devices int
	// Dir is the folder with the kubelet's socket, where the plug-in's own goes too.
	Dir string
	// Inject says what a container is given.
	Inject Injector
	// Check is called at the beginning and each Interval. It is an error while the devices cannot be used.
	Check func(context.Context) error
	// Interval is between two looks at the devices and at the sockets. Default: 5 s.
	Interval time.Duration
	// Patience is how long the kubelet may take to answer a registration, and then to ask for the devices. Default:
	// 20 s: it connects to the plug-in before it answers, for which it takes 10 s at most.
	Patience time.Duration
	// Retry is the pause after a failed session. It doubles with each failure, up to MaxRetry. Default: 1 s and 30 s.
	Retry, MaxRetry time.Duration
	// Log gets a line for each event. Default: slog's.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, 5*time.Second)
	c.Patience = cmp.Or(c.Patience, 20*time.Second)
	c.Retry = cmp.Or(c.Retry, time.Second)
	c.MaxRetry = cmp.Or(c.MaxRetry, 30*time.Second)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// mostDevices is more than a node has containers, and a list that the kubelet takes in one message.
const mostDevices = 1024

// longestPath is what fits in sockaddr_un with its final zero (unix(7)).
const longestPath = 107

func (c Config) validate() error {
	if c.Devices < 1 || c.Devices > mostDevices {
		return fmt.Errorf("%d devices; want 1 to %d", c.Devices, mostDevices)
	}
	domain, _, found := strings.Cut(c.Resource, "/")
	// What the kubelet takes for an extended resource: a qualified name outside Kubernetes' own domains.
	if problems := validation.IsQualifiedName(c.Resource); len(problems) > 0 {
		return fmt.Errorf("resource %q: %s", c.Resource, strings.Join(problems, "; "))
	}
	if !found {
		return fmt.Errorf("resource %q; want DOMAIN/NAME, such as softrnic.io/rnic", c.Resource)
	}
	if domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasPrefix(domain, "requests.") {
		return fmt.Errorf("resource %q; the domain %s is Kubernetes' own, use another", c.Resource, domain)
	}
	if p := c.socket(); len(p) > longestPath {
		return fmt.Errorf("%s has %d characters, a socket's path %d at most; use a shorter name", p, len(p), longestPath)
	}
	return nil
}

// socket is the plug-in's own. Plug-ins of two resources have two.
func (c Config) socket() string {
	return filepath.Join(c.Dir, strings.ReplaceAll(c.Resource, "/", "_")+".sock")
}

func (c Config) kubelet() string { return filepath.Join(c.Dir, KubeletSocket) }

// Run serves until the context ends, which is no error. A kubelet that is not there, does not answer or starts anew is
// waited for, with a line in the log. An error is one of the configuration.
func Run(ctx context.Context, c Config) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	devices := NewDevices(c.Devices, errors.New("not looked at yet"))
	c.look(ctx, devices)
	for pause := c.Retry; ; pause = min(2*pause, c.MaxRetry) {
		known, watched, err := session(ctx, c, devices)
		if ctx.Err() != nil {
			c.Log.Info("the plug-in ends", "resource", c.Resource)
			return nil
		}
		if watched {
			pause = c.Retry
		}
		c.Log.Warn("the session with the kubelet is over", "resource", c.Resource, "why", err, "pause", pause)
		c.rest(ctx, devices, known, pause)
	}
}

// look asks Check and tells the devices.
func (c Config) look(ctx context.Context, devices *Devices) {
	ill := c.Check(ctx)
	switch {
	case ctx.Err() != nil: // Check was interrupted, which says nothing of the devices
	case !devices.SetHealth(ill):
	case ill != nil:
		c.Log.Warn("the devices cannot be used", "resource", c.Resource, "why", ill)
	default:
		c.Log.Info("the devices can be used", "resource", c.Resource, "devices", c.Devices)
	}
}

// rest lets the pause pass between two sessions. In it a kubelet that we left notices the end of the old connection
// before it hears of the new one. A kubelet that was not known is not kept waiting for longer than Interval.
func (c Config) rest(ctx context.Context, devices *Devices, known os.FileInfo, pause time.Duration) {
	end := time.NewTimer(pause)
	defer end.Stop()
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		select {
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			c.look(ctx, devices)
			if now, err := os.Lstat(c.kubelet()); err == nil && !same(now, known) {
				return
			}
		}
	}
}

// same is whether two looks saw one file. The number of a removed file may come again, so its time counts too.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}
