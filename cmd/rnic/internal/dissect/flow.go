package dissect

import (
	"net/netip"
	"time"
)

// segment is a TCP segment as captured.
type segment struct {
	src, dst         netip.AddrPort
	seq, ack         uint32
	syn, fin, hasAck bool
	payload          []byte // as much of it as was captured
	short            bool   // that is not all
	captured         int    // octets of the packet that were
}

// flowKey names a TCP connection whichever way a segment goes.
type flowKey struct{ low, high netip.AddrPort }

func keyOf(a, b netip.AddrPort) flowKey {
	if a.Compare(b) > 0 {
		a, b = b, a
	}
	return flowKey{a, b}
}

// tracker knows the TCP connections of a capture.
type tracker struct {
	report  Report
	visit   func(FPDU)
	packets int // TCP segments seen
	flows   map[flowKey]*conn
	order   []*conn // all, as they began
	number  int     // of the packet
	at      time.Time
	try     []byte   // of trial
	judged  int      // offsets behind gaps, as often as they were
	mpa     []*conn  // those on which MPA started
	free    [][]byte // deframer buffers not in use
	lent    int      // deframer buffers in use
}

func newTracker(visit func(FPDU)) *tracker {
	t := &tracker{visit: visit, flows: map[flowKey]*conn{}}
	t.report.Connections = []*Connection{}
	return t
}

func (t *tracker) segment(s segment) {
	t.packets++
	if s.short {
		t.report.Short++
		t.report.Snap = max(t.report.Snap, s.captured)
	}
	key := keyOf(s.src, s.dst)
	c := t.flows[key]
	if c == nil || s.syn && c.reopened(s) {
		c = newConn(t, key)
		t.flows[key] = c
		t.order = append(t.order, c)
	}
	d := c.dirs[0]
	if s.src != key.low {
		d = c.dirs[1]
	}
	if s.hasAck {
		d.peer.tcp.acknowledge(s.ack)
	}
	if s.syn {
		d.tcp.begin(s.seq + 1)
		d.isn, d.synSeen = s.seq, true
		s.seq++
	}
	d.tcp.begin(s.seq)
	d.tcp.put(s.seq, s.payload, d.sink())
	if s.fin && d.tcp.next == s.seq+uint32(len(s.payload)) {
		d.tcp.next++ // a FIN takes a sequence number
	}
}

// reopened reports whether a SYN starts a new connection between the same
// ports, rather than being sent again.
func (c *conn) reopened(s segment) bool {
	d := c.dirs[0]
	if s.src != c.key.low {
		d = c.dirs[1]
	}
	if d.synSeen {
		return d.isn != s.seq
	}
	return d.tcp.started
}

// sink is where the octets of d go.
func (d *direction) sink() sink { return sink{d.octets, d.gap} }

// finish ends all streams.
func (t *tracker) finish() {
	for _, c := range t.order {
		for _, d := range c.dirs {
			d.tcp.finish(d.sink())
		}
	}
	for _, c := range t.mpa {
		for _, d := range c.dirs {
			if d.phase == phaseFull {
				d.report.Incomplete = d.deframer.Buffered()
			}
		}
	}
}

// trial is a buffer for one that is thrown away.
func (t *tracker) trial() []byte {
	if t.try == nil {
		t.try = make([]byte, bufferSize)
	}
	return t.try
}

// borrow lends a receive buffer to a deframer.
func (t *tracker) borrow() []byte {
	t.lent++
	if n := len(t.free); n > 0 {
		b := t.free[n-1]
		t.free = t.free[:n-1]
		return b
	}
	return make([]byte, bufferSize)
}

func (t *tracker) giveBack(b []byte) {
	t.lent--
	t.free = append(t.free, b)
}
