package nvmeof

import (
	"sync"

	"github.com/softrnic/softrnic/verbs"
)

// buffers are registered memory for data on its way, by size: 4 KiB, 64 KiB, 1 MiB. How much is in use at once the
// controllers bound, each for itself; what they give back is kept for the next.
type buffers struct {
	pd   *verbs.PD
	mu   sync.Mutex
	free [3][]*verbs.MR
}

var bufferSizes = [3]int{4096, 64 << 10, maxTransfer}

func sizeClass(n int) int {
	for i, s := range bufferSizes {
		if n <= s {
			return i
		}
	}
	panic("nvmeof: a transfer beyond mdts")
}

func (b *buffers) get(n int) (*verbs.MR, error) {
	i := sizeClass(n)
	b.mu.Lock()
	if k := len(b.free[i]); k > 0 {
		mr := b.free[i][k-1]
		b.free[i] = b.free[i][:k-1]
		b.mu.Unlock()
		return mr, nil
	}
	b.mu.Unlock()
	return b.pd.Register(make([]byte, bufferSizes[i]), verbs.LocalRead|verbs.LocalWrite)
}

const kept = 64 // buffers of each size

func (b *buffers) put(mr *verbs.MR) {
	i := sizeClass(mr.Len())
	b.mu.Lock()
	if len(b.free[i]) < kept {
		b.free[i] = append(b.free[i], mr)
		mr = nil
	}
	b.mu.Unlock()
	if mr != nil {
		_ = mr.Deregister()
	}
}
