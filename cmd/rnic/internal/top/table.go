package top

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/stats"
)

// row is a queue pair, or all that an RNIC has had, over some time.
type row struct {
	pid     int
	program string
	nic     string
	name    string // of the NIC; empty: it has none
	qp      uint32
	state   string
	peer    string
	// Of each second.
	out, in rate
	// At the moment, and in all.
	sendQueue, recvQueue, outReads, inReads uint64
	failed                                  uint64 // completions with an error
}

type rate struct{ messages, octets float64 }

// key identifies a queue pair.
type key struct {
	pid int
	nic string
	qp  uint32
}

// rates are the queue pairs that there are now, the busiest first. One that was not there before has done all since.
func rates(before, now []stats.Snapshot) (rows []row) {
	was := map[key]stats.QP{}
	when := map[int]time.Time{}
	for _, p := range before {
		when[p.PID] = p.Time
		each(p, func(k key, q stats.QP) { was[k] = q })
	}
	for _, p := range now {
		seconds := 0.0
		if t, ok := when[p.PID]; ok {
			seconds = p.Time.Sub(t).Seconds()
		}
		names := map[string]string{}
		for _, nic := range p.RNICs {
			names[nic.ID] = nic.Name
		}
		each(p, func(k key, q stats.QP) {
			old := was[k]
			c := q.Counters
			grown := func(name string) float64 { return per(seconds, old.Sum(name), q.Sum(name)) }
			rows = append(rows, row{
				pid: p.PID, program: p.Program, nic: k.nic, name: names[k.nic], qp: k.qp, state: q.State, peer: q.Remote,
				out:       rate{grown("out_messages"), grown("out_octets")},
				in:        rate{grown("in_messages"), grown("in_octets")},
				sendQueue: c["send_queue"], recvQueue: c["recv_queue"], outReads: c["out_reads"], inReads: c["in_reads"],
				failed: q.Sum("completions") - q.By["completions"]["Success"],
			})
		})
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		busier := cmp.Compare(b.out.octets+b.in.octets, a.out.octets+a.in.octets)
		return cmp.Or(busier, cmp.Compare(a.pid, b.pid), cmp.Compare(a.name, b.name), cmp.Compare(a.qp, b.qp))
	})
	return rows
}

func each(p stats.Snapshot, f func(key, stats.QP)) {
	for _, nic := range p.RNICs {
		for _, q := range nic.QPs {
			f(key{p.PID, nic.ID, q.ID}, q)
		}
	}
}

// per is the growth of a counter in a second; 0 where it is not known, as of a new queue pair of an old name.
func per(seconds float64, was, is uint64) float64 {
	if seconds <= 0 || is < was {
		return 0
	}
	return float64(is-was) / seconds
}

// summaries are a line of what a process has counted since it began, also on queue pairs that are gone; of a process with several NICs
// that have names, one of each.
func summaries(p stats.Snapshot) (lines []string) {
	who := fmt.Sprintf("%s[%d]", cli.Printable(p.Program), p.PID)
	if len(p.RNICs) < 2 || p.RNICs[0].Name == "" {
		return []string{who + ": " + summary(p.RNICs)}
	}
	for i := range p.RNICs {
		lines = append(lines, who+" "+cli.Printable(p.RNICs[i].Name)+": "+summary(p.RNICs[i:i+1]))
	}
	return lines
}

func summary(nics []stats.RNIC) string {
	var sum, by = map[string]uint64{}, map[string]uint64{}
	for i := range nics {
		nic := &nics[i]
		for name, n := range nic.Counters {
			sum[name] += n
		}
		for _, name := range []string{"out_octets", "in_octets", "out_terminates", "in_terminates"} {
			by[name] += nic.Sum(name)
		}
	}
	return fmt.Sprintf("%d QPs, %d streams, %d refused, %d reset; %.1f MB out, %.1f MB in; "+
		"Terminates %d out, %d in; CRC errors %d; waits for a receive %d",
		sum["qp"], sum["connects"]+sum["accepts"], sum["connects_refused"], sum["out_resets"]+sum["in_resets"],
		float64(by["out_octets"])/1e6, float64(by["in_octets"])/1e6, by["out_terminates"], by["in_terminates"],
		sum["crc_errors"], sum["out_of_buffer"])
}
