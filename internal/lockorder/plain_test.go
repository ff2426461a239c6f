//go:build !lockcheck

package lockorder

import (
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// TestCostsNothing: without the tag a lock is as large as one of package sync, whose methods are its own.
func TestCostsNothing(t *testing.T) {
	assert.Equal(t, unsafe.Sizeof(sync.Mutex{}), unsafe.Sizeof(Mutex[QP]{}))
	assert.Equal(t, unsafe.Sizeof(sync.RWMutex{}), unsafe.Sizeof(RWMutex[QP]{}))
	assert.Equal(t, []int{0, 0}, []int{own[Mutex[QP]](), own[RWMutex[QP]]()})
}

// own is how many methods a type with an embedded lock has beyond those.
func own[T any]() int {
	return reflect.TypeFor[*T]().NumMethod() - reflect.PointerTo(reflect.TypeFor[T]().Field(0).Type).NumMethod()
}
