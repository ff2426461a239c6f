package stress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
)

// worst is the worst that a peer can do to a server with one connection, in one way.
type worst struct {
	server string
	does   string
	start  func(*testing.T) server
	// attack is done with each connection, which stays open.
	attack func(net.Conn) error
	// promise is how much memory each connection takes at most, in KiB, and one how much all together do on top: docs/security.md has the parts.
	promise, one int
	// socket is the same of the kernel's memory.
	socket int
	how    how
}

// how is how many connections there can be, and where they come from: 2,000 addresses.
type how uint8

const (
	some    how = 1 << iota // some are refused, or driven out for others
	oneHost                 // from one address, as places are shared by host
	fewer                   // 1,000 at most, as places are not shared
)

// TestWorst has 96 connections (`make siege`: 2,000) each do the worst they can, and holds the memory that they take against what
// docs/security.md promises, while honest clients get in. With `make siege` the table there is made of it.
func TestWorst(t *testing.T) {
	n, table := 96, worstTable
	if siege() {
		n = 2000
	}
	for _, w := range worstOf {
		t.Run(w.server+", "+w.does, func(t *testing.T) {
			n := n
			if w.how&fewer != 0 {
				n = min(n, 1000)
			}
			got := w.measure(t, n)
			table.row(t, w.server, w.does, got.open, got.heap, got.promise, got.socket, w.socket, fmt.Sprintf("%d of %d", got.in, honestOnes))
			assert.LessOrEqual(t, got.heap, got.promise, "KiB of memory each")
			assert.LessOrEqual(t, got.socket, w.socket, "KiB of sockets each")
			assert.Equal(t, honestOnes, got.in)
		})
	}
	table.publish(t, len(worstOf))
}

// honestOnes is how many honest clients come while the others are there.
const honestOnes = 16

// costs are what connections took.
type costs struct {
	open, heap, promise, socket, in int
}

func (w *worst) measure(t *testing.T, n int) (c costs) {
	srv := w.start(t)
	honest := func() (in int) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range honestOnes / 4 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					_, err := srv.connect(ctx)
					cancel()
					if assert.NoError(t, err) {
						mu.Lock()
						in++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		return in
	}
	var before octets
	s := weigh(t, srv, func() { // what is made once is there then
		a := w.open(t, srv, n)
		steady(memory)
		honest()
		many := runtime.NumGoroutine()
		a.close()
		keepGoroutines(many + many/4)
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); { // until all has gone that goes: no event tells
		last := before
		if before = memory(); last > 0 && before+64<<10 > last {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	all := w.open(t, srv, n)
	defer all.close()
	c.open = len(all.conns)
	steady(func() octets { return socketMemory(srv.addr) }) // a slow server has not yet read what it will
	after := steady(memory)
	c.socket = kib(socketMemory(srv.addr), c.open)
	c.heap = kib(max(after, before)-before, c.open)
	c.promise = w.promise + (w.one+c.open-1)/c.open
	c.in = honest()
	all.close()
	s.lighter()
	return c
}

// steady waits until size is the same for a while, which no event tells.
func steady(size func() octets) (now octets) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		last := now
		if now = size(); max(now, last)-min(now, last) <= last/100 {
			break
		}
	}
	return now
}

// keepGoroutines has the Go runtime keep what it keeps for good of so many goroutines at a time. It is on the heap, and
// an attack that comes to more at a time than its rehearsal would seem to leave it behind: commands of NVMe have a
// goroutine each, and how many of 12,000 are under way at once differs by a tenth from one time to the next.
func keepGoroutines(n int) {
	var all sync.WaitGroup
	end := make(chan struct{})
	for range n {
		all.Go(func() { <-end })
	}
	close(end)
	all.Wait()
}

// kib is a sum for each of n, in KiB, rounded up.
func kib(sum octets, n int) int { return int((sum/octets(n) + 1023) >> 10) }

// memory is that of the process that is in use: its heap, and stacks.
func memory() octets {
	heap := held()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return heap + octets(m.StackInuse)
}

// open makes n connections, 16 at a time, from as many addresses as the attackers of a siege with many.
func (w *worst) open(t *testing.T, srv server, n int) *attacker {
	a := &attacker{addr: srv.addr}
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range 16 {
		all.Go(func() {
			for i := range next {
				if w.how&oneHost != 0 {
					i = 0
				}
				d := droppedpeer.Dialer(net.IPv4(127, 1, byte(i%2000/250), byte(1+i%250)))
				d.Timeout = 10 * time.Second
				nc, err := d.Dial("tcp", srv.addr)
				if err == nil {
					_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
					err = w.attack(nc)
					_ = nc.SetDeadline(time.Time{})
				}
				if err != nil && w.how&some == 0 {
					assert.NoError(t, err)
				}
				if nc == nil || errors.Is(err, net.ErrClosed) {
					continue
				}
				mu.Lock()
				a.conns = append(a.conns, nc)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.NotEmpty(t, a.conns)
	return a
}
