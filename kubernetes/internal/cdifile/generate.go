// Package cdifile has what a container with a device is given: it asks `rnic cdi generate`, which alone decides that,
// and passes it on as a file for container runtimes (Container Device Interface) or as mounts and variables for the
// kubelet.
package cdifile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// Edits are what a container with a device is given, variables and files of the host: with any device, and with each.
type Edits struct{ all, one cdi.ContainerEdits }

func (e Edits) env() []string { return slices.Concat(e.all.Env, e.one.Env) }

func (e Edits) mounts() []*cdi.Mount { return slices.Concat(e.all.Mounts, e.one.Mounts) }

// patience is how long rnic may take to write a page of text on a busy node.
const patience = time.Minute

// largest is how much it may write.
const largest = 1 << 20

// Generate asks the program at path and reads its answer. The program has to be where the host has
// it: the files that it names are those beside it.
func Generate(ctx context.Context, path string) (Edits, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, problems bounded
	command := exec.CommandContext(ctx, path, "cdi", "generate")
	command.Stdout, command.Stderr = &out, &problems
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		switch {
		case out.full || problems.full:
			err = fmt.Errorf("it writes more than %d octets; is it rnic?", largest)
		case ctx.Err() != nil:
			err = ctx.Err()
		}
		said := problems.octets[:min(len(problems.octets), 1000)]
		return Edits{}, fmt.Errorf("%s cdi generate: %w: %s", path, err, strings.TrimSpace(string(said)))
	}
	edits, err := parse(out.octets)
	if err != nil {
		return Edits{}, fmt.Errorf("what %s cdi generate says: %w", path, err)
	}
	return edits, nil
}

// bounded keeps largest octets at most; a program that writes more loses its output.
type bounded struct {
	octets []byte
	full   bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.octets)+len(p) > largest {
		b.full = true
		return 0, io.ErrShortWrite
	}
	b.octets = append(b.octets, p...)
	return len(p), nil
}

// parse takes from the text of a specification what it gives with its first device, and with all.
func parse(text []byte) (Edits, error) {
	var spec cdi.Spec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		return Edits{}, err
	}
	if len(spec.Devices) == 0 {
		return Edits{}, errors.New("no device in it")
	}
	e := Edits{spec.ContainerEdits, spec.Devices[0].ContainerEdits}
	if len(e.mounts()) == 0 || len(e.env()) == 0 {
		return Edits{}, errors.New("no mount or no variable in it")
	}
	for _, v := range e.env() {
		if name, _, found := strings.Cut(v, "="); !found || name == "" {
			return Edits{}, fmt.Errorf("the variable %q has no name or no value", v)
		}
	}
	for _, m := range e.mounts() {
		if m == nil || m.HostPath == "" || m.ContainerPath == "" {
			return Edits{}, errors.New("a mount without a path")
		}
	}
	for _, edits := range []cdi.ContainerEdits{e.all, e.one} {
		others := len(edits.DeviceNodes) + len(edits.NetDevices) + len(edits.Hooks) + len(edits.AdditionalGIDs)
		if others > 0 || edits.IntelRdt != nil {
			return Edits{}, errors.New("more than mounts and variables in it; use the plug-in of rnic's release, which knows them")
		}
	}
	return e, nil
}

// Present is an error that names the first file of the host that is gone.
func (e Edits) Present() error {
	for _, m := range e.mounts() {
		if _, err := os.Stat(m.HostPath); err != nil {
			return fmt.Errorf("what containers need is not on this host: %w", err)
		}
	}
	return nil
}

// Response is the edits as the kubelet takes them, for runtimes without CDI.
func (e Edits) Response() *api.ContainerAllocateResponse {
	r := &api.ContainerAllocateResponse{Envs: map[string]string{}}
	for _, v := range e.env() {
		name, value, _ := strings.Cut(v, "=")
		r.Envs[name] = value
	}
	for _, m := range e.mounts() {
		r.Mounts = append(r.Mounts, &api.Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, ReadOnly: readOnly(m)})
	}
	return r
}

func readOnly(m *cdi.Mount) bool {
	ro := false
	for _, option := range m.Options {
		switch option { // as mount(8): the last word counts
		case "ro":
			ro = true
		case "rw":
			ro = false
		}
	}
	return ro
}
