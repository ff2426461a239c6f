// Package bundle has the two libraries of `rnic run` in the program itself, if it was built with the tag `bundled`
// (tools/bundle.sh), and unpacks them to the user's cache directory. The dynamic loader takes libraries from files only.
package bundle

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sums is the file with the hashes of the libraries, as sha256sum prints them. Beside it is each, with .gz.
const sums = "made/SHA256SUMS"

// packed is a library: its name, the hash of its octets, and these, compressed.
type packed struct {
	name, hash string
	compressed []byte
}

// load reads what tools/bundle.sh has made.
func load(made fs.FS) (files []packed, err error) {
	text, err := fs.ReadFile(made, sums)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		b, err := fs.ReadFile(made, "made/"+name+".gz")
		if err != nil {
			return nil, err
		}
		files = append(files, packed{name, hash, b})
	}
	return files, nil
}

// unpack puts the files into a folder below cache that has their hashes in its name, and answers it. What is there already
// is used if it is this user's and has the octets that it should have, and is replaced else. Others may do the same at the
// same time: a file appears whole, or not at all.
func unpack(cache string, files []packed) (string, error) {
	all := sha256.New()
	for _, f := range files {
		fmt.Fprintln(all, f.hash, f.name)
	}
	dir := filepath.Join(cache, "softrnic")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", unusable(err)
	}
	for _, d := range []string{dir, filepath.Join(dir, hex.EncodeToString(all.Sum(nil)[:8]))} {
		if err := private(d); err != nil {
			return "", unusable(err)
		}
		dir = d
	}
	for _, f := range files {
		file := filepath.Join(dir, f.name)
		if f.isAt(file) {
			continue
		}
		if err := f.put(file); err != nil {
			return "", unusable(err)
		}
	}
	return dir, executable(dir)
}

// remedy is what helps if the cache directory does not.
const remedy = "name another folder in XDG_CACHE_HOME"

func unusable(err error) error {
	return fmt.Errorf("unpacking the libraries of `rnic run`: %w; %s", err, remedy)
}

// private makes the folder, or sees that it is this user's; nobody else may come into it.
func private(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case !own(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

func own(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// isAt reports whether the file is there: a regular one of this user's under no other name, which nobody else may write, and
// with the right octets.
func (p packed) isAt(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !own(info) || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink != 1 {
		return false
	}
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	return err == nil && hex.EncodeToString(hash.Sum(nil)) == p.hash
}

// put writes the file under a name of its own, and then gives it its name.
func (p packed) put(file string) error {
	z, err := gzip.NewReader(bytes.NewReader(p.compressed))
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), p.name+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone if all went well
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(tmp, hash), z) //nolint:gosec // of our own making
	if err == nil && hex.EncodeToString(hash.Sum(nil)) != p.hash {
		err = fmt.Errorf("%s is damaged in this program: install it again", p.name)
	}
	if err == nil {
		err = tmp.Chmod(0o500)
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// executable is an error if the loader cannot load libraries from the folder.
func executable(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil && fs.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is on a file system mounted noexec, from which no library is loaded; %s", dir, remedy)
	}
	return nil
}
