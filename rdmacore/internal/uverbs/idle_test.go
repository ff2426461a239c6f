//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestPolledInVain has polls of a queue that nothing completes to receive for the others of the device, of which
// each gets its looks, and none of a queue that is gone.
func TestPolledInVain(t *testing.T) {
	h := newHot(t, Config{})
	list := *h.b.dev.idlers.list.Load()
	require.NotEmpty(t, list)
	other := &cq{}
	h.b.dev.idlers.add(other)
	require.Len(t, *h.b.dev.idlers.list.Load(), len(list)+1)

	h.write(t, h.b, h.recv, h.recvLen)
	h.write(t, h.a, h.send, h.sendLen)
	b, err := use(&h.b.file.cqs, h.b.cq, "completion queue")
	require.NoError(t, err)
	var done [1]verbs.Completion
	for n := 0; n == 0; {
		h.b.dev.idlers.fruitless(other)
		require.NoError(t, b.cq.Notify(verbs.NotifyNext)) // now Poll receives nothing by itself
		n = b.cq.Poll(done[:])
	}
	require.Equal(t, verbs.OpRecv, done[0].Op)
	h.b.dev.idlers.remove(other)
	require.NotContains(t, *h.b.dev.idlers.list.Load(), other)
}
