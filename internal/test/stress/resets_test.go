package stress

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
)

// TestResets has peers reset their connections, 1,000 at each step of connecting (`make siege`; 100 without), while
// honest clients connect: none fails, and memory is as before. With `make siege` a table of docs/security.md is made of it.
func TestResets(t *testing.T) {
	n := 100
	if siege() {
		n = 1000
	}
	table := resetsTable
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			srv := s.start(t)
			srv.script.From = net.IPv4(127, 2, 0, 1) // a host has its share of a backlog, honest or not,
			srv.script.Answer = nil                  // and is refused when it has had it
			attack := func() {
				for _, step := range droppedpeer.Steps {
					step.Many(t, n, srv.addr, srv.script)
				}
			}
			h := weigh(t, srv, attack)
			var got times
			ctx, cancel := context.WithCancel(context.Background())
			var clients sync.WaitGroup
			clients.Go(func() { got.until(ctx, srv) })
			stop := func() { cancel(); clients.Wait() }
			defer stop() // also if the attack fails: clients that go on would be in all figures that follow
			attack()
			stop()
			before, after := h.lighter()
			table.row(t, s.name, n, len(got.took), len(got.failed),
				got.quantile(0.5), got.quantile(0.99), before, after)
			assert.Empty(t, got.failed)
			require.NotEmpty(t, got.took)
		})
	}
	table.publish(t, len(servers))
}

// TestCrowdLeaves: of a crowd of honest clients that has gone a listener holds nothing, also while nobody else comes.
func TestCrowdLeaves(t *testing.T) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			srv := s.start(t)
			crowd := func() {
				var all sync.WaitGroup
				var served atomic.Int32
				for range 150 {
					all.Go(func() {
						if _, err := srv.connect(t.Context()); err == nil { // the shortest backlog refuses some
							served.Add(1)
						}
					})
				}
				all.Wait()
				require.NotZero(t, served.Load())
			}
			h := weigh(t, srv, crowd)
			crowd()
			h.lighter()
		})
	}
}

// octets are printed in MiB.
type octets uint64

func (o octets) String() string { return fmt.Sprintf("%.2f MiB", float64(o)/(1<<20)) }

// held is the process's heap after what nobody uses has gone. Stacks are not counted, as the Go runtime keeps those of
// goroutines that have ended: what goroutines stay the tests of each listener count.
func held() octets {
	var m runtime.MemStats
	runtime.GC() // twice: what has a finalizer goes with the second
	runtime.GC()
	runtime.ReadMemStats(&m)
	return octets(m.HeapAlloc)
}

// scales know what was held before an attack.
type scales struct {
	t      *testing.T
	before octets
}

// weigh has a few clients served and the attack rehearsed first: what is made once, by the Go runtime too, is there
// then, and what is left is of each connection.
func weigh(t *testing.T, srv server, rehearse func()) *scales {
	var warm times
	warm.measure(srv, 200*time.Millisecond)
	require.Empty(t, warm.failed)
	rehearse()
	warm.measure(srv, 200*time.Millisecond)
	s := &scales{t: t, before: held()}
	for range 100 { // until what ends in the background has ended
		time.Sleep(20 * time.Millisecond)
		now := held()
		if now >= s.before {
			break
		}
		s.before = now
	}
	return s
}

// little is what a tenth may be less than, as this process holds little: maps keep the size that they have had, and the
// Go runtime what it needs for as many goroutines as there have been.
const little = 1 << 20

// lighter waits until no more than a tenth is held on top of what was held before, and reports both.
func (s *scales) lighter() (before, after octets) {
	most := s.before + max(s.before/10, little)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) { // no event tells that all has gone
		after = held()
		if after <= most || time.Now().After(end) {
			break
		}
	}
	assert.LessOrEqual(s.t, after, most, "%v is held, where %v was before", after, s.before)
	return s.before, after
}
