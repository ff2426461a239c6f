// Package install copies files to a folder of the host, from which containers get them.
package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files copies every file of from to the folder to, which is made if it is not there, and returns the names of those
// that were not as they should be. A file is replaced as a whole, under its name: containers that have the old one keep it.
func Files(from, to string) (replaced []string, err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(to, 0o755); err != nil { // programs of any user read what is in it
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return replaced, fmt.Errorf("%s is no file; leave only files there", filepath.Join(from, e.Name()))
		}
		changed, err := file(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		if err != nil {
			return replaced, err
		}
		if changed {
			replaced = append(replaced, e.Name())
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s is empty; the image has rnic and its libraries there", from)
	}
	return replaced, nil
}

// file copies one, if it is not there as it should be.
func file(from, to string) (changed bool, err error) {
	info, err := os.Stat(from)
	if err != nil {
		return false, err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	want, err := os.ReadFile(from)
	if err != nil {
		return false, err
	}
	if there, err := os.Lstat(to); err == nil && there.Mode() == mode {
		if now, err := os.ReadFile(to); err == nil && bytes.Equal(now, want) {
			return false, nil
		}
	}
	return true, replace(to, want, mode)
}

// replace writes a file beside it first: a crash leaves the old one or the new one.
func replace(to string, octets []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(to), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(octets)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), to)
}
