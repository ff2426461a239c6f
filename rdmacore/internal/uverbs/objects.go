//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/internal/handles"
)

// table has the objects of one kind of a File, by handle.
type table[T any] = handles.Table[T]

// maxObjects is more than there are of a kind.
const maxObjects = handles.Max

// use is the object that a command names. A handle of nothing, or of another File, is EINVAL as
// in the handlers of Linux that look an object up.
func use[T any](t *table[T], h uint32, kind string) (*T, error) {
	if v := t.Get(h); v != nil {
		return v, nil
	}
	return nil, refuse(syscall.EINVAL, "%s %d does not exist in this context", kind, h)
}

// destroy ends the object that a command names, and takes it out. A handle of nothing is ENOENT as in Linux's
// uobj_get_destroy.
func destroy[T any](t *table[T], h uint32, kind string, end func(*T) error) error {
	v := t.Get(h)
	if v == nil {
		return refuse(syscall.ENOENT, "%s %d does not exist in this context", kind, h)
	}
	if err := end(v); err != nil {
		return err
	}
	t.Remove(h, v)
	return nil
}
