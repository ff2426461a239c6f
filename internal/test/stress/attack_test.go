package stress

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
)

// kept is how many connections an attacker holds open, more than a listener has
// places for; it closes the oldest for a new one, which the listener has reset by
// then.
const kept = 2500

// attack is connections that never say what they want.
type attack struct {
	rate    int  // a second
	many    bool // from 2,000 addresses, else from that of the honest clients
	trickle bool // each sends an octet a second
}

func (a attack) String() string {
	s := fmt.Sprintf("%d/s from one address", a.rate)
	if a.many {
		s = fmt.Sprintf("%d/s from 2,000 addresses", a.rate)
	}
	if a.trickle {
		s += ", trickling"
	}
	return s
}

// attacker is an attack under way. It is for one goroutine.
type attacker struct {
	attack
	addr  string
	conns []net.Conn // a ring
	n     int        // connections so far
}

// open makes n connections. What fails is the attacker's loss.
func (a *attacker) open(n int) {
	for range n {
		var from net.IP
		if a.many { // 127.1.0.1 to 127.1.7.250
			i := a.n % 2000
			from = net.IPv4(127, 1, byte(i/250), byte(1+i%250))
		}
		d := droppedpeer.Dialer(from)
		d.Timeout = time.Second
		nc, err := d.Dial("tcp", a.addr)
		i := a.n % kept
		a.n++
		if len(a.conns) <= i {
			a.conns = append(a.conns, nil)
		}
		if a.conns[i] != nil {
			_ = a.conns[i].Close()
		}
		if a.conns[i] = nil; err == nil {
			a.conns[i] = nc
			a.drip(nc)
		}
	}
}

// drip sends an octet, if that is the attack.
func (a *attacker) drip(nc net.Conn) {
	if a.trickle && nc != nil {
		_, _ = nc.Write([]byte("M"))
	}
}

// run opens connections at the attack's rate until ctx ends.
func (a *attacker) run(ctx context.Context) {
	const ticks = 100 // a second
	tick := time.NewTicker(time.Second / ticks)
	defer tick.Stop()
	start, before := time.Now(), 0
	for turn := 0; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		due := int(time.Since(start).Seconds() * float64(a.rate))
		a.open(due - before)
		before = due
		for range len(a.conns) / ticks {
			a.drip(a.conns[turn%len(a.conns)])
			turn++
		}
	}
}

// rehearse makes n connections, and ends them.
func (a *attacker) rehearse(n int) {
	a.open(n)
	a.close()
	a.n = 0
}

func (a *attacker) close() {
	for _, nc := range a.conns {
		if nc != nil {
			_ = nc.Close()
		}
	}
	a.conns = nil
}
