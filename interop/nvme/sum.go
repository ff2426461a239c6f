//go:build linux

package main

import (
	"crypto/md5"
	"fmt"
	"io"
	"os"
)

// partSum is the MD5, in hex, of n octets of a file from offset on: what the guest's md5sum says of them.
func partSum(path string, offset, n int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := md5.New()
	if _, err := io.CopyN(h, io.NewSectionReader(f, offset, n), n); err != nil {
		return "", fmt.Errorf("%s at %d: %w", path, offset, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
