//go:build lockcheck

package lockorder

import (
	"sync"
	"unsafe"
)

// Mutex is a sync.Mutex of the class C that checks the order.
type Mutex[C any] struct {
	mu    sync.Mutex
	owner uint64 // the goroutine that has it; written with mu held
}

func (m *Mutex[C]) at() uintptr { return uintptr(unsafe.Pointer(m)) }

// Lock takes m. It panics if the caller holds a lock that does not come before.
func (m *Mutex[C]) Lock() {
	g, c := goroutine(), nameOf[C]()
	mayWait(g, c)
	m.mu.Lock()
	m.owner = g
	took(g, c, m.at())
}

// TryLock takes m if it is free. It does not wait, so the caller may hold anything; but what the caller waits for from then on
// has to come behind m, too.
func (m *Mutex[C]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.owner = goroutine()
	took(m.owner, nameOf[C](), m.at())
	return true
}

// Unlock gives m back, maybe for the goroutine that has taken it.
func (m *Mutex[C]) Unlock() {
	gave(m.owner, m.at())
	m.mu.Unlock()
}

// RWMutex is a sync.RWMutex of the class C that checks the order.
type RWMutex[C any] struct {
	mu    sync.RWMutex
	owner uint64 // of those that write
}

func (m *RWMutex[C]) at() uintptr { return uintptr(unsafe.Pointer(m)) }

// Lock takes m for writing, as Mutex.Lock does.
func (m *RWMutex[C]) Lock() {
	g, c := goroutine(), nameOf[C]()
	mayWait(g, c)
	m.mu.Lock()
	m.owner = g
	took(g, c, m.at())
}

// Unlock gives m back, maybe for the goroutine that has taken it.
func (m *RWMutex[C]) Unlock() {
	gave(m.owner, m.at())
	m.mu.Unlock()
}

// RLock takes m for reading. It waits for a goroutine that writes, or that wants to: the order is the same.
func (m *RWMutex[C]) RLock() {
	g, c := goroutine(), nameOf[C]()
	mayWait(g, c)
	m.mu.RLock()
	took(g, c, m.at())
}

// RUnlock gives m back, maybe for a goroutine that has taken it for reading.
func (m *RWMutex[C]) RUnlock() {
	gave(goroutine(), m.at())
	m.mu.RUnlock()
}
