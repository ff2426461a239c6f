package nd2_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/nd2"
)

// ND-Send-R3, ND-Write-R3, ND-Read-R3, ND-Receive-R2: more octets than a message can
// have. Nobody may look at these, so that they need no memory.
func TestTooManyOctets(t *testing.T) {
	const parts = 4 // the address space of 32 bits has no room for one of 2 GiB
	part, err := syscall.Mmap(-1, 0, 1<<32/parts, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(part)) })
	a, b := pair(t, shape{})
	big := slices.Repeat([]nd2.SGE{{Buffer: part}}, parts)
	for _, name := range []string{"Send", "Write", "Read"} {
		require.ErrorIs(t, initiators(a, b, nil)[name](big, 0), nd2.ErrBufferOverflow, name)
	}
	require.ErrorIs(t, a.qp.Receive(1, big), nd2.ErrBufferOverflow)
	srq, err := a.a.CreateSharedReceiveQueue(1, 2, 0)
	require.NoError(t, err)
	require.ErrorIs(t, srq.Receive(1, big), nd2.ErrBufferOverflow)
	sync(a, b)
}
