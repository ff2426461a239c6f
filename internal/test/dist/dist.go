// Package dist looks into what `make release` builds: the archives, and the libraries in them.
package dist

import (
	"archive/tar"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// limit is how many octets a file of an archive has at most; all are held in memory.
const limit = 1 << 28

// file is one of an archive, with its octets.
type file struct {
	tar.Header

	octets []byte
}

// read is the files of a .tar.gz, in its order.
func read(path string) (files []file, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			if _, err := io.Copy(io.Discard, io.LimitReader(z, limit)); err != nil { // up to the check sum, which is last
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		b, err := io.ReadAll(io.LimitReader(t, limit))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, h.Name, err)
		}
		files = append(files, file{*h, b})
	}
}

// glibc is the newest version of glibc of which the program or library needs a symbol, such as {2, 31}, and that symbol's
// name; nil if it needs none. Versions that are no numbers (GLIBC_PRIVATE) are newer than all: no release promises them.
func glibc(f *elf.File) (newest []int, symbol string, err error) {
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return nil, "", err
	}
	for _, s := range symbols {
		text, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		if v := numbers(text); slices.Compare(v, newest) > 0 {
			newest, symbol = v, s.Name+"@"+s.Version
		}
	}
	return newest, symbol, nil
}

// numbers are those of a version.
func numbers(text string) (v []int) {
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 1 << 30
		}
		v = append(v, n)
	}
	return v
}
