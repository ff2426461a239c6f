package fault

import (
	"net"
	"slices"
	"time"

	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// faultyConn is a connection with faults.
type faultyConn struct {
	in    *Injector
	of    *carried // what it has the rules of
	n     uint64   // from 1
	qp    wr.QPID
	rules int
	flows [2]*flow // In, Out
	times []*counter
	conn  *interpose.Conn

	startups interpose.Startups // a proxy's
}

// open begins the next stream.
func (in *Injector) open(qp wr.QPID) *faultyConn {
	in.mu.Lock()
	in.streams++
	st := &faultyConn{in: in, of: in.now.Load(), n: in.streams, qp: qp}
	in.mu.Unlock()
	for d := range st.flows {
		frames := interpose.NewFrames(st, interpose.Direction(d), &st.startups)
		st.flows[d] = &flow{Frames: frames, st: st, dir: Direction(d + 1)}
	}
	for i := range st.of.plan.Rules {
		r := &st.of.plan.Rules[i]
		if !r.When.onStream() || r.QP != 0 && r.QP != qp || r.Connection != 0 && r.Connection != st.n {
			continue
		}
		st.rules++
		if r.When == Time {
			st.times = append(st.times, st.of.plan.newCounter(i, place{st.n, r.Dir}))
			continue
		}
		for _, f := range st.flows {
			if r.Dir == Both || r.Dir == f.dir {
				f.rules = append(f.rules, st.of.plan.newCounter(i, place{st.n, f.dir}))
			}
		}
	}
	return st
}

// live reports whether its plan is the one that is carried out.
func (st *faultyConn) live() bool { return st.in.now.Load() == st.of }

// between puts the stream between the caller and nc.
func (st *faultyConn) between(nc net.Conn) net.Conn {
	st.conn = interpose.New(nc, st, nil)
	return st.conn.Offered()
}

// Feed implements interpose.Faults.
func (st *faultyConn) Feed(d interpose.Direction, b []byte) []interpose.Piece {
	return st.flows[d].feed(b)
}

// Rest implements interpose.Faults.
func (st *faultyConn) Rest(d interpose.Direction) []byte { return st.flows[d].Rest() }

// Begin implements interpose.Faults: it starts the clocks of rules by time.
func (st *faultyConn) Begin() (timers []*time.Timer) {
	for _, k := range st.times {
		timers = append(timers, time.AfterFunc(k.At, func() { st.strikeAt(k) }))
	}
	return timers
}

// strikeAt carries out a rule by time.
func (st *faultyConn) strikeAt(k *counter) {
	if st.conn.Over() || !st.live() {
		return
	}
	st.report(k, k.Dir, 0)
	for d, f := range st.flows {
		switch {
		case k.Dir != Both && k.Dir != f.dir:
		case k.What == Stall:
			st.conn.Stall(interpose.Direction(d), k.For)
		default:
			st.conn.End(interpose.Direction(d), ends[k.What])
		}
	}
}

// ends are the faults that end a connection.
var ends = map[What]interpose.End{Cut: interpose.Cut, Reset: interpose.Reset, HalfClose: interpose.HalfClose}

// Startup implements interpose.Sink.
func (st *faultyConn) Startup(d interpose.Direction, _ *mpa.Startup, raw []byte) {
	st.flows[d].pass(raw)
}

// FPDU implements interpose.Sink.
func (st *faultyConn) FPDU(d interpose.Direction, u mpa.FPDU) { st.flows[d].fpdu(u) }

// Raw implements interpose.Sink: rules that count octets are left.
func (st *faultyConn) Raw(d interpose.Direction, b []byte) {
	st.flows[d].deliver(slices.Clone(b), effect{})
}

// report publishes that c has struck in direction d.
func (st *faultyConn) report(c *counter, d Direction, pos uint64) { st.in.report(st.strike(c, d, pos)) }

func (st *faultyConn) strike(c *counter, d Direction, pos uint64) Strike {
	return Strike{Rule: *c.Rule, Seen: c.seen, Pos: pos, Connection: st.n, QP: st.qp, Dir: d}
}
