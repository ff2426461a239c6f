// Package cdi is `rnic cdi`: it tells container engines what a container needs in which programs find an RDMA device, as a
// specification of the Container Device Interface (CDI).
package cdi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// Command makes `rnic cdi`.
func Command() *cobra.Command {
	return cli.Group("cdi", "Give containers an RDMA device", generateCommand())
}

// generating is `rnic cdi generate`.
type generating struct {
	output string // "": standard output
	name   string
	host   string // "": as folder
}

func generateCommand() *cobra.Command {
	g := generating{name: "0"}
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Write a CDI specification",
		Long: `generate writes a CDI specification of version 0.5.0, kind softrnic.io/rnic. A container that is started with such
a device gets this program, the two libraries beside it and a folder of files, read-only, in /opt/softrnic, and three
variables, of which LD_PRELOAD takes the place of the image's own. It gets no device node, no hook, no capability, and
writes nothing. Each program in it finds the device softrnic0, with an address of the container's. All names are of the
same device.

The folder of files, softrnic-sysfs-1, is made beside this program if it is not there. Any user has to be able to read it
and the libraries.`,
		Example: `  rnic cdi generate -o /etc/cdi/softrnic.json
  podman run --device softrnic.io/rnic=0 IMAGE ib_write_bw -R`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&g.output, "output", "o", "", "write to this `FILE`, such as /etc/cdi/softrnic.json, and make its folder; default: standard output")
	fs.StringVar(&g.name, "name", g.name, "the devices' `NAMES`, such as 0..3 or a,b")
	fs.StringVar(&g.host, "host-folder", "", "where the host has this program's `FOLDER`, if this is a container with another name for it")
	return cmd
}

func (g generating) run(cmd *cobra.Command) error {
	list, err := names(g.name)
	if err != nil {
		return cli.Usagef("--name: %v", err)
	}
	if g.host != "" && !filepath.IsAbs(g.host) {
		return cli.Usagef("--host-folder %s: want an absolute path", g.host)
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return fmt.Errorf("finding this program, whose libraries are beside it: %w", err)
	}
	folder := filepath.Dir(self)
	if err := prepare(folder); err != nil {
		return err
	}
	if g.host != "" {
		folder = g.host
	}
	text, err := json.MarshalIndent(specification(filepath.Clean(folder), list), "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if g.output == "" {
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	return writeFile(g.output, text)
}

// writeFile puts text in the place of a file, in one step: engines read the folder at any time. Its folder is made.
func writeFile(name string, text []byte) error {
	switch filepath.Ext(name) {
	case ".json", ".yaml": // JSON is YAML
	default:
		return cli.Usagef("-o %s: want a name that ends with .json or .yaml: engines read no others", name)
	}
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// prepare makes what is missing in the folder and can be made, and says what else is wrong with it.
func prepare(folder string) error {
	if strings.ContainsAny(folder, "\n\x00") {
		return fmt.Errorf("the folder of this program has a name that no specification takes: %q", folder)
	}
	if err := makeTree(folder); err != nil {
		return err
	}
	for _, name := range contents() {
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && name == program:
			return fmt.Errorf("this program is not named %s: give it its name, that containers may find it", program)
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%s is not beside this program, in %s; `make c` builds it", name, folder)
		case err != nil:
			return err
		}
		if want := needed(info); info.Mode().Perm()&want != want {
			return fmt.Errorf("%s can not be read by all users, and a container may have any: chmod a+rX %s", path, path)
		}
	}
	return nil
}

// needed are the rights that a container of any user needs.
func needed(info os.FileInfo) os.FileMode {
	if info.IsDir() || info.Name() == program {
		return 0o005
	}
	return 0o004
}
