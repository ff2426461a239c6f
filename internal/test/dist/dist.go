// Package dist looks into what `make release` builds: the archives, and the libraries in them.
package dist

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
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
