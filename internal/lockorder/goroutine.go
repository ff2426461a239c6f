//go:build lockcheck

package lockorder

import (
	"runtime"
	"sync"
	"unsafe"
)

// goroutine is the number of the one that calls.
func goroutine() uint64 {
	if at := numberAt(); at != 0 {
		return numberIn(current(), at)
	}
	return told()
}

// Go's run time keeps a goroutine's number in a structure of its own (runtime.g), at a place that differs between releases. A trace
// of the stack says the number too, and takes twenty times as long as all else here. So the place is looked for once.

// span is how much of the structure is looked through, in octets: it is longer in each release of Go so far.
const span = 384

// numberAt is where the number is in that structure, in octets; 0 if that is not known: told is right always.
var numberAt = sync.OnceValue(func() (at uintptr) {
	const goroutines = 8
	found := make(map[uintptr]int)
	for range goroutines {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for o := uintptr(8); current() != nil && o < span; o += 8 {
				if numberIn(current(), o) == told() {
					found[o]++
				}
			}
		}()
		<-done
	}
	for o, n := range found {
		switch {
		case n < goroutines:
		case at != 0: // two places: which one is it?
			return 0
		default:
			at = o
		}
	}
	return at
})

func numberIn(g unsafe.Pointer, at uintptr) uint64 { return *(*uint64)(unsafe.Add(g, at)) }

// traces are buffers for told.
var traces = sync.Pool{New: func() any { return new([32]byte) }}

// told is what a trace of the stack begins with: "goroutine 12 [running]:".
func told() (number uint64) {
	b := traces.Get().(*[32]byte)
	defer traces.Put(b)
	for _, c := range b[len("goroutine "):runtime.Stack(b[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		number = 10*number + uint64(c-'0')
	}
	return number
}
