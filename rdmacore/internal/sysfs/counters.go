package sysfs

import (
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// Counters are the files of a port's counters and hw_counters, by their names below the port's folder, and what each says, a decimal
// number. hw_counters are those of package stats that a driver of Linux has too, by its name. The tree has 0 in each: what a device
// counts is the process', whose engine has the texts.
var Counters = counters()

func counters() map[string]func(*verbs.RNICStats) uint64 {
	sent := func(s *verbs.RNICStats) uint64 { return s.QP.Out.Total().Segments }
	received := func(s *verbs.RNICStats) uint64 { return s.QP.In.Total().Segments }
	all := map[string]func(*verbs.RNICStats) uint64{
		// In four octets, as InfiniBand's PortCounters are; packets are segments.
		"counters/port_xmit_data":       func(s *verbs.RNICStats) uint64 { return s.QP.OutOctets / 4 },
		"counters/port_rcv_data":        func(s *verbs.RNICStats) uint64 { return s.QP.InOctets / 4 },
		"counters/port_xmit_packets":    sent,
		"counters/port_rcv_packets":     received,
		"counters/unicast_xmit_packets": sent,
		"counters/unicast_rcv_packets":  received,
		"counters/port_rcv_errors":      func(s *verbs.RNICStats) uint64 { return s.QP.CRCErrors },
		"counters/link_downed":          func(s *verbs.RNICStats) uint64 { return s.Faults["port down"] },
	}
	for _, c := range stats.QPCounters {
		if c.Linux != "" && c.One != nil {
			all["hw_counters/"+c.Name] = func(s *verbs.RNICStats) uint64 { return c.One(&s.QP) }
		}
	}
	return all
}

func (c Config) counterFiles() (all []file) {
	for name := range Counters {
		all = append(all, file{c.ib() + "/ports/1/" + name, "0"})
	}
	return all
}
