//go:build !lockcheck

package lockorder

import "sync"

// Mutex is a sync.Mutex of the class C.
type Mutex[C any] struct{ sync.Mutex }

// RWMutex is a sync.RWMutex of the class C.
type RWMutex[C any] struct{ sync.RWMutex }
