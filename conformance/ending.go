package conformance

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
)

// How a case ends: by itself, with its clean-up behind it and nothing left behind; or it is abandoned, and said
// to fail.

// begin starts the case in a goroutine of its own. The channel is closed when its clean-up is over.
func (t *T) begin(c *Case) (ended chan struct{}) {
	ended = make(chan struct{})
	begun := make(chan struct{})
	go func() {
		defer close(ended)
		t.id = inventory.ThisGoroutine()
		if _, here := t.target.(InProcess); here {
			t.scope = inventory.Begin()
		}
		close(begun)
		defer t.cleanup()
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		c.Run(t)
	}()
	<-begun
	return ended
}

// cleanup calls what Cleanup took, also what the calls add.
func (t *T) cleanup() {
	for {
		t.mu.Lock()
		t.cleaning = true
		n := len(t.cleanups)
		if n == 0 {
			t.mu.Unlock()
			return
		}
		f := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		f()
	}
}

// await waits for the end of the case, for a grace beyond its time at most, and reports whether it has come. One that
// has not ended keeps its scope until it does, so that what it opens yet is not taken for another case's.
func (t *T) await(ended <-chan struct{}, within time.Duration) (over bool) {
	select {
	case <-ended:
		return true
	case <-t.ctx.Done():
	}
	grace := time.NewTimer(graceAfter)
	defer grace.Stop()
	select {
	case <-ended:
		t.Errorf("not done within %v", within)
		return true
	case <-grace.C:
	}
	t.mu.Lock()
	what := "not done within"
	if t.cleaning {
		t.part, what = "", "its clean-up did not end within"
	}
	t.mu.Unlock()
	t.Errorf("%s %v: it is left to itself%s", what, within, t.where())
	t.release(ended)
	return false
}

// where says what the case's goroutine is still at.
func (t *T) where() string {
	state, calls := inventory.WaitsIn(t.id)
	if state == "" {
		return ""
	}
	return fmt.Sprintf(", in state %q, in\n%s", state, calls)
}

// settle waits until what the case has opened is gone, for d at most, and fails the case if it is not. What a
// case leaves that has failed already is no news. It reports false if what there is cannot be counted.
func (t *T) settle(d time.Duration) (counted bool) {
	s := t.scope
	if s == nil {
		return true
	}
	if v, _ := t.verdict(); v == Fail {
		s.End()
		return true
	}
	var lines []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines = s.Wait(d)
	}()
	late := time.NewTimer(d + graceAfter)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		t.Part("left behind")
		t.Errorf("an object of it does not tell what it holds within %v: a lock of it is not given back", d+graceAfter)
		t.release(done)
		return false
	}
	s.End()
	for _, line := range lines {
		t.Part("left behind")
		t.Errorf("%s", line)
	}
	return true
}

// release ends the scope when what has kept it is over.
func (t *T) release(over <-chan struct{}) {
	if t.scope == nil {
		return
	}
	go func() {
		<-over
		t.scope.End()
	}()
}
