//go:build linux && (amd64 || arm64)

// Package umem reads and writes the memory of the program that the engine is loaded into, by
// address, as a kernel does with copy_from_user: an address that is not mapped is EFAULT and
// harms nothing. It costs no system call.
//
// A fault is caught by Go's own SIGSEGV handler. In a process whose program has replaced that, the
// system copies from when package safecopy has noticed it; registering memory makes it look.
package umem

import (
	"runtime/debug"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/internal/safecopy"
)

// Bounds of the addresses that a program can have mapped: below is the page that is never
// there (and a small number that looks like a pointer offends Go's runtime), above are those of
// the kernel.
const (
	lowest  = 1 << 12
	highest = 1 << 56
)

// Read copies len(dst) octets from addr. Errors: syscall.EFAULT; some of dst may be overwritten then.
func Read(dst []byte, addr uint64) error {
	if len(dst) == 0 {
		return nil
	}
	src, err := Slice(addr, uint64(len(dst)))
	if err != nil {
		return err
	}
	if safecopy.Foreign() {
		return fault(safecopy.Read(dst, src))
	}
	return copied(dst, src)
}

// Write copies src to addr. Errors: syscall.EFAULT; some of it may be there then.
func Write(addr uint64, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	dst, err := Slice(addr, uint64(len(src)))
	if err != nil {
		return err
	}
	if safecopy.Foreign() {
		return fault(safecopy.Write(dst, src))
	}
	return copied(dst, src)
}

func fault(copied bool) error {
	if !copied {
		return syscall.EFAULT
	}
	return nil
}

// Load reads a T, which has no pointers.
func Load[T any](addr uint64) (v T, err error) {
	err = Read(Bytes(&v), addr)
	return v, err
}

// Store writes a T, which has no pointers.
func Store[T any](addr uint64, v *T) error { return Write(addr, Bytes(v)) }

// Bytes is the memory of a struct of the ABI.
func Bytes[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// Slice is the n octets at addr as Go sees them: touching them may fault. Errors:
// syscall.EFAULT for what no program can have mapped.
func Slice(addr, n uint64) ([]byte, error) {
	if addr < lowest || addr > highest || n > highest-addr {
		return nil, syscall.EFAULT
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
}

// copied copies src to dst, which are equally long, and reports a fault as EFAULT.
func copied(dst, src []byte) (err error) {
	defer endFault(debug.SetPanicOnFault(true), &err)
	copy(dst, src)
	return nil
}

// endFault ends a copy, deferred by it: before is what debug.SetPanicOnFault was.
func endFault(before bool, err *error) {
	debug.SetPanicOnFault(before)
	if p := recover(); p != nil {
		if _, fault := p.(interface{ Addr() uintptr }); !fault {
			panic(p)
		}
		*err = syscall.EFAULT
	}
}

// Address is where b begins; 0 if it is empty.
func Address(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Octets is the memory of structs of the ABI.
func Octets[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v))*unsafe.Sizeof(*new(T)))
}
