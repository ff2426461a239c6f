package crc32c

import "testing"

// way is one to compute a CRC, and how to have a test take it.
type way struct {
	name string
	set  func(testing.TB)
}

// ways are those of this processor.
func ways() []way {
	has := []way{}
	add := func(name string, can, fold, wide bool) {
		if can {
			has = append(has, way{name, func(t testing.TB) {
				wasFold, wasWide := canFold, canWide
				t.Cleanup(func() { canFold, canWide = wasFold, wasWide })
				canFold, canWide = fold, wide
			}})
		}
	}
	add("library", true, false, false)
	add("fold", canFold, true, false)
	add("wide", canWide, true, true)
	return has
}
