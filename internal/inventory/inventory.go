// Package inventory is how the packages of this module count what they hold, so that somebody can see that nothing is
// left when all is closed.
//
// An object registers when it is opened and leaves when it is closed. It says how much it holds, of what. One that is
// closed, or that should be, and still holds something is a leak, and a line tells of it:
//
//	cm listener 127.0.0.1:7174: 1 place
//	verbs RNIC 3f0c...: not closed
//
// The inventory is kept only while somebody asks for it (Keep): a program costs it nothing but a look at a word for each
// object that is opened, and no memory.
//
//	inventory.go  objects, and what is left of them
//	scope.go      whose they are, where several run side by side
//	process.go    goroutines and descriptors
package inventory

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Tell takes how many an object holds of what, which is in the singular: "place". A negative number was given back more
// often than taken.
type Tell func(n int, what string)

// Counter is an object that counts what it holds. Count may lock the object, and with that locked calls nothing of
// another package of this module but Tell. When the object is closed, all of it has to come to zero.
type Counter interface{ Count(tell Tell) }

// CounterFunc is a function that is a Counter.
type CounterFunc func(tell Tell)

// Count calls f.
func (f CounterFunc) Count(tell Tell) { f(tell) }

// Object is an object in the inventory. A nil one is in none.
type Object struct {
	kind    string
	id      any
	under   *Object // nil: it stands alone
	scope   *Scope  // nil: nobody's
	counter Counter
	closed  atomic.Bool
}

// registry is the inventory of this process.
type registry struct {
	kept atomic.Int32 // by so many

	mu      sync.Mutex
	objects map[*Object]struct{} // guarded by mu, as all below
	scopes  map[string]*Scope    // by goroutine
	turn    turn                 // of scopes
}

var all = registry{objects: map[*Object]struct{}{}, scopes: map[string]*Scope{}}

// Keep has the inventory kept until stop is called. What was opened before is not in it.
func Keep() (stop func()) {
	all.kept.Add(1)
	return sync.OnceFunc(func() {
		if all.kept.Add(-1) > 0 {
			return
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		clear(all.objects)
	})
}

// Open registers an object: what it is, with the package first ("cm listener"), and which, as fmt prints it; nil stands
// for no name. under is the object that it belongs to and ends with, nil for none. It does not call the Counter.
func Open(under *Object, kind string, id any, c Counter) *Object {
	if all.kept.Load() == 0 {
		return nil
	}
	o := &Object{kind: kind, id: id, under: under, counter: c}
	if under != nil {
		o.scope = under.scope
	} else {
		o.scope = scopeOfCaller()
		o.scope.opened(id)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.objects[o] = struct{}{}
	return o
}

// Folder registers a temporary folder, which is to be gone when the object is closed.
func Folder(path string) *Object {
	return Open(nil, "temporary folder", path, CounterFunc(func(tell Tell) {
		if _, err := os.Lstat(path); err == nil {
			tell(1, "folder on the disk")
		}
	}))
}

// Close says that the object is closed: from here on it should hold nothing. Closing twice is closing once.
func (o *Object) Close() {
	if o != nil {
		o.closed.Store(true)
	}
}

// Name is the object in words.
func (o *Object) Name() string {
	if o.id == nil {
		return o.kind
	}
	return fmt.Sprintf("%s %v", o.kind, o.id)
}

// left are the lines of what is left of those objects, in order: of each that is not closed, and of each that is closed
// and holds something. What is closed and holds nothing leaves the inventory.
func left(objects []*Object) (lines []string) {
	for _, o := range objects {
		if !o.closed.Load() {
			if o.under == nil || o.under.closed.Load() { // else the line of that one says enough
				lines = append(lines, o.Name()+": not closed")
			}
			continue
		}
		held := o.held()
		if held == "" {
			all.remove(o)
			continue
		}
		name := o.Name()
		for u := o.under; u != nil; u = u.under {
			name += " of " + u.Name()
		}
		lines = append(lines, name+": "+held)
	}
	slices.Sort(lines)
	return lines
}

// Totals are how many objects there are that are not closed, by kind ("cm listener"), and how much all hold, by kind and
// what ("cm listener: place"): for tests that compare two moments while something is open.
func Totals() map[string]int { return totals(all.snapshot(func(*Object) bool { return true })) }

// Totals are those of the scope.
func (s *Scope) Totals() map[string]int { return totals(all.snapshot(s.owns)) }

func totals(objects []*Object) map[string]int {
	sum := map[string]int{}
	for _, o := range objects {
		if !o.closed.Load() {
			sum[o.kind]++
		}
		o.counter.Count(func(n int, what string) { sum[o.kind+": "+what] += n })
	}
	return sum
}

// held is what the object holds, in words.
func (o *Object) held() string {
	var list []string
	o.counter.Count(func(n int, what string) {
		switch {
		case n == 0:
		case n == 1:
			list = append(list, "1 "+what)
		case n < 0:
			list = append(list, fmt.Sprintf("%d %s (given back too often)", n, plural(what)))
		default:
			list = append(list, fmt.Sprintf("%d %s", n, plural(what)))
		}
	})
	return strings.Join(list, ", ")
}

// plural is that of the first noun: "places", "users of PD 3", "requests that were not answered".
func plural(what string) string {
	noun, rest := what, ""
	for _, link := range []string{" of ", " in ", " to ", " without "} {
		if at := strings.Index(noun, link); at >= 0 {
			noun, rest = noun[:at], noun[at:]+rest
		}
	}
	if stem, ok := strings.CutSuffix(noun, "entry"); ok {
		return stem + "entries" + rest
	}
	return noun + "s" + rest
}

// snapshot are the objects that are meant.
func (r *registry) snapshot(meant func(*Object) bool) (list []*Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := range r.objects {
		if meant(o) {
			list = append(list, o)
		}
	}
	return list
}

func (r *registry) remove(o *Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, o)
}
