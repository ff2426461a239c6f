// Package nosighandlers runs tests in a process whose faults end it, because Go's handlers are gone, as in
// a program that has put its own over them. For tests of package safecopy's users.
package nosighandlers

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	_ "github.com/softrnic/softrnic/internal/safecopy" // which has to know Go's handlers before they go
)

// variable tells a test's child to be without Go's handlers.
const variable = "SOFTRNIC_TEST_FOREIGN_HANDLERS"

// Init is called first by the tests of a package, in an init: in a child of Again it takes Go's handlers away, so that a fault that somebody leaves to them ends the process.
func Init() {
	if os.Getenv(variable) == "" {
		return
	}
	var none [16]uintptr // SIG_DFL, no flags, nothing masked
	for _, s := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS} {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
		if errno != 0 {
			panic(errno)
		}
	}
}

// Again runs tests of this program in a child without Go's handlers: those that the regular
// expression names.
func Again(t *testing.T, run string) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", run, "-test.v")
	c.Env = append(os.Environ(), variable+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
