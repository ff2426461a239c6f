package nvmeof

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slow is a disk of which each Sync and each ReadAt is held.
type slow struct{ *watched }

func (s slow) Sync() error {
	s.call(0)
	return s.Disk.Sync()
}

func (s slow) ReadAt(p []byte, off int64) (int, error) {
	s.call(int64(len(p)))
	return s.Disk.ReadAt(p, off)
}

// under is how many commands the target has from the controller's queues.
func (c *controller) under() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		q.mu.Lock()
		n += len(q.cids)
		q.mu.Unlock()
	}
	return n
}

// Flushes side by side share one fdatasync after another: a thread for each, of all hosts, would end the target (Go has
// 10,000). None is answered by a Sync that began before it came.
func TestFlushesShare(t *testing.T) {
	d := slow{watch(Memory(1 << 20))}
	addr, target := serve(t, Config{}, subsystem(t, d))
	t.Cleanup(d.open)
	a := associate(t, addr, 2)
	first := a.io[0].entry(cmdFlush, 1)
	a.io[0].send(first)
	<-d.entered
	const flushes = 14
	for range flushes {
		for _, q := range a.io {
			q.send(q.entry(cmdFlush, 1))
		}
	}
	c := target.controller(a.id)
	require.Eventually(t, func() bool { return c.under() == 2*flushes+1 }, time.Minute, time.Millisecond)
	d.release <- struct{}{}
	require.Equal(t, first.cid(), a.io[0].receive().cid)
	require.Equal(t, 2*flushes, c.under(), "answered by a Sync from before it")
	d.open()
	for _, q := range a.io {
		require.Equal(t, map[Status]int{Success: flushes}, q.statuses(flushes))
	}
	most, _, _, _ := d.seen()
	require.Equal(t, 1, most, "at once")
}

// A controller has so many calls of disks under way at most, and the rest of its commands wait without a thread.
func TestDiskCallsBounded(t *testing.T) {
	d := slow{watch(Memory(1 << 20))}
	addr, target := serve(t, Config{}, subsystem(t, d))
	t.Cleanup(d.open)
	a := associate(t, addr, 4)
	const reads = 15
	for range reads {
		for _, q := range a.io {
			q.send(plain(keyed(q.entry(cmdRead, 1).onBlocks(0, 1), q.data, blockSize)))
		}
	}
	for range callsOfHost {
		<-d.entered
	}
	c := target.controller(a.id)
	require.Eventually(t, func() bool { return c.under() == 4*reads }, time.Minute, time.Millisecond)
	require.Equal(t, Success, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
	d.open()
	for _, q := range a.io {
		require.Equal(t, map[Status]int{Success: reads}, q.statuses(reads))
	}
	most, _, _, _ := d.seen()
	require.Equal(t, callsOfHost, most)
}
