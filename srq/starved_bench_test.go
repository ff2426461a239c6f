package srq

import (
	"testing"

	"github.com/softrnic/softrnic/wr"
)

// BenchmarkStarved is a Post that wakes one of ten thousand queue pairs that wait: peers
// decide how many there are.
func BenchmarkStarved(b *testing.B) {
	q := New(Config{ID: 1, Depth: 4, SGE: 1})
	all := make([]waiterChan, 10_000)
	for i := range all {
		all[i] = make(waiterChan, 1)
		q.Await(all[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := all[i%len(all)] // its turn
		_, _ = q.Post(wr.Recv{ID: 1})
		<-c
		e, _ := q.TakeFor(c, false)
		e.Release(0)
		q.Await(c)
	}
}
