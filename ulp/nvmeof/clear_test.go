package nvmeof

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watched is a Disk that counts what is asked of it, and holds each call until it is told to let go.
type watched struct {
	Disk
	entered chan int64 // each call that is held, with its octets
	release chan struct{}
	once    sync.Once
	mu      sync.Mutex
	inside  int
	most    int // at once
	calls   int
	octets  int64
	largest int64
}

func watch(d Disk) *watched {
	return &watched{Disk: d, entered: make(chan int64, 1<<16), release: make(chan struct{})}
}

func (w *watched) call(n int64) {
	w.mu.Lock()
	w.inside++
	w.calls++
	w.most, w.octets, w.largest = max(w.most, w.inside), w.octets+n, max(w.largest, n)
	w.mu.Unlock()
	w.entered <- n
	<-w.release
	w.mu.Lock()
	w.inside--
	w.mu.Unlock()
}

// open lets all calls go, now and later.
func (w *watched) open() { w.once.Do(func() { close(w.release) }) }

// seen is how many calls were there at once, how many there were, of how many octets, and the largest.
func (w *watched) seen() (most, calls int, octets, largest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most, w.calls, w.octets, w.largest
}

func (w *watched) Zero(off, n int64, deallocate bool) error {
	w.call(n)
	return w.Disk.Zero(off, n, deallocate)
}

// deallocate is a Dataset Management and its ranges.
func (q *rawQueue) deallocate(ranges ...[2]uint64) (command, []byte) {
	c := q.entry(cmdDSM, 1)
	c[40], c[44] = byte(len(ranges)-1), dsmAD
	b := make([]byte, identifySize)
	for i, one := range ranges {
		le.PutUint32(b[i*dsmRange+4:], uint32(one[1]))
		le.PutUint64(b[i*dsmRange+8:], one[0])
	}
	return c, b
}

// What a Dataset Management may clear is bounded, as Identify says, and an octet is cleared once.
func TestDeallocateBounded(t *testing.T) {
	const size = 80 << 20
	d := watch(Memory(size))
	d.open()
	addr, _ := serve(t, Config{}, subsystem(t, d))
	t.Cleanup(d.open)
	a := associate(t, addr, 1)
	limits := a.admin.entry(adminIdentify, 0)
	limits[40] = 6 // of the I/O command set
	b, got := a.admin.fetch(limits, identifySize)
	require.Equal(t, Success, got.status)
	oneRange, all := uint64(le.Uint32(b[4:])), le.Uint64(b[8:]) // dmrsl, dmsl
	require.NotZero(t, oneRange)
	require.NotZero(t, all)
	require.NotZero(t, b[3], "dmrl")
	require.Less(t, max(oneRange, all)*blockSize, uint64(size), "the test's disk is too small")

	whole := make([][2]uint64, 256)
	for i := range whole {
		whole[i] = [2]uint64{0, size / blockSize}
	}
	for name, ranges := range map[string][][2]uint64{
		"one range": {{0, oneRange + 1}},
		"all":       {{0, all}, {0, 1}},
		"whole":     whole,
	} {
		q := a.io[0]
		require.Equal(t, LimitExceeded|DNR, q.give(q.deallocate(ranges...)).status, name)
	}
	_, calls, _, _ := d.seen()
	require.Zero(t, calls)

	q := a.io[0]
	same := make([][2]uint64, 256)
	for i := range same {
		same[i] = [2]uint64{uint64(100 + i%7), all/256 - 7}
	}
	require.Equal(t, Success, q.give(q.deallocate(same...)).status)
	_, _, octets, largest := d.seen()
	require.EqualValues(t, (all/256-7+6)*blockSize, octets, "an octet was cleared twice")
	require.LessOrEqual(t, largest, int64(1<<20))
	require.Equal(t, LBARange|DNR, q.give(q.deallocate([2]uint64{0, 1}, [2]uint64{size / blockSize, 1})).status)
	require.Equal(t, Success, q.give(q.deallocate([2]uint64{size / blockSize, 0})).status)
}

// The ranges of a Dataset Management are cleared, and nothing beside them.
func TestDeallocateRanges(t *testing.T) {
	const size = 4 << 20
	d := Memory(size)
	addr, _ := serve(t, Config{}, subsystem(t, d))
	want := pattern(5, size)
	_, err := d.WriteAt(want, 0)
	require.NoError(t, err)
	q := associate(t, addr, 1).io[0]
	ranges := [][2]uint64{{5000, 7}, {1, 3}, {3, 2}, {2, 1}, {4, 0}, {5, 2}, {8, 1}, {100, 4000}, {8191, 1}}
	require.Equal(t, Success, q.give(q.deallocate(ranges...)).status)
	for _, r := range ranges {
		clear(want[r[0]*blockSize : (r[0]+r[1])*blockSize])
	}
	got := make([]byte, size)
	_, _ = d.ReadAt(got, 0)
	require.True(t, string(want) == string(got))
}

// Clearing goes a piece at a time, one for all hosts; another host's gets its turn between.
func TestClearsTakeTurns(t *testing.T) {
	d := watch(Memory(40 << 20))
	addr, _ := serve(t, Config{}, subsystem(t, d))
	t.Cleanup(d.open)
	a, b := associate(t, addr, 1).io[0], associate(t, addr, 1).io[0]
	const commands = 8
	for range commands {
		a.send(a.entry(cmdWriteZeroes, 1).onBlocks(0, 1<<16))
	}
	<-d.entered
	small := b.entry(cmdWriteZeroes, 1)
	b.send(small.onBlocks(0, 1))
	require.Equal(t, Success, b.do(b.entry(cmdFlush, 1)).status)
	for done := false; !done; {
		d.release <- struct{}{}
		done = <-d.entered == blockSize
	}
	d.open()
	require.Equal(t, small.cid(), b.receive().cid)
	require.Equal(t, map[Status]int{Success: commands}, a.statuses(commands))
	most, calls, _, largest := d.seen()
	require.Equal(t, 1, most, "at once")
	require.EqualValues(t, 1<<20, largest)
	require.Equal(t, commands*32+1, calls)
}

// A host that is gone clears nothing more.
func TestClearEndsWithItsHost(t *testing.T) {
	d := watch(Memory(40 << 20))
	addr, target := serve(t, Config{}, subsystem(t, d))
	t.Cleanup(d.open)
	a := associate(t, addr, 1)
	c := target.controller(a.id)
	c.mu.Lock()
	q := c.queues[1]
	c.mu.Unlock()
	for range 4 {
		a.io[0].send(a.io[0].entry(cmdWriteZeroes, 1).onBlocks(0, 1<<16))
	}
	<-d.entered
	require.NoError(t, a.io[0].conn.Abort())
	<-q.gone.Done()
	d.open()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.queues) == 1
	}, time.Minute, time.Millisecond)
	_, calls, _, _ := d.seen()
	require.Equal(t, 1, calls)
}
