//go:build linux && (amd64 || arm64)

package umem

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Present brings the pages of a piece of memory in, as a kernel does that pins them, for writing if
// write. Errors: syscall.EFAULT if some of it is not mapped, or is read-only and to be written.
// On Linux before 5.14 it only tells whether all is mapped.
func Present(addr, n uint64, write bool) error {
	if _, err := Slice(addr, n); err != nil {
		return err
	}
	page := uint64(os.Getpagesize())
	begin := addr &^ (page - 1)
	end := (addr + n + page - 1) &^ (page - 1)
	advice := unix.MADV_POPULATE_READ
	if write {
		advice = unix.MADV_POPULATE_WRITE
	}
	if !populates() {
		return mapped(begin, end, page)
	}
	for {
		switch err := madvise(begin, end-begin, advice); {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
		case errors.Is(err, syscall.ENOMEM) && mapped(begin, end, page) == nil:
			return syscall.ENOMEM // the memory is short, not the mapping
		default:
			return syscall.EFAULT
		}
	}
}

// populates reports whether this Linux knows MADV_POPULATE_READ.
var populates = sync.OnceValue(func() bool { return madvise(0, 0, unix.MADV_POPULATE_READ) == nil })

// mapped reports by nil whether every page is mapped.
func mapped(begin, end, page uint64) error {
	var there [4096]byte
	for at := begin; at < end; {
		n := min(end-at, page*uint64(len(there)))
		if err := mincore(at, n, &there); err != nil {
			return syscall.EFAULT
		}
		at += n
	}
	return nil
}
