//go:build linux && (amd64 || arm64)

package uverbs

import "github.com/softrnic/softrnic/verbs"

// counters are what the files that sysfs.Counters names say. port_xmit_data and port_rcv_data are in four octets, as InfiniBand's
// PortCounters are; packets are segments.
var counters = map[string]func(s *verbs.RNICStats) uint64{
	"counters/port_xmit_data":        func(s *verbs.RNICStats) uint64 { return s.QP.OutOctets / 4 },
	"counters/port_rcv_data":         func(s *verbs.RNICStats) uint64 { return s.QP.InOctets / 4 },
	"counters/port_xmit_packets":     segmentsSent,
	"counters/port_rcv_packets":      segmentsReceived,
	"counters/unicast_xmit_packets":  segmentsSent,
	"counters/unicast_rcv_packets":   segmentsReceived,
	"counters/port_rcv_errors":       func(s *verbs.RNICStats) uint64 { return s.QP.CRCErrors },
	"counters/link_downed":           timesDown,
	"hw_counters/sent_pkts":          segmentsSent,
	"hw_counters/rcvd_pkts":          segmentsReceived,
	"hw_counters/rdma_sends":         func(s *verbs.RNICStats) uint64 { return s.QP.Out.Sends().Messages },
	"hw_counters/rdma_recvs":         func(s *verbs.RNICStats) uint64 { return s.QP.In.Sends().Messages },
	"hw_counters/rx_write_requests":  func(s *verbs.RNICStats) uint64 { return s.QP.In.Write.Messages },
	"hw_counters/rx_read_requests":   func(s *verbs.RNICStats) uint64 { return s.QP.In.ReadRequest.Messages },
	"hw_counters/rx_atomic_requests": func(s *verbs.RNICStats) uint64 { return s.QP.In.AtomicRequest.Messages },
	"hw_counters/out_of_buffer":      func(s *verbs.RNICStats) uint64 { return s.QP.ReceiveWaits },
	"hw_counters/link_downed":        timesDown,
}

func segmentsSent(s *verbs.RNICStats) uint64     { return s.QP.Out.Total().Segments }
func segmentsReceived(s *verbs.RNICStats) uint64 { return s.QP.In.Total().Segments }
func timesDown(s *verbs.RNICStats) uint64        { return s.Faults["port down"] }

// counter is what such a file says now; false: it is another file.
func (d *Device) counter(file string) (uint64, bool) {
	of, ok := counters[file]
	if !ok {
		return 0, false
	}
	s := d.rnic.Stats()
	return of(&s), true
}
