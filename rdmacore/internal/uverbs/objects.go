//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync"
	"sync/atomic"
	"syscall"
)

// A table has the objects of one kind of a File, by handle. Looking up takes no lock. Handles are
// given out in turn, so that one of a destroyed object is not soon that of another.
const (
	chunkSize  = 1 << 10
	chunkCount = 1 << 10
	maxObjects = chunkSize * chunkCount
)

type chunk[T any] [chunkSize]atomic.Pointer[T]

type table[T any] struct {
	chunks [chunkCount]atomic.Pointer[chunk[T]]

	mu   sync.Mutex
	next uint32
	n    int
}

// add gives v a handle, from 1 on. Errors: ENOMEM.
func (t *table[T]) add(v *T) (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == maxObjects-1 {
		return 0, refuse(syscall.ENOMEM, "there are %d such objects already", t.n)
	}
	for {
		t.next = (t.next + 1) % maxObjects
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
			return t.next, nil
		}
	}
}

// get is the object of a handle; nil if there is none.
func (t *table[T]) get(h uint32) *T {
	if h >= maxObjects {
		return nil
	}
	c := t.chunks[h/chunkSize].Load()
	if c == nil {
		return nil
	}
	return c[h%chunkSize].Load()
}

// remove takes v out, and reports whether it was there.
func (t *table[T]) remove(h uint32, v *T) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h >= maxObjects {
		return false
	}
	c := t.chunks[h/chunkSize].Load()
	if c == nil || !c[h%chunkSize].CompareAndSwap(v, nil) {
		return false
	}
	t.n--
	return true
}

// each calls f with every object.
func (t *table[T]) each(f func(h uint32, v *T)) {
	for i := range t.chunks {
		c := t.chunks[i].Load()
		if c == nil {
			continue
		}
		for j := range c {
			if v := c[j].Load(); v != nil {
				f(uint32(i*chunkSize+j), v)
			}
		}
	}
}

// use is the object that a command names. A handle of nothing, or of another File, is EINVAL as
// in the handlers of Linux that look an object up.
func use[T any](t *table[T], h uint32, kind string) (*T, error) {
	if v := t.get(h); v != nil {
		return v, nil
	}
	return nil, refuse(syscall.EINVAL, "%s %d does not exist in this context", kind, h)
}

// destroy ends the object that a command names, and takes it out. A handle of nothing is ENOENT as in Linux's
// uobj_get_destroy.
func destroy[T any](t *table[T], h uint32, kind string, end func(*T) error) error {
	v := t.get(h)
	if v == nil {
		return refuse(syscall.ENOENT, "%s %d does not exist in this context", kind, h)
	}
	if err := end(v); err != nil {
		return err
	}
	t.remove(h, v)
	return nil
}
