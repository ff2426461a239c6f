// Package handles numbers values, and finds them by number without a lock.
package handles

import (
	"sync"
	"sync/atomic"
)

const (
	chunkSize  = 1 << 10
	chunkCount = 1 << 10
	// Max is more than any number, and than there are.
	Max = chunkSize * chunkCount
)

type chunk[T any] [chunkSize]atomic.Pointer[T]

// Table has values by number, from 1 to Max-1. Numbers are given out in turn, so that one that was given back is not soon
// that of another value. The zero value is ready; methods may be called from any goroutine.
type Table[T any] struct {
	chunks [chunkCount]atomic.Pointer[chunk[T]]

	mu   sync.Mutex
	next uint32 // guarded by mu, as below
	n    int
}

// Add gives v a number; ok is false if all are in use.
func (t *Table[T]) Add(v *T) (number uint32, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == Max-1 {
		return 0, false
	}
	for {
		t.next = (t.next + 1) % Max
		if t.next == 0 {
			continue
		}
		c := t.chunks[t.next/chunkSize].Load()
		if c == nil {
			c = new(chunk[T])
			t.chunks[t.next/chunkSize].Store(c)
		}
		if c[t.next%chunkSize].CompareAndSwap(nil, v) {
			t.n++
			return t.next, true
		}
	}
}

// Get is the value of a number, whatever that is; nil if there is none.
func (t *Table[T]) Get(number uint32) *T {
	if number >= Max {
		return nil
	}
	c := t.chunks[number/chunkSize].Load()
	if c == nil {
		return nil
	}
	return c[number%chunkSize].Load()
}

// Remove gives the number of v back, and does nothing if it is not that of v.
func (t *Table[T]) Remove(number uint32, v *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v != nil && t.Get(number) == v {
		t.chunks[number/chunkSize].Load()[number%chunkSize].Store(nil)
		t.n--
	}
}

// Len is how many values there are.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// All gives every value with its number.
func (t *Table[T]) All(yield func(uint32, *T) bool) {
	for i := range t.chunks {
		c := t.chunks[i].Load()
		if c == nil {
			continue
		}
		for j := range c {
			if v := c[j].Load(); v != nil && !yield(uint32(i*chunkSize+j), v) {
				return
			}
		}
	}
}
