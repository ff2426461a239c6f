//go:build linux && (amd64 || arm64)

package umem

import (
	"syscall"
	"unsafe"
)

func madvise(addr, n uint64, advice int) error {
	if _, _, no := syscall.Syscall(syscall.SYS_MADVISE, uintptr(addr), uintptr(n), uintptr(advice)); no != 0 {
		return no
	}
	return nil
}

func mincore(addr, n uint64, there *[4096]byte) error {
	if _, _, no := syscall.Syscall(syscall.SYS_MINCORE, uintptr(addr), uintptr(n), uintptr(unsafe.Pointer(there))); no != 0 {
		return no
	}
	return nil
}
