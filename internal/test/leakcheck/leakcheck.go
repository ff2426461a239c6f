// Package leakcheck checks that a package's tests leave no goroutine of this module
// behind. A test file asks for it with
//
//	func TestMain(m *testing.M) { leakcheck.Main(m) }
package leakcheck

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
)

// patience is how long a goroutine that has been told to end may take.
const patience = 10 * time.Second

// Main runs the tests and exits: with their code, or with 1 and the stacks on
// standard error if goroutines of this module stay.
func Main(m *testing.M) {
	code := m.Run()
	if left := Wait(patience); code == 0 && len(left) > 0 {
		fmt.Fprintf(os.Stderr, "%d goroutines were left behind:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
		code = 1
	}
	os.Exit(code)
}

// Wait waits until no goroutine runs code of this module but the caller's, for d
// at most, and returns the stacks of those that do.
func Wait(d time.Duration) []string {
	for end := time.Now().Add(d); ; {
		left := inventory.Goroutines()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		// There is no event to wait for: a goroutine's end is seen only by
		// looking again.
		time.Sleep(time.Millisecond)
	}
}
