// Package otheruser has a test do something as another user of the machine, which takes root.
package otheruser

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// UID is the user's number: one that nobody has.
const UID = 54321

// Do calls f in a thread that is the other user's; with opens, it opens what root opens all the same. The thread ends with that, so
// that f is for calls of the system: what f starts in other goroutines is root's.
func Do(t testing.TB, opens bool, f func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread has no way back
		ended <- func() error {
			const same = ^uintptr(0)
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, same, UID, same); errno != 0 {
				return errno
			}
			if opens {
				_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
			}
			return f()
		}()
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
