package nvmeof

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A reset is over, CSTS.RDY 0, when the commands of before it change nothing any more; then the queues are free again.
func TestResetWaitsForCommands(t *testing.T) {
	d := slow{watch(Memory(1 << 20))}
	addr, _ := serve(t, Config{}, subsystem(t, d))
	t.Cleanup(d.open)
	a := associate(t, addr, 2)
	a.io[0].send(plain(keyed(a.io[0].entry(cmdRead, 1).onBlocks(0, 1), a.io[0].data, blockSize)))
	<-d.entered
	require.Equal(t, Success, a.admin.setProperty(regCC, 0x00460000).status)
	<-a.io[0].conn.Done()
	<-a.io[1].conn.Done()
	require.EqualValues(t, cstsRDY, a.admin.property(regCSTS, false).result)
	require.Equal(t, SequenceError|DNR, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
	require.Equal(t, Success, a.admin.setProperty(regCC, 0x00460001).status) // too early: nothing runs before that is over
	require.Equal(t, SequenceError|DNR, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
	require.Equal(t, Success, a.admin.setProperty(regCC, 0x00460000).status)
	d.open()
	require.Eventually(t, func() bool {
		return a.admin.property(regCSTS, false).result == 0
	}, time.Minute, time.Millisecond)

	require.Equal(t, Success, a.admin.setProperty(regCC, 0x00460001).status)
	require.EqualValues(t, cstsRDY, a.admin.property(regCSTS, false).result)
	set := a.admin.entry(adminSetFeatures, 0)
	set[40] = featNumQueues
	require.Equal(t, Success, a.admin.do(set).status)
	q := dialQueue(t, addr, 1, 15)
	require.Equal(t, Success, q.connect(a.id, 15, 0, nil).status)
	require.Equal(t, Success, q.do(q.entry(cmdFlush, 1)).status)
}

// An event request whose queue ends is not told anything later: its place is another command's by then.
func TestEventEndsWithItsQueue(t *testing.T) {
	addr, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	a := associate(t, addr, 1)
	c := target.controller(a.id)
	waiting := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.events)
	}
	a.admin.send(a.admin.entry(adminAsyncEvent, 0))
	require.Eventually(t, func() bool { return waiting() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, a.admin.conn.Abort())
	require.Eventually(t, func() bool { return target.controller(a.id) == nil }, time.Minute, time.Millisecond)
	require.Zero(t, waiting())
}

// What changed while a host did not want notices keeps no later one from it, and neither does a reset.
func TestNoticeAfterOthers(t *testing.T) {
	s := subsystem(t, Memory(1<<20))
	addr, _ := serve(t, Config{}, s)
	q := associate(t, addr, 1).admin
	enable := func() {
		set := q.entry(adminSetFeatures, 0)
		set[40] = featAsyncEvent
		le.PutUint32(set[44:], eventNSNotice)
		require.Equal(t, Success, q.do(set).status)
	}
	told := func(nsid uint32) {
		t.Helper()
		q.send(q.entry(adminAsyncEvent, 0))
		require.NoError(t, s.Set(nsid, Memory(1<<20)))
		require.EqualValues(t, nsAttrChanged, q.receive().result)
	}
	require.NoError(t, s.Set(5, Memory(1<<20)))
	enable()
	told(6)
	require.NoError(t, s.Set(7, Memory(1<<20))) // told already: the log has not been read
	require.Equal(t, Success, q.setProperty(regCC, 0x00460000).status)
	require.Eventually(t, func() bool { return q.property(regCSTS, false).result == 0 }, time.Minute, time.Millisecond)
	require.Equal(t, Success, q.setProperty(regCC, 0x00460001).status)
	enable()
	told(8)
}

// A host that has more commands outstanding than its queue has places loses that queue.
func TestTooManyCommands(t *testing.T) {
	for name, c := range map[string]Config{"own receives": {}, "shared receives": {SharedReceives: 64}} {
		t.Run(name, func(t *testing.T) {
			d := slow{watch(Memory(1 << 20))}
			addr, _ := serve(t, c, subsystem(t, d))
			t.Cleanup(d.open)
			a, b := associate(t, addr, 1), associate(t, addr, 1)
			q := a.io[0]
			for range 16 { // the size that dialQueue asked for
				q.send(plain(keyed(q.entry(cmdRead, 1).onBlocks(0, 1), q.data, blockSize)))
			}
			require.Equal(t, Success, a.admin.do(a.admin.entry(adminKeepAlive, 0)).status)
			require.NoError(t, q.conn.Err())
			q.send(plain(keyed(q.entry(cmdRead, 1).onBlocks(0, 1), q.data, blockSize)))
			<-q.conn.Done()
			require.Equal(t, InvalidOpcode|DNR, b.io[0].do(b.io[0].entry(0x7e, 1)).status)
		})
	}
}

// Commands that wait keep no shared receive, whatever they bring along.
func TestSharedReceivesComeBack(t *testing.T) {
	d := slow{watch(Memory(1 << 20))}
	addr, _ := serve(t, Config{SharedReceives: 4}, subsystem(t, d, Memory(1<<20)))
	t.Cleanup(d.open)
	a, b := associate(t, addr, 1).io[0], associate(t, addr, 1).io[0]
	for i := range 12 {
		if i%2 == 0 {
			a.send(plain(keyed(a.entry(cmdRead, 1).onBlocks(0, 1), a.data, blockSize)), make([]byte, 512))
		} else {
			a.send(inline(a.entry(cmdWrite, 1).onBlocks(0, 1), blockSize), make([]byte, blockSize))
		}
	}
	for range 20 {
		require.Equal(t, Success, b.do(inline(b.entry(cmdWrite, 2).onBlocks(0, 1), blockSize), make([]byte, blockSize)).status)
	}
}

func (s slow) WriteAt(p []byte, off int64) (int, error) {
	s.call(int64(len(p)))
	return s.Disk.WriteAt(p, off)
}

// lines gets the messages of a log.
type lines chan string

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l lines) WithGroup(string) slog.Handler            { return l }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	l <- r.Message
	return nil
}

// A host that sends commands and reads no answers loses its queue; meanwhile and then others have the shared receives.
func TestAnswersUnread(t *testing.T) {
	said := make(chan string, 16)
	config := Config{SharedReceives: 8, StallTimeout: time.Second, Logger: slog.New(lines(said))}
	addr, target := serve(t, config, subsystem(t, Memory(1<<20)))
	a, b := associate(t, addr, 1), associate(t, addr, 1).io[0]
	m, q := a.through(t, addr)
	m.pause(true)
	c := target.controller(a.id)
	c.mu.Lock()
	served := c.queues[1]
	c.mu.Unlock()
	place := func() (sqhd uint32, unanswered int) {
		served.mu.Lock()
		defer served.mu.Unlock()
		return served.sqhd, served.unanswered
	}
	for served.gone.Err() == nil { // until the sockets on the way are full
		before, _ := place()
		q.send(plain(keyed(q.entry(cmdRead, 1).onBlocks(0, maxTransfer/blockSize), q.data, maxTransfer)))
		require.Eventually(t, func() bool {
			now, unanswered := place()
			return now != before && unanswered == 0 || served.gone.Err() != nil
		}, time.Minute, time.Millisecond)
	}
	for said := range said {
		if strings.Contains(said, "not taken its answers") {
			break
		}
	}
	m.pause(false)
	<-q.conn.Done()
	require.Equal(t, Success, b.do(inline(b.entry(cmdWrite, 1).onBlocks(0, 1), blockSize), make([]byte, blockSize)).status)
}
