// Package command is the program rnic-device-plugin: its commands and their flags, and what this node has for
// containers.
package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/softrnic/softrnic/kubernetes/internal/cdifile"
	"github.com/softrnic/softrnic/kubernetes/internal/install"
	"github.com/softrnic/softrnic/kubernetes/internal/plugin"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const usage = `rnic-device-plugin offers RDMA devices in software to the pods of a Kubernetes node.

  rnic-device-plugin install [flags]   copy rnic and its libraries to the host
  rnic-device-plugin serve [flags]     be the device plug-in
  rnic-device-plugin COMMAND -h        the flags
`

// Run is the program, with its arguments. It writes its log to w, and serves until the context ends.
func Run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(w, usage)
		return errors.New("which command? see above")
	}
	switch args[0] {
	case "install":
		return installFiles(args[1:], w)
	case "serve":
		return serve(ctx, args[1:], w)
	case "-h", "--help", "help":
		fmt.Fprint(w, usage)
		return nil
	}
	return fmt.Errorf("no command %q; rnic-device-plugin -h lists them", args[0])
}

// parse reads the flags of a command, which takes nothing else.
func parse(fs *flag.FlagSet, args []string, w io.Writer) error {
	fs.SetOutput(w)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%s takes no %q; rnic-device-plugin %s -h lists its flags", fs.Name(), fs.Arg(0), fs.Name())
	}
	return nil
}

const hostFolder = "/opt/softrnic"

func installFiles(args []string, w io.Writer) error {
	fs := flag.NewFlagSet("install", flag.ContinueOnError)
	from := fs.String("from", "/usr/libexec/softrnic", "the `folder` of the image that has rnic and its libraries")
	to := fs.String("to", hostFolder, "the host's `folder`; the container has it under the same path")
	if err := parse(fs, args, w); err != nil {
		return err
	}
	if !filepath.IsAbs(*to) {
		return fmt.Errorf("--to %s: want a path that begins with /, the same on the host", *to)
	}
	replaced, err := install.Files(*from, *to)
	if err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	slog.New(slog.NewTextHandler(w, nil)).Info("installed", "folder", *to, "new", strings.Join(replaced, " "))
	return nil
}

// options are the flags of serve.
type options struct {
	resource, rnic, cdiDir, cdiKind, inject, kubelet string
	devices                                          int
	interval                                         time.Duration
}

func serve(ctx context.Context, args []string, w io.Writer) error {
	var o options
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.StringVar(&o.resource, "resource", "softrnic.io/rnic", "the `name` of the resource that pods ask for")
	fs.IntVar(&o.devices, "devices", 64, "how many containers of this node may have one at a time")
	fs.StringVar(&o.inject, "inject", "cdi", "how containers get it: `cdi`, or mounts for runtimes without CDI")
	fs.StringVar(&o.rnic, "rnic", hostFolder+"/rnic", "the `path` of rnic, the same on the host, its libraries beside it")
	fs.StringVar(&o.cdiDir, "cdi-dir", "/var/run/cdi", "the host's `folder` for CDI files")
	fs.StringVar(&o.cdiKind, "cdi-kind", "", "the `kind` of the CDI devices (default the name of the resource)")
	fs.StringVar(&o.kubelet, "kubelet-dir", filepath.Clean(api.DevicePluginPath), "the kubelet's `folder` for device plug-ins")
	fs.DurationVar(&o.interval, "interval", 5*time.Second, "between two looks at the files on the host")
	if err := parse(fs, args, w); err != nil {
		return err
	}
	o.cdiKind = cmp.Or(o.cdiKind, o.resource)
	if !filepath.IsAbs(o.rnic) || !filepath.IsAbs(o.kubelet) || !filepath.IsAbs(o.cdiDir) {
		return errors.New("--rnic, --kubelet-dir and --cdi-dir want paths that begin with /")
	}
	if o.interval <= 0 {
		return fmt.Errorf("--interval %v: want more than 0", o.interval)
	}
	h, err := newHost(o)
	if err != nil {
		return err
	}
	return plugin.Run(ctx, plugin.Config{
		Resource: o.resource, Devices: o.devices, Dir: o.kubelet, Inject: h.inject, Check: h.check, Interval: o.interval,
		Log: slog.New(slog.NewTextHandler(w, nil)),
	})
}

// newHost is the devices' side of the plug-in.
func newHost(o options) (*host, error) {
	h := &host{rnic: o.rnic}
	switch o.inject {
	case "cdi":
		var err error
		if h.file, err = cdifile.NewFile(o.cdiDir, o.cdiKind, o.devices); err != nil {
			return nil, fmt.Errorf("%w; --cdi-kind sets another", err)
		}
	case "mounts":
	default:
		return nil, fmt.Errorf("--inject %s: want cdi or mounts", o.inject)
	}
	return h, nil
}
