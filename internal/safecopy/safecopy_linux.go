package safecopy

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signals are those of a page that is not there, and of one that its file has lost.
var signals = [...]syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS}

var (
	own     [len(signals)]uintptr // the handlers of Go, as they were when the program began
	foreign atomic.Bool
	heeded  = new(atomic.Int32)
	pid     = os.Getpid()
)

func init() {
	for i, s := range signals {
		own[i] = handler(s)
	}
}

// handler is the address of a signal's handler; 0 for the default, or if that cannot be told.
func handler(s syscall.Signal) uintptr {
	var action [16]uintptr // struct sigaction begins with it, and is shorter
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0)
	if errno != 0 {
		return 0
	}
	return action[0]
}

// Look looks whether the handlers are still Go's.
func Look() {
	now := false
	for i, s := range signals {
		now = now || handler(s) != own[i]
	}
	if now != foreign.Load() {
		foreign.Store(now && works())
	}
}

// works reports whether the system lets a process copy its own memory: some sandboxes do not.
func works() bool {
	return Read(make([]byte, len(probe)), probe[:])
}

var probe [1]byte

// Heed has Foreign look at a word, too, which somebody sets who knows of handlers before they are there: between a handler and the
// next Look a fault would be the program's. It is called once, before any Foreign.
func Heed(word *atomic.Int32) {
	if works() {
		heeded = word
	}
}

// Foreign reports whether the handlers were not Go's when Look looked last, or may not be now.
func Foreign() bool { return foreign.Load() || heeded.Load() != 0 }

// Write copies src to dst, which may fault. It reports false if it did: some of it may be there.
func Write(dst, src []byte) bool {
	return transfer(unix.SYS_PROCESS_VM_WRITEV, src, dst)
}

// Read copies src, which may fault, to dst. It reports false if it did.
func Read(dst, src []byte) bool {
	return transfer(unix.SYS_PROCESS_VM_READV, dst, src)
}

// transfer copies octets between here and there, the side that may fault, of which no octet is
// touched here. The call is made without package unix, through which both would escape to the heap:
// callers copy structs on their stacks.
func transfer(call uintptr, here, there []byte) bool {
	n := min(len(here), len(there))
	for done := 0; done < n; {
		local := unix.Iovec{Base: &here[done]}
		local.SetLen(n - done)
		remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&there[done])), Len: n - done}
		k, _, errno := syscall.Syscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
		if errno != 0 || k == 0 {
			return false
		}
		done += int(k)
	}
	return true
}

// Writable reports whether the page at p can be written to, for what cannot be copied. Linux before
// 5.14 does not tell, which counts as yes.
func Writable(p unsafe.Pointer) bool {
	page := uintptr(os.Getpagesize())
	return populate(uintptr(p)&^(page-1), page) || !populate(0, 0)
}

// populate brings pages in for writing, and reports whether it could.
func populate(at, n uintptr) bool {
	for {
		_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, at, n, unix.MADV_POPULATE_WRITE)
		if errno != syscall.EINTR && errno != syscall.EAGAIN {
			return errno == 0
		}
	}
}
