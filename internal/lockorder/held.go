//go:build lockcheck

package lockorder

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// lock is one that a goroutine has.
type lock struct {
	class string
	at    uintptr // its address
	taken place
}

// holder is a goroutine that has locks, the last one last.
type holder struct{ locks []lock }

// The tests of the engine count allocations, so that nothing here allocates once it has run for a while.
var (
	mu   sync.Mutex
	held = make(map[uint64]*holder) // by goroutine; guarded by mu, as the next
	idle []*holder                  // with no locks, for the next goroutine
)

// mayWait panics if goroutine g is not to wait for a lock of that class with what it holds. It does not matter whether the
// lock is free.
func mayWait(g uint64, class string) {
	mu.Lock()
	defer mu.Unlock()
	h := held[g]
	if h == nil {
		return
	}
	for i := range h.locks {
		if l := &h.locks[i]; !mayFollow(l.class, class) {
			var here place
			here.note()
			panic(fmt.Sprintf("lockorder: a goroutine waits for %s while it holds %s, which does not come before\n%s was taken at\n%s%s is waited for at\n%s",
				class, l.class, l.class, l.taken.text(), class, here.text()))
		}
	}
}

// took notes that g has the lock at an address.
func took(g uint64, class string, at uintptr) {
	mu.Lock()
	defer mu.Unlock()
	h := held[g]
	if h == nil {
		if n := len(idle); n > 0 {
			h, idle = idle[n-1], idle[:n-1]
		} else {
			h = new(holder)
		}
		held[g] = h
	}
	h.locks = append(h.locks, lock{class: class, at: at})
	h.locks[len(h.locks)-1].taken.note()
}

// gave undoes took. A lock for reading may have been taken by another goroutine than g, any of those that have it then.
func gave(g uint64, at uintptr) {
	mu.Lock()
	defer mu.Unlock()
	if dropped(g, at) {
		return
	}
	for other := range held {
		if dropped(other, at) {
			return
		}
	}
}

// dropped takes the lock at an address, the last that was taken there, from what g has. With mu held.
func dropped(g uint64, at uintptr) bool {
	h := held[g]
	if h == nil {
		return false
	}
	for i := len(h.locks) - 1; i >= 0; i-- {
		if h.locks[i].at != at {
			continue
		}
		h.locks = append(h.locks[:i], h.locks[i+1:]...)
		if len(h.locks) == 0 {
			delete(held, g)
			idle = append(idle, h)
		}
		return true
	}
	return false
}

// nameOf is the name of a class.
func nameOf[C any]() string { return reflect.TypeFor[C]().Name() }

// place is where a lock is asked for: the callers, the innermost first, 0 behind the last.
type place [8]uintptr

// note has p be where the lock's method was called that called the caller.
func (p *place) note() { runtime.Callers(4, p[:]) }

// text are functions and lines.
func (p *place) text() string {
	var b strings.Builder
	frames := runtime.CallersFrames(slices.DeleteFunc(p[:], func(pc uintptr) bool { return pc == 0 }))
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
	}
	return b.String()
}

// mayFollow reports whether a lock of one class may be waited for while one of another is held.
func mayFollow(held, wanted string) bool {
	for _, e := range Exceptions {
		if e.Held == held && e.Wanted == wanted {
			return true
		}
	}
	return before()[wanted][held]
}
