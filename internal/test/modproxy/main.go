// Command modproxy writes the modules of this tree as they would be published at a version, to a folder that the go
// command takes as a module proxy:
//
//	go run ./internal/test/modproxy v0.9.0 DIR
//	GOPROXY=file://DIR,https://proxy.golang.org go install github.com/softrnic/softrnic/cmd/rnic@v0.9.0
//
// It takes all files that are there, but for bin and dist; a clone has those that are published.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: modproxy VERSION DIR")
		os.Exit(2)
	}
	if err := write(".", os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "modproxy:", err)
		os.Exit(1)
	}
}

// module is one of go.work.
type module struct{ path, dir string }

// modules are those of the tree at root, the root module first.
func modules(root string) (list []module, err error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules of go.work: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		list = append(list, module{path, dir})
	}
	return list, nil
}

// write makes the proxy (go.dev/ref/mod, "GOPROXY protocol").
func write(root, version, dir string) error {
	list, err := modules(root)
	if err != nil {
		return err
	}
	for _, m := range list {
		at := filepath.Join(dir, filepath.FromSlash(m.path), "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		mod, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
		if err != nil {
			return err
		}
		for name, text := range map[string]string{
			"list": version + "\n", version + ".info": fmt.Sprintf("{\"Version\":%q}\n", version), version + ".mod": string(mod),
		} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
		if err := archive(m, list[0].dir, version, filepath.Join(at, version+".zip")); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}

// archive writes the zip of a module (go.dev/ref/mod, "Module zip files"): regular files, without those of modules below,
// and with the repository's LICENSE if it has none of its own.
func archive(m module, root, version, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z := zip.NewWriter(out)
	add := func(name, from string) error {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		w, err := z.Create(m.path + "@" + version + "/" + filepath.ToSlash(name))
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
	licensed := false
	err = filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(m.dir, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".":
			_, none := os.Stat(filepath.Join(path, "go.mod"))
			if none == nil || name == ".git" || name == "bin" || name == "dist" {
				return fs.SkipDir
			}
		case d.Type().IsRegular() && name != ".git": // which is a file in a work tree of git's
			licensed = licensed || name == "LICENSE"
			return add(name, path)
		}
		return nil
	})
	if err == nil && !licensed {
		err = add("LICENSE", filepath.Join(root, "LICENSE"))
	}
	if err != nil {
		return err
	}
	return z.Close()
}
