package rnictest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/verbs"
)

// over runs f over a pipe, in a bubble, and over the loopback.
func over(t *testing.T, f func(t *testing.T, c Config)) {
	t.Run("pipe", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, Config{}) })
	})
	t.Run("loopback", func(t *testing.T) { f(t, Config{Loopback: true}) })
}

func TestPair(t *testing.T) {
	over(t, func(t *testing.T, c Config) {
		c.Recvs = 2
		a, b := Pair(t, c)
		buf, mr := a.Memory(100)
		buf[7] = 9
		a.Post(verbs.Request{ID: 5, SGL: mr.All()})
		assert.Equal(t, verbs.Completion{ID: 5, QP: a.QP.ID(), Op: verbs.OpSend}, a.Wait())
		got := b.Wait()
		assert.NoError(t, got.Err())
		assert.Equal(t, uint32(100), got.Bytes)
		assert.Equal(t, buf, b.Recv[:100])
		assert.NoError(t, a.Conn.Close())
		assert.NoError(t, b.Over())
	})
}

// TestDelay: what is delayed comes by its time, and does not hold up its sender.
func TestDelay(t *testing.T) {
	for name, c := range map[string]Config{
		"in":      {Faults: "message 1 in of send: delay 3s"},
		"out":     {Faults: "message 1 out of send: delay 3s"},
		"between": {Between: "message 1 out of send: delay 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.Recvs = 2
				a, b := Pair(t, c)
				start := time.Now()
				for _, e := range []*End{a, b} {
					_, mr := e.Memory(100)
					e.Post(verbs.Request{ID: 5, SGL: mr.All()})
				}
				var took []time.Duration
				for range 2 {
					assert.NoError(t, a.Wait().Err())
					assert.NoError(t, b.Wait().Err())
					took = append(took, time.Since(start))
				}
				assert.Equal(t, 3*time.Second, took[1])
				assert.NoError(t, a.Conn.Close())
				assert.NoError(t, b.Over())
			})
		})
	}
}
