package nvmeof

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// When the memory of all is used up a host still reads and writes, a transfer at a time, and takes no more than that.
func TestMemoryOfAll(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	c, q := target.controller(a.id), a.io[0]
	read := func() command {
		return plain(keyed(q.entry(cmdRead, 1).onBlocks(0, maxTransfer/blockSize), q.data, maxTransfer))
	}
	taken := func() int64 {
		n := int64(0)
		for c.memory.TryAcquire(maxTransfer) {
			n += maxTransfer
		}
		c.memory.Release(n)
		return memoryOfHost - n
	}
	for _, others := range []int64{0, memoryOfAll, 0} { // that other hosts have
		require.True(t, target.memory.TryAcquire(others))
		want := pattern(int(others>>20), maxTransfer)
		require.Equal(t, Success, q.give(q.entry(cmdWrite, 1).onBlocks(0, maxTransfer/blockSize), want).status)
		for range 15 {
			q.send(read())
		}
		require.Equal(t, map[Status]int{Success: 15}, q.statuses(15))
		require.True(t, bytes.Equal(want, q.data.Bytes()[:maxTransfer]))
		target.memory.Release(others)
		require.Eventually(t, func() bool { return taken() == 0 }, time.Minute, time.Millisecond)
		require.True(t, target.memory.TryAcquire(memoryOfAll), "not all came back")
		target.memory.Release(memoryOfAll)
		require.True(t, c.own.TryAcquire(maxTransfer))
		c.own.Release(maxTransfer)
	}
}
