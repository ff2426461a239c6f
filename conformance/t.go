package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"

	"github.com/softrnic/softrnic/internal/inventory"
)

// T is what a running case reports to. It is a require.TestingT, so cases assert
// with testify.
type T struct {
	ctx    context.Context
	target Target
	rand   *rand.Rand
	trace  *Trace
	scope  *inventory.Scope // nil: the target is not in this process
	id     string           // of its goroutine

	mu       sync.Mutex
	part     string // of the case that is running; guarded by mu, as all below
	failures []string
	skipped  string
	cleanups []func()
	cleaning bool // Run has returned
}

// Context is done when the case's time is up.
func (t *T) Context() context.Context { return t.ctx }

// Target is what the case runs against.
func (t *T) Target() Target { return t.target }

// Rand is a source of its own, from the run's seed and the case's name.
func (t *T) Rand() *rand.Rand { return t.rand }

// Trace is where the case's traffic is recorded.
func (t *T) Trace() *Trace { return t.trace }

// Held is how much the objects hold that the case has opened, by what they count ("admission listener: place"): for what
// nothing else tells. Of a target in this process.
func (t *T) Held() map[string]int { return t.scope.Totals() }

// Helper is there for testify.
func (t *T) Helper() {}

// Logf notes something in the trace.
func (t *T) Logf(format string, args ...any) { t.trace.Note(fmt.Sprintf(format, args...)) }

// Part says what a case does next, one of several things of a kind. It stands before
// what fails from here on.
func (t *T) Part(format string, args ...any) {
	part := fmt.Sprintf(format, args...)
	t.trace.Note(part)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = part
}

// In is Part for what f does, and for no more than that: what fails behind it stands alone
// again, or below the part around it.
func (t *T) In(part string, f func()) {
	t.mu.Lock()
	before := t.part
	t.mu.Unlock()
	if before != "" {
		part = before + ": " + part
	}
	t.Part("%s", part)
	f()
	t.mu.Lock()
	t.part = before
	t.mu.Unlock()
}

// Errorf says that something is not as it has to be. The case goes on.
func (t *T) Errorf(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	t.trace.Note("failed: " + text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.part != "" {
		text = t.part + ": " + text
	}
	t.failures = append(t.failures, text)
}

// FailNow ends the case. It may be called from the case's own goroutine only.
func (t *T) FailNow() {
	t.mu.Lock()
	if len(t.failures) == 0 {
		t.failures = append(t.failures, "failed without a reason")
	}
	t.mu.Unlock()
	runtime.Goexit()
}

// Fatalf is Errorf and FailNow.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.FailNow()
}

// Skipf ends the case: the target lacks what it needs. A failure before it counts
// more.
func (t *T) Skipf(format string, args ...any) {
	t.mu.Lock()
	t.skipped = fmt.Sprintf(format, args...)
	t.mu.Unlock()
	runtime.Goexit()
}

// Cleanup calls f when the case is over, last one first.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// verdict is that of a case that has ended.
func (t *T) verdict() (Verdict, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.failures) > 0:
		return Fail, strings.Join(t.failures, "\n")
	case t.skipped != "":
		return Skip, t.skipped
	}
	return Pass, ""
}
