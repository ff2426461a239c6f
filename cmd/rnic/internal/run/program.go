package run

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Preloads is nil if `rnic run` can give the program at path a device, as far as its file says.
func Preloads(path string) error { return preloads(path) }

// preloads is nil if the dynamic loader will load our library into the program at path; else it says why it will not.
// A script is what its interpreter is.
func preloads(path string) error {
	for range 4 { // as many interpreters of interpreters as Linux follows
		f, err := os.Open(path)
		if errors.Is(err, os.ErrPermission) {
			return nil // may be run but not read: its kind is not known
		}
		if err != nil {
			return err
		}
		interpreter, err := inspect(f, path)
		f.Close()
		if err != nil || interpreter == "" {
			return err
		}
		path = interpreter
	}
	return nil
}

// inspect looks at one file; for a script it returns the interpreter.
func inspect(f *os.File, path string) (interpreter string, err error) {
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil {
		return "", nil //nolint:nilerror // too short for any program: the system will say what it is
	}
	switch {
	case bytes.HasPrefix(magic, []byte("#!")):
		if _, err := f.Seek(2, io.SeekStart); err != nil {
			return "", err
		}
		line, err := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
		if words := strings.Fields(line); err == nil && len(words) > 0 {
			return words[0], nil
		}
		return "", nil
	case string(magic) != elf.ELFMAG:
		return "", nil // a script without #!, which a shell runs
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if err := privileged(f); err != nil {
		return "", fmt.Errorf("%s %w, and the dynamic loader keeps other libraries out of such programs; run a copy without that", path, err)
	}
	return "", linked(program, path)
}

// linked is nil for a program that glibc's dynamic loader of this architecture starts.
func linked(program *elf.File, path string) error {
	if want := machine(); program.Machine != want {
		return fmt.Errorf("%s is a program for %s, and the libraries are for %s; build it for this machine", path, program.Machine, want)
	}
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(segment.Open())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if strings.Contains(string(name), "ld-musl") {
			return fmt.Errorf("%s is linked with musl, and the libraries are made for glibc; run it on a system with glibc, built there", path)
		}
		return nil
	}
	return fmt.Errorf("%s is statically linked, so that no library can be loaded into it; link it dynamically (Go programs do not need "+
		"`rnic run`: they import the package)", path)
}

// find is where a program is, and an error with the status that a shell gives.
func find(name string) (string, int, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, 0, nil
	case errors.Is(err, os.ErrPermission):
		return "", 126, err
	}
	return "", 127, err
}
