package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const (
	module = "github.com/softrnic/softrnic"
	// home is this package, in its module.
	home = "conformance/mutants"
	// noInlining is a flag of the go command's. A function then is in the archive of
	// its own package only: see forge.quick.
	noInlining = "-gcflags=" + module + "/...=-l"
)

// moduleRoot is the directory of the module that the working directory is in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := goTool(ctx, ".", "list", "-m", "-f", "{{.Dir}}", module)
	return strings.TrimSpace(out), err
}

// goTool runs the go command in a directory and answers what it printed.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // a linker for Go alone will do
	if args[0] == "tool" {
		cmd.Env = append(cmd.Env, "GOGC=off") // it is gone before collecting garbage pays
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, clip(strings.Join(strings.Fields(stderr.String()), " "), 300))
	}
	return stdout.String(), nil
}

// forge builds this program with faults, in a directory of its own.
type forge struct {
	root, dir string

	// Set by healthy.
	packs    map[string]*pack // of the program, by import path
	language string           // of the module: "go1.25"
}

// pack is a package of the program, as it is without faults.
type pack struct {
	archive, dir string
	files        []string // of Go
	mixed        bool     // it has other files too
}

// healthy builds the program as it is.
func (f *forge) healthy(ctx context.Context) (program string, err error) {
	version, err := goTool(ctx, f.root, "list", "-m", "-f", "{{.GoVersion}}", module)
	if err != nil {
		return "", err
	}
	v := strings.Split(strings.TrimSpace(version), ".")
	f.language = "go" + strings.Join(v[:2], ".")
	const format = `{{.ImportPath}}	{{.Export}}	{{.Dir}}	{{join .GoFiles " "}}	{{len .SFiles}}{{len .EmbedFiles}}`
	list, err := goTool(ctx, f.root, "list", "-export", "-deps", noInlining, "-f", format, "./"+home)
	if err != nil {
		return "", err
	}
	f.packs = map[string]*pack{}
	for line := range strings.Lines(list) {
		if v := strings.Split(strings.TrimSpace(line), "\t"); v[1] != "" {
			f.packs[v[0]] = &pack{archive: v[1], dir: v[2], files: strings.Fields(v[3]), mixed: v[4] != "00"}
		}
	}
	importcfg, err := f.importcfg("healthy", nil)
	if err != nil {
		return "", err
	}
	return f.link(ctx, "healthy", importcfg)
}

// build builds a mutant: the quick way if that can be done.
func (f *forge) build(ctx context.Context, name string, m *mutant) (program string, err error) {
	if program, err = f.quick(ctx, name, m); err == nil {
		return program, nil
	}
	overlay, err := f.overlay(name, m, m.is)
	if err != nil {
		return "", err
	}
	program = filepath.Join(f.dir, name)
	// -s and -w, no symbols, are for the linker's sake.
	_, err = goTool(ctx, f.root, "build", "-overlay", overlay, noInlining, "-ldflags=-s -w", "-o", program, "./"+home)
	return program, err
}

// quick compiles the mutant's package alone, and links it with the others as they
// were compiled without the fault: compiling all packages above it, the many cases
// too, takes ten times as long. They may not know more of the package than they did.
// The linker sees to that: what a package exports has a fingerprint, of names,
// types, constants and where in the file they stand, but not of functions' bodies
// as long as nothing is inlined. If it differs, as by what a body lets escape, linking fails,
// and the package that asked for it is compiled too.
func (f *forge) quick(ctx context.Context, name string, m *mutant) (program string, err error) {
	overlay, err := f.overlay(name, m, fit(m.is, strings.Count(m.was, "\n")))
	if err != nil {
		return "", err
	}
	changed := map[string]string{} // archives
	importcfg, err := f.importcfg(name, changed)
	if err != nil {
		return "", err
	}
	pkg, file, replacement := path.Join(module, path.Dir(m.file)), path.Base(m.file), f.replacement(name)
	var compiled []string // archives of this mutant alone
	defer func() {
		for _, archive := range compiled {
			_ = os.Remove(archive)
		}
	}()
	for {
		archive := filepath.Join(f.dir, name+strings.ReplaceAll(pkg, "/", "_")+".a")
		switch p := f.packs[pkg]; {
		case p == nil || changed[pkg] != "":
			return "", err
		case p.mixed && len(changed) > 0:
			return "", err
		case p.mixed:
			archive, err = goTool(ctx, f.root, "list", "-export", "-overlay", overlay, noInlining, "-f", "{{.Export}}", pkg)
			archive = strings.TrimSpace(archive)
		default:
			compiled = append(compiled, archive)
			err = f.compile(ctx, archive, pkg, importcfg, file, replacement)
		}
		if err != nil {
			return "", err
		}
		changed[pkg] = archive
		if importcfg, err = f.importcfg(name, changed); err != nil {
			return "", err
		}
		if program, err = f.link(ctx, name, importcfg); err == nil {
			return program, nil
		}
		_, asks, _ := strings.Cut(err.Error(), " import from ")
		pkg, _, _ = strings.Cut(asks, " expecting ")
		file = "" // nothing is replaced in it
	}
}

// compile compiles a package of Go alone, in which a file is replaced, as the go command would,
// which looks at all packages below it each time.
func (f *forge) compile(ctx context.Context, archive, pkg, importcfg, file, replacement string) error {
	p := f.packs[pkg]
	args := []string{
		"tool", "compile", "-o", archive, "-p", pkg, "-lang=" + f.language, "-complete", "-pack", "-nolocalimports",
		"-l", "-dwarf=false", "-c=1", "-importcfg", importcfg, "-trimpath", replacement + "=>" + filepath.Join(p.dir, file),
	}
	for _, g := range p.files {
		if g == file {
			args = append(args, replacement)
		} else {
			args = append(args, filepath.Join(p.dir, g))
		}
	}
	_, err := goTool(ctx, f.root, args...)
	return err
}

// fit gives a text so many ends of lines, so that the lines below keep their numbers: it
// leaves lines empty, or joins the first ones.
func fit(is string, lines int) string {
	for n := strings.Count(is, "\n"); n > lines; n-- {
		line, rest, _ := strings.Cut(is, "\n")
		line, _, _ = strings.Cut(line, " // ") // a comment would swallow what is joined
		is = line + joint(line) + strings.TrimLeft(rest, "\t")
	}
	return is + strings.Repeat("\n", lines-strings.Count(is, "\n"))
}

// joint is what stands for the end of a line of Go: where a semicolon is understood, one.
func joint(line string) string {
	line = strings.TrimSpace(line)
	open := line == "" || strings.ContainsAny(line[len(line)-1:], "{([,;:+-*/%&|^<>=!.")
	if open && !strings.HasSuffix(line, "++") && !strings.HasSuffix(line, "--") {
		return " "
	}
	return "; "
}

// importcfg writes a file that says where the archives of the packages are, some of which have
// changed.
func (f *forge) importcfg(name string, changed map[string]string) (file string, err error) {
	var config strings.Builder
	for pkg, p := range f.packs {
		fmt.Fprintf(&config, "packagefile %s=%s\n", pkg, cmp.Or(changed[pkg], p.archive))
	}
	file = filepath.Join(f.dir, name+".cfg")
	return file, os.WriteFile(file, []byte(config.String()), 0o644)
}

// link links the program from the archives that a file names.
func (f *forge) link(ctx context.Context, name, importcfg string) (program string, err error) {
	program = filepath.Join(f.dir, name)
	_, err = goTool(ctx, f.root, "tool", "link", "-importcfg", importcfg, "-s", "-w", "-o", program, f.packs[module+"/"+home].archive)
	return program, err
}

// replacement is the file that overlay writes.
func (f *forge) replacement(name string) string { return filepath.Join(f.dir, name+".go.txt") }

// overlay writes the file with the fault in it, and what tells the go command to
// take it.
func (f *forge) overlay(name string, m *mutant, is string) (string, error) {
	file := filepath.Join(f.root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	changed, err := m.apply(string(source), is)
	if err != nil {
		return "", err
	}
	replacement := f.replacement(name)
	if err := os.WriteFile(replacement, []byte(changed), 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: replacement}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(f.dir, name+".json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// drop removes what build made.
func (f *forge) drop(name string) {
	for _, suffix := range []string{"", ".json", ".go.txt", ".cfg"} {
		_ = os.Remove(filepath.Join(f.dir, name+suffix))
	}
}
