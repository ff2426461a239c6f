package rnictest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// echoes has a send n messages of size octets one after the other, each of which b answers, and returns the time of all.
func echoes(t *testing.T, a, b *End, n, size int) time.Duration {
	t.Helper()
	bufs := [2][]byte{}
	var mrs [2]*verbs.MR
	var sinks [2]*verbs.MR
	for i, e := range []*End{a, b} {
		bufs[i], mrs[i] = e.Memory(size)
		_, sinks[i] = e.Memory(size)
	}
	begun := time.Now()
	for i := range n {
		for k, e := range []*End{b, a} {
			_, err := e.QP.PostRecv(verbs.Recv{ID: uint64(i), SGL: sinks[1-k].All()})
			require.NoError(t, err)
		}
		for k, e := range []*End{a, b} {
			to := []*End{b, a}[k]
			e.Post(verbs.Request{ID: uint64(i), SGL: mrs[k].All()})
			require.Equal(t, verbs.StatusSuccess, e.Wait().Status)
			c := to.Wait()
			require.Equal(t, verbs.StatusSuccess, c.Status)
			require.EqualValues(t, size, c.Bytes)
		}
	}
	return time.Since(begun)
}

// both runs f over a pipe in a bubble, where time is exact, and over TCP.
func both(t *testing.T, f func(t *testing.T, a, b *End, tcp bool)) {
	t.Run("pipe", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := Pair(t, Config{})
			f(t, a, b, false)
		})
	})
	t.Run("tcp", func(t *testing.T) {
		a, b := Pair(t, Config{Loopback: true})
		f(t, a, b, true)
	})
}

// TestLinkDown: nothing goes through a port that is down, either way, and all of it when it is up again.
func TestLinkDown(t *testing.T) {
	both(t, func(t *testing.T, a, b *End, _ bool) {
		echoes(t, a, b, 1, 100)
		Break(a, fault.Link{Down: true})
		began := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { Break(a, fault.Link{}) })
		echoes(t, a, b, 3, 100_000)
		assert.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
		// What b sends while a is down arrives when it is not.
		Break(a, fault.Link{Down: true})
		buf, sink := a.Memory(8)
		_, err := a.QP.PostRecv(verbs.Recv{SGL: sink.All()})
		require.NoError(t, err)
		source, mr := b.Memory(8)
		copy(source, "softrnic")
		b.Post(verbs.Request{SGL: mr.All()})
		b.Wait()
		time.Sleep(20 * time.Millisecond)
		var none [1]verbs.Completion
		require.Zero(t, a.CQ.Poll(none[:]))
		Break(a, fault.Link{})
		a.Wait()
		assert.Equal(t, "softrnic", string(buf))
	})
}

// TestLinkDelay: a round trip takes a delay of each end longer.
func TestLinkDelay(t *testing.T) {
	both(t, func(t *testing.T, a, b *End, tcp bool) {
		Break(a, fault.Link{Delay: 10 * time.Millisecond})
		took := echoes(t, a, b, 5, 100)
		assert.GreaterOrEqual(t, took, 50*time.Millisecond)
		if !tcp {
			assert.Less(t, took, 60*time.Millisecond)
		}
		Break(b, fault.Link{Delay: 10 * time.Millisecond})
		assert.GreaterOrEqual(t, echoes(t, a, b, 5, 100), 100*time.Millisecond)
		Break(a, fault.Link{})
		Break(b, fault.Link{})
		if took := echoes(t, a, b, 5, 100); !tcp {
			assert.Less(t, took, time.Millisecond)
		}
	})
}

// TestLinkRate: octets take their time, whichever end is slow.
func TestLinkRate(t *testing.T) {
	both(t, func(t *testing.T, a, b *End, tcp bool) {
		for _, slow := range []*End{a, b} {
			Break(slow, fault.Link{Rate: 10_000_000})
			took := echoes(t, a, b, 2, 500_000) // 1 MB each way
			assert.GreaterOrEqual(t, took, 150*time.Millisecond)
			if !tcp {
				assert.Less(t, took, 250*time.Millisecond)
			}
			Break(slow, fault.Link{})
		}
	})
}

// TestLinkDownClose: what waits behind a port that is down keeps nobody.
func TestLinkDownClose(t *testing.T) {
	both(t, func(t *testing.T, a, b *End, _ bool) {
		Break(a, fault.Link{Down: true})
		_, mr := a.Memory(10)
		a.Post(verbs.Request{SGL: mr.All()})
		var none [1]verbs.Completion
		time.Sleep(10 * time.Millisecond)
		require.Zero(t, a.CQ.Poll(none[:]))
		require.NoError(t, a.NIC.Close(), "a port that is down keeps nobody")
	})
}
