package crc32c

import "testing"

// way is one to compute a CRC, and how to have a test take it.
type way struct {
	name string
	set  func(testing.TB)
}

// ways are those of this processor.
func ways() []way {
	has := []way{{"library", three(false)}}
	if canThree {
		has = append(has, way{"three", three(true)})
	}
	return has
}

func three(can bool) func(testing.TB) {
	return func(t testing.TB) {
		was := canThree
		t.Cleanup(func() { canThree = was })
		canThree = can
	}
}
