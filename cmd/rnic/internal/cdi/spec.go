package cdi

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/softrnic/softrnic/rdmacore"
)

const (
	// version is that of the specification: the oldest that has all that is used here, so that podman 4 reads it.
	version = "0.5.0"
	// kind is the device's, in `--device softrnic.io/rnic=0`.
	kind = "softrnic.io/rnic"
	// inside is the folder in containers.
	inside = "/opt/softrnic"
	// program is the name of this program in the folder.
	program = "rnic"
)

// contents are the names of what containers get.
func contents() []string {
	return []string{program, rdmacore.EngineLibrary, rdmacore.PreloadLibrary, tree}
}

// specification is that of devices of these names, whose files are in folder, of the host.
func specification(folder string, names []string) specs.Spec {
	s := specs.Spec{Version: version, Kind: kind}
	for _, name := range contents() {
		s.ContainerEdits.Mounts = append(s.ContainerEdits.Mounts, &specs.Mount{
			HostPath:      filepath.Join(folder, name),
			ContainerPath: path.Join(inside, name),
			Options:       []string{"ro", "nosuid", "nodev", "rbind"},
		})
	}
	var env []string
	for _, v := range rdmacore.Templated(path.Join(inside, rdmacore.PreloadLibrary), path.Join(inside, rdmacore.EngineLibrary), path.Join(inside, tree)) {
		env = append(env, v[0]+"="+v[1])
	}
	for _, name := range names {
		// A device without edits of its own is refused.
		s.Devices = append(s.Devices, specs.Device{Name: name, ContainerEdits: specs.ContainerEdits{Env: env}})
	}
	return s
}

// most is how many devices a specification may have.
const most = 1024

// deviceName is what CDI takes, and podman 4 too.
var deviceName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// names are those of a list such as 0..3,a: each once.
func names(list string) ([]string, error) {
	var all []string
	seen := map[string]bool{}
	add := func(name string) error {
		switch {
		case !deviceName.MatchString(name):
			return fmt.Errorf("%q: want letters, digits, and _ . - between them, or numbers such as 0..3", name)
		case seen[name]:
			return fmt.Errorf("%s is there twice", name)
		case len(all) == most:
			return fmt.Errorf("more than %d names", most)
		}
		seen[name] = true
		all = append(all, name)
		return nil
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "..")
		if !isRange {
			if err := add(part); err != nil {
				return nil, err
			}
			continue
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || from > to {
			return nil, fmt.Errorf("%q: want numbers such as 0..3, the smaller first", part)
		}
		for i := from; i <= to; i++ {
			if err := add(strconv.FormatUint(i, 10)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}
