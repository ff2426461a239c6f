package inventory

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/proflabel"
)

// A scope is what one goroutine, and those that it starts, have opened: a conformance case, a test. It is found by the
// numbers of goroutines, which Go's traces tell, the one that has started a goroutine among them. Goroutines are found
// by a label, which those they start inherit, and those of an RNIC by its.

// Scope is whose objects and goroutines are.
type Scope struct {
	mark   string // of its goroutines
	begun  int    // how many scopes had begun with it
	alone  bool   // no other was open when it began
	before Census

	mu  sync.Mutex
	ids []string // of the objects that it has opened; guarded by mu
}

// scopeLabel is the key of a goroutine's scope.
const scopeLabel = "softrnic-scope"

var marks atomic.Uint64

// turn counts what may run side by side.
type turn struct{ open, begun int }

// Begin begins a scope with the calling goroutine, whose labels it takes away. The inventory is to be kept.
func Begin() *Scope {
	s := &Scope{mark: strconv.FormatUint(marks.Add(1), 10), before: Take()}
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(scopeLabel, s.mark)))
	id, _ := caller()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.scopes[id] = s
	s.alone = all.turn.open == 0
	all.turn.open++
	all.turn.begun++
	s.begun = all.turn.begun
	return s
}

// Alone reports whether no other scope has been open meanwhile.
func (s *Scope) Alone() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return s.alone && all.turn.begun == s.begun
}

// Left are the lines of what the scope has left: its objects, and its goroutines; of one alone all objects, goroutines
// and descriptors that there were not when it began.
func (s *Scope) Left() []string {
	if s.Alone() {
		return s.before.Left()
	}
	return s.own()
}

// own are the lines of what is known to be of the scope.
func (s *Scope) own() []string { return append(left(all.snapshot(s.owns)), s.goroutines()...) }

func (s *Scope) owns(o *Object) bool { return o.scope == s }

// Wait waits until nothing is left, for d at most, and returns the lines of what is. There is no event to wait for: that
// a goroutine has ended, or has given back what it held, is seen only by looking again. All that it waits for has been
// told to end.
func (s *Scope) Wait(d time.Duration) []string { return wait(d, s.Left) }

// WaitOwn is Wait for what is known to be of the scope, though it is alone: where the goroutine and the process do other
// things too.
func (s *Scope) WaitOwn(d time.Duration) []string { return wait(d, s.own) }

// wait is Scope.Wait for what left tells.
func wait(d time.Duration, left func() []string) []string {
	for end := time.Now().Add(d); ; time.Sleep(time.Millisecond) {
		if lines := left(); len(lines) == 0 || time.Now().After(end) {
			return lines
		}
	}
}

// End ends the scope. What is left of its objects leaves the inventory: it has been told.
func (s *Scope) End() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.turn.open--
	for id, of := range all.scopes {
		if of == s {
			delete(all.scopes, id)
		}
	}
	for o := range all.objects {
		if s.owns(o) {
			delete(all.objects, o)
		}
	}
}

// opened takes down the name of an object.
func (s *Scope) opened(id any) {
	if s == nil || id == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, fmt.Sprint(id))
}

// goroutines are the stacks of the goroutines of the scope that run code of this module, but for the caller's, which
// has no label.
func (s *Scope) goroutines() []string {
	pprof.SetGoroutineLabels(context.Background())
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	var left []string
	for g := range strings.SplitSeq(b.String(), "\n\n") {
		if s.has(g) && strings.Contains(g, module) {
			left = append(left, "goroutine left behind:\n"+g)
		}
	}
	return left
}

// has reports whether the labels of g are of a goroutine of the scope.
func (s *Scope) has(g string) bool {
	labeled := func(key, value string) bool { return strings.Contains(g, fmt.Sprintf("%q:%q", key, value)) }
	s.mu.Lock()
	defer s.mu.Unlock()
	return labeled(scopeLabel, s.mark) ||
		slices.ContainsFunc(s.ids, func(id string) bool { return labeled(proflabel.RNIC, id) })
}

// scopeOfCaller is the scope of the calling goroutine, or of the one it descends from as far as those live; nil if there
// is none.
func scopeOfCaller() *Scope {
	all.mu.Lock()
	none := len(all.scopes) == 0
	all.mu.Unlock()
	if none {
		return nil
	}
	id, parent := caller()
	s, known := all.lookup(id)
	if known {
		return s
	}
	var parents map[string]string // looked for where the one above is not enough
	for up := parent; up != ""; up = parents[up] {
		if s, known = all.lookup(up); known {
			break
		}
		if parents == nil {
			parents = family()
		}
	}
	if s != nil {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.scopes[id] = s // for those that it starts
	}
	return s
}

func (r *registry) lookup(goroutine string) (s *Scope, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known = r.scopes[goroutine]
	return s, known
}
