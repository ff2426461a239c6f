package nvmeof

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// TestPlacesAreShared: a host that takes what it can get leaves places for others, and keeps what it has.
func TestPlacesAreShared(t *testing.T) {
	addr, target := serve(t, Config{Connections: 8}, subsystem(t, Memory(1<<20)))
	var all []*rawQueue
	take := func(from string) bool {
		q, err := tryQueueFrom(t, from, addr, private(0, 0, 32, 31))
		if err != nil {
			var refused *cm.RejectedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, rejected(rejectNoResources), refused.PrivateData)
			return false
		}
		require.Equal(t, Success, q.connect(0xffff, 31, 0, nil).status)
		all = append(all, q)
		return true
	}
	fill := func(from string) (n int) {
		for take(from) {
			n++
		}
		return n
	}
	require.Equal(t, 4, fill("127.0.0.1"), "half")
	require.Equal(t, 2, fill("127.2.0.1"), "half of the rest")
	require.Equal(t, 1, fill("127.2.0.2"))
	require.True(t, take("127.2.0.3"), "there is one for the next")
	for _, q := range all {
		require.EqualValues(t, version, q.property(regVS, false).result)
	}
	require.Equal(t, 8, target.associations())
}

// TestShareWhenConnecting: a host that has made connections while there were few others, and sends Connect when there are
// many, is connected no more often than it may be then. The rest may try again, and may when others have gone.
func TestShareWhenConnecting(t *testing.T) {
	addr, target := serve(t, Config{Connections: 8}, subsystem(t, Memory(1<<20)))
	var mine, others []*rawQueue
	for range 3 {
		mine = append(mine, dialQueue(t, addr, 0, 31))
	}
	for i := range 5 {
		q, err := tryQueueFrom(t, fmt.Sprintf("127.2.0.%d", i+1), addr, private(0, 0, 32, 31))
		require.NoError(t, err)
		require.Equal(t, Success, q.connect(0xffff, 31, 0, nil).status)
		others = append(others, q)
	}
	connect := func(q *rawQueue) Status { return q.connect(0xffff, 31, 0, nil).status }
	require.Equal(t, []Status{Success, Success, ConnectBusy}, []Status{connect(mine[0]), connect(mine[1]), connect(mine[2])})
	require.Equal(t, ConnectBusy, connect(mine[2]))
	for _, q := range others[:2] {
		require.NoError(t, q.conn.Abort())
	}
	require.Eventually(t, func() bool { return target.associations() == 5 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return connect(mine[2]) == Success }, time.Minute, time.Millisecond)
}

// TestMuteHosts: connections without a Connect, from one address or from many, keep no host out, take no more than all
// places, and drive out no queue that is connected.
func TestMuteHosts(t *testing.T) {
	const places = 32
	for name, from := range map[string]func(i int) string{
		"one address":               func(int) string { return "127.3.0.1" },
		"the address of the others": func(int) string { return "127.0.0.1" },
		"many addresses":            func(i int) string { return fmt.Sprintf("127.3.%d.%d", 1+i/200, 1+i%200) },
	} {
		t.Run(name, func(t *testing.T) {
			addr, target := serve(t, Config{Connections: places}, subsystem(t, Memory(1<<20)))
			held := func() int {
				target.mu.Lock()
				defer target.mu.Unlock()
				return target.places.held()
			}
			once := dialHost(t, addr, HostConfig{KeepAlive: -1, Queues: 2}) // what is made once is there then
			require.NoError(t, diskOf(t, once, 1).Flush(t.Context()))
			require.NoError(t, once.Close())
			book := leakcheck.Open(t, target.counts()...)
			before := dialHost(t, addr, HostConfig{KeepAlive: -1, Queues: 2})
			var mute []*rawQueue
			for i := range 2 * places {
				q, err := tryQueueFrom(t, from(i), addr, private(0, 1, 128, 127))
				require.NoError(t, err)
				require.LessOrEqual(t, held(), places)
				mute = append(mute, q)
			}
			for range 3 { // an admin queue and two more
				h := dialHost(t, addr, HostConfig{KeepAlive: -1, Queues: 2})
				require.NoError(t, diskOf(t, h, 1).Flush(t.Context()))
				require.NoError(t, h.Close())
			}
			<-mute[0].conn.Done()
			<-mute[len(mute)-places].conn.Done()
			require.NoError(t, mute[len(mute)-1].conn.Err(), "the newest is there")
			require.NoError(t, diskOf(t, before, 1).Flush(t.Context()))
			for _, q := range mute {
				_ = q.conn.Abort()
				_ = q.nic.Close()
			}
			require.NoError(t, before.Close())
			book.Settle()
		})
	}
}

// TestRefusedStaysAsOld: a Connect that is refused makes a connection no younger.
func TestRefusedStaysAsOld(t *testing.T) {
	addr, _ := serve(t, Config{Connections: 2, ConnectTimeout: time.Hour}, subsystem(t, Memory(1<<20)))
	old, err := tryQueueFrom(t, "127.3.0.1", addr, private(0, 0, 32, 31))
	require.NoError(t, err)
	young, err := tryQueueFrom(t, "127.3.0.2", addr, private(0, 0, 32, 31))
	require.NoError(t, err)
	require.Equal(t, ConnectParameter|DNR, old.connect(7, 31, 0, nil).status)
	third, err := tryQueueFrom(t, "127.3.0.3", addr, private(0, 0, 32, 31))
	require.NoError(t, err)
	<-old.conn.Done()
	require.Equal(t, Success, young.connect(0xffff, 31, 0, nil).status)
	_, err = tryQueueFrom(t, "127.3.0.4", addr, private(0, 0, 32, 31))
	require.NoError(t, err)
	<-third.conn.Done()
	require.EqualValues(t, version, young.property(regVS, false).result)
}
