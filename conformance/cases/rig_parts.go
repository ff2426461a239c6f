package cases

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/softrnic/softrnic/conformance"
)

// What a case tries one after another: each is a part of the case, as T.In makes it. What
// fails within is named by it, and by the part around it; what fails behind the loop is not.

// inTurn goes through a list. format has one verb, for the entry, or for the first field of
// a struct that begins with a string.
func inTurn[V any](t *conformance.T, format string, list []V) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range list {
			if !oneOf(t, fmt.Sprintf(format, nameOf(v)), func() bool { return yield(v) }) {
				return
			}
		}
	}
}

// named goes through a table, in any order. format has one verb, for the key.
func named[V any](t *conformance.T, format string, table map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for k, v := range table {
			if !oneOf(t, fmt.Sprintf(format, k), func() bool { return yield(k, v) }) {
				return
			}
		}
	}
}

// counted goes from 0 to n-1. format has one verb, for the number.
func counted[N int | uint16 | uint32 | uint64](t *conformance.T, format string, n N) iter.Seq[N] {
	return func(yield func(N) bool) {
		for i := N(0); i < n; i++ {
			if !oneOf(t, fmt.Sprintf(format, i), func() bool { return yield(i) }) {
				return
			}
		}
	}
}

// oneOf says whether to go on behind a part.
func oneOf(t *conformance.T, part string, f func() bool) (more bool) {
	t.In(part, func() { more = f() })
	return more
}

// nameOf is what an entry is called.
func nameOf(v any) any {
	if s := reflect.ValueOf(v); s.Kind() == reflect.Struct && s.NumField() > 0 && s.Field(0).Kind() == reflect.String {
		return s.Field(0).String()
	}
	return v
}
