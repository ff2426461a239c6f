package srq

import (
	"testing"

	"github.com/softrnic/softrnic/wr"
)

// BenchmarkStarved is a Post that wakes ten thousand queue pairs, all but one of which
// wait again: peers decide how many there are.
func BenchmarkStarved(b *testing.B) {
	q := New(Config{ID: 1, Depth: 4, SGE: 1})
	all := make([]chan struct{}, 10_000)
	for i := range all {
		all[i] = make(chan struct{}, 1)
		q.Await(all[i])
	}
	for b.Loop() {
		_, _ = q.Post(wr.Recv{ID: 1})
		for _, c := range all {
			<-c
			if e, _ := q.Take(); e != nil {
				e.Release(0)
			}
			q.Await(c)
		}
	}
}
