package nvmeof

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// plain turns off Send with Invalidate for a keyed command.
func plain(c command) command {
	c[39] = sglKeyed
	return c
}

// connectEntry is a Connect, and its data.
func (q *rawQueue) connectEntry(cntlid uint16) (command, []byte) {
	c := q.entry(fabricsCommand, typeConnect)
	le.PutUint16(c[42:], q.id)
	le.PutUint16(c[44:], 15)
	data := make([]byte, connectSize)
	data[0] = 0x51
	le.PutUint16(data[16:], cntlid)
	copy(data[256:], testNQN)
	copy(data[512:], testHost)
	return c, data
}

// sendAll posts capsules in one list.
func (q *rawQueue) sendAll(capsules ...[]byte) {
	q.t.Helper()
	var posts []verbs.Request
	n := 0
	for _, c := range capsules {
		posts = append(posts, verbs.Request{SGL: q.out.SGL(n, len(c))})
		n += copy(q.out.Bytes()[n:], c)
	}
	_, err := q.qp.PostSend(posts...)
	require.NoError(q.t, err)
	for range posts {
		c, err := q.qp.SendCQ().WaitOne(q.t.Context())
		require.NoError(q.t, err)
		require.NoError(q.t, c.Err())
	}
}

// statuses receives n responses, and counts them by status.
func (q *rawQueue) statuses(n int) map[Status]int {
	q.t.Helper()
	got := map[Status]int{}
	for range n {
		got[q.receive().status]++
	}
	return got
}

func (t *Target) associations() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.controllers)
}

// Of Connects at once on one queue one succeeds; the others come out of order. All that it has made goes with it.
func TestConnectsAtOnce(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := dialQueue(t, addr, 0, 31)
	var capsules [][]byte
	for range 16 {
		c, data := a.connectEntry(0xffff)
		copy(a.data.Bytes(), data)
		capsules = append(capsules, plain(keyed(c, a.data, connectSize)))
	}
	a.sendAll(capsules...)
	require.Equal(t, map[Status]int{Success: 1, SequenceError | DNR: 15}, a.statuses(16))
	require.Equal(t, 1, target.associations())
	require.NoError(t, a.conn.Abort())
	require.Eventually(t, func() bool { return target.associations() == 0 }, time.Minute, time.Millisecond)
}

// An I/O queue that asks two controllers at once belongs to one; the other's place for it stays free.
func TestConnectToTwo(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a, b := associate(t, addr, 1), associate(t, addr, 1)
	for _, one := range []*association{a, b} {
		require.NoError(t, one.io[0].conn.Abort())
	}
	queues := func() (n int) {
		for _, one := range []*association{a, b} {
			c := target.controller(one.id)
			c.mu.Lock()
			n += len(c.queues)
			c.mu.Unlock()
		}
		return n
	}
	require.Eventually(t, func() bool { return queues() == 2 }, time.Minute, time.Millisecond)
	for range 50 {
		q := dialQueue(t, addr, 1, 15)
		var capsules [][]byte
		for i := range 6 {
			c, data := q.connectEntry([]uint16{a.id, b.id}[i%2])
			capsules = append(capsules, append(inline(c, connectSize), data...))
		}
		q.sendAll(capsules...)
		require.Equal(t, map[Status]int{Success: 1, SequenceError | DNR: 5}, q.statuses(6))
		require.Equal(t, 3, queues())
		require.NoError(t, q.conn.Abort())
		require.Eventually(t, func() bool { return queues() == 2 }, time.Minute, time.Millisecond)
	}
}

// The data of a second Connect that come while commands of the first one's controller hold its memory change nothing.
func TestLateConnect(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	m := between(t, addr, 1)
	q := dialQueue(t, m.addr, 0, 31)
	var capsules [][]byte
	for range 2 {
		c, data := q.connectEntry(0xffff)
		copy(q.data.Bytes(), data)
		capsules = append(capsules, plain(keyed(c, q.data, connectSize)))
	}
	q.sendAll(capsules...)
	refused := 0
	answer := func() answer { // to anything but the Connect that is refused
		for {
			if got := q.receive(); got.status != SequenceError|DNR {
				return got
			}
			refused++
		}
	}
	first := answer()
	require.Equal(t, Success, first.status)
	enable := q.entry(fabricsCommand, typePropertySet)
	le.PutUint32(enable[44:], regCC)
	le.PutUint32(enable[48:], 0x00460001)
	q.send(enable)
	require.Equal(t, Success, answer().status)
	m.pause(true)
	const logs = 16
	for range logs {
		c := plain(keyed(q.entry(adminGetLogPage, 0xffffffff), q.data, maxTransfer))
		c[40] = logSMART
		le.PutUint32(c[40:], le.Uint32(c[40:])|(maxTransfer/4-1)&0xffff<<16)
		le.PutUint16(c[44:], (maxTransfer/4-1)>>16)
		q.send(c)
	}
	c := target.controller(uint16(first.result))
	require.Eventually(t, func() bool {
		if c.memory.TryAcquire(memoryOfHost) {
			c.memory.Release(memoryOfHost)
			return false
		}
		return true
	}, time.Minute, time.Millisecond)
	m.letGo()
	m.pause(false)
	for range logs {
		require.Equal(t, Success, answer().status)
	}
	if refused == 0 {
		require.Equal(t, SequenceError|DNR, q.receive().status)
	}
	require.Equal(t, Success, q.do(q.entry(adminKeepAlive, 0)).status)
	require.Equal(t, 1, target.associations())
}
