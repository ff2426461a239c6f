package nvmeof

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// through makes the I/O queue anew, with a middle on its way that holds all Read Responses.
func (a *association) through(t *testing.T, addr string) (m *middle, q *rawQueue) {
	require.NoError(t, a.io[0].conn.Abort())
	require.Eventually(t, func() bool { // the qid is free when its queue is gone
		m = between(t, addr, 0)
		q = dialQueue(t, m.addr, 1, 15)
		return q.connect(a.id, 15, 0, nil).status == Success
	}, time.Minute, time.Millisecond)
	return m, q
}

// A host that does not answer RDMA Reads loses that queue, and the log says why, once; its other queue goes on.
func TestReadsUnanswered(t *testing.T) {
	said := make(chan string, 16)
	addr, _ := serve(t, Config{StallTimeout: time.Second, Logger: slog.New(lines(said))}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	_, q := a.through(t, addr)
	for range 3 {
		q.send(keyed(q.entry(cmdWrite, 1).onBlocks(0, 1), q.data, blockSize))
	}
	<-q.conn.Done()
	require.Equal(t, Success, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
	for !strings.HasSuffix(<-said, "its host has not answered an RDMA Read for 1s") {
	}
	for len(said) > 0 {
		require.NotContains(t, <-said, "RDMA Read")
	}
}

// A Read that waits behind others that are answered, however slowly, ends nothing.
func TestSlowReadsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Minute
		q := &queue{target: &Target{config: Config{StallTimeout: limit}, log: slog.New(slog.DiscardHandler)}, dead: make(chan struct{})}
		q.gone, q.cancel = context.WithCancel(t.Context())
		r := &request{q: q, done: make(chan verbs.Completion, 2)}
		result := make(chan error, 1)
		go func() { result <- r.wait("answered an RDMA Read") }()
		for range 5 {
			time.Sleep(limit * 9 / 10)
			q.completed.Add(1)
			require.NoError(t, q.gone.Err())
		}
		time.Sleep(2 * limit)
		require.Error(t, q.gone.Err())
		require.Empty(t, result, "the RNIC has the memory still")
		close(q.dead)
		require.ErrorIs(t, <-result, TransferError)
	})
}

// A host that takes no answers, sends nothing more and is not kept alive keeps its queue and its memory no longer than
// that.
func TestAnswersUntaken(t *testing.T) {
	said := make(chan string, 16)
	addr, target := serve(t, Config{StallTimeout: time.Second, Logger: slog.New(lines(said))}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	m, q := a.through(t, addr)
	m.pause(true)
	for range 15 { // 15 MiB, more than the sockets on the way hold
		q.send(plain(keyed(q.entry(cmdRead, 1).onBlocks(0, maxTransfer/blockSize), q.data, maxTransfer)))
	}
	for !strings.HasSuffix(<-said, "its host has not taken its answers for 1s") {
	}
	c := target.controller(a.id)
	require.Eventually(t, func() bool { return c.memory.TryAcquire(memoryOfHost) }, time.Minute, time.Millisecond)
	require.Equal(t, Success, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
}
