package leakcheck

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
)

// Counts says how much there is of what is counted, by name.
type Counts func() map[string]int

// Ledger says how much there was before connections came that came to nothing: of
// goroutines of this module, of descriptors (on Linux), of what the packages count of what was opened
// since (package inventory), and of what the test counts.
type Ledger struct {
	t      testing.TB
	counts []Counts
	before map[string]int
}

// Open counts. What is made once and stays, as by the first connection, is to be there.
func Open(t testing.TB, counts ...Counts) *Ledger {
	t.Cleanup(inventory.Keep())
	l := &Ledger{t: t, counts: append(counts, process, inventory.Totals)}
	l.before = l.now()
	return l
}

// Settle waits until there is no more of anything than in the beginning. When that takes
// too long, the test fails.
func (l *Ledger) Settle() {
	l.t.Helper()
	var left string
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // no event tells that all has gone
		if left = l.left(); left == "" {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	l.t.Fatalf("there is more than before: %s\n\n%s", left, strings.Join(inventory.Goroutines(), "\n\n"))
}

func (l *Ledger) now() map[string]int {
	all := map[string]int{}
	for _, c := range l.counts {
		for name, n := range c() {
			all[name] += n
		}
	}
	return all
}

// left names what there is more of.
func (l *Ledger) left() (list string) {
	for name, n := range l.now() {
		if n > l.before[name] {
			list += fmt.Sprintf("%s: %d, there were %d. ", name, n, l.before[name])
		}
	}
	return list
}

// process counts what every connection has, whatever it is of.
func process() map[string]int {
	all := map[string]int{"goroutines": len(inventory.Goroutines())}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		all["descriptors"] = len(open)
	}
	return all
}
