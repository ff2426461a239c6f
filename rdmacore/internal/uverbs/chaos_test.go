//go:build linux && (amd64 || arm64)

package uverbs

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestChaosPort takes the port of a device down, slows it and moves its GID at random while queue pairs that are brought up by hand send:
// each request completes once, in order; one that succeeds has arrived as it was, once; of those that end with an error the first says
// RETRY_EXC_ERR and the others flush. It runs 6 rounds, or for SOFTRNIC_CHAOS_SECONDS (make chaos).
func TestChaosPort(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("SOFTRNIC_CHAOS_SECONDS"))
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	whole, ended := 0, 0
	for seed := uint64(0); seed < 6 || time.Now().Before(end); seed++ {
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			if chaosRound(t, rand.New(rand.NewPCG(seed, 3)), seed%2 == 0, seed%3 == 2) {
				whole++
			} else {
				ended++
			}
		})
		if !ok {
			return
		}
	}
	t.Logf("%d rounds whole, %d ended", whole, ended)
	assert.Positive(t, whole)
	assert.Positive(t, ended)
}

const chaosSends = 24

// chaosRound is a pair's time, which with long ends with a port that is down for longer than the last Sends wait. It reports whether all
// went well.
func chaosRound(t *testing.T, r *rand.Rand, roce, long bool) bool {
	p := started(t, Config{RoCE: roce})
	a, b := byHandOf(t, p, 14) // 2 x 67 ms
	message := func(id int) []byte { return bytes.Repeat([]byte{byte(id + 1)}, 64) }
	for id := range chaosSends {
		_, err := b.recv(uint64(id), b.sge(64*id, 64))
		require.NoError(t, err)
		a.fill(64*id, message(id))
	}
	done, down := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range 12 {
			chaosCommand(p.dev, r)
			time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
		}
		if long {
			p.dev.SetLink(Link{Down: true})
			close(down)
			time.Sleep(300 * time.Millisecond)
		}
		p.dev.Quiet()
	}()
	for id := range chaosSends {
		if long && id == chaosSends-4 {
			<-down
		}
		a.posted(signaled(uabi.WRSend, id), a.sge(64*id, 64))
		time.Sleep(4 * time.Millisecond)
	}
	got := a.wait(chaosSends)
	<-done
	good := 0
	for i, w := range got {
		require.EqualValues(t, i, w.WRID)
		switch {
		case w.Status == uabi.WCSuccess:
			require.Equal(t, i, good, "a success behind an error")
			good++
		case i == good:
			assert.EqualValues(t, uabi.WCRetryExcErr, w.Status)
		default:
			assert.EqualValues(t, uabi.WCWRFlushErr, w.Status)
		}
	}
	assert.Empty(t, a.poll(1), "a completion too many")
	for i, w := range b.wait(chaosSends) {
		require.EqualValues(t, i, w.WRID)
		if w.Status == uabi.WCSuccess {
			assert.Equal(t, message(i), b.read(64*i, 64))
		} else {
			assert.Less(t, good, chaosSends)
		}
	}
	assert.Empty(t, b.poll(1))
	return good == chaosSends
}

// chaosCommand is one of those that end nothing by themselves.
func chaosCommand(d *Device, r *rand.Rand) {
	switch r.IntN(6) {
	case 0, 1:
		d.SetLink(Link{Down: true})
	case 2:
		d.SetLink(Link{})
	case 3:
		d.SetLink(Link{Rate: 100_000 + r.Int64N(10_000_000), Delay: time.Duration(r.IntN(2000)) * time.Microsecond})
	case 4:
		d.MoveGID()
	default:
		d.Quiet()
	}
}
