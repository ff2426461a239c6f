package sysfs

// Counters are the files of a port's counters and hw_counters, by their names below the port's folder. Each is a decimal number, named
// as the adapters name the like. The tree has 0 in each: what a device counts is the process', whose engine has the texts.
var Counters = []string{
	"counters/port_xmit_data", "counters/port_rcv_data", "counters/port_xmit_packets", "counters/port_rcv_packets",
	"counters/unicast_xmit_packets", "counters/unicast_rcv_packets", "counters/port_rcv_errors", "counters/link_downed",
	"hw_counters/sent_pkts", "hw_counters/rcvd_pkts", "hw_counters/rdma_sends", "hw_counters/rdma_recvs",
	"hw_counters/rx_write_requests", "hw_counters/rx_read_requests", "hw_counters/rx_atomic_requests",
	"hw_counters/out_of_buffer", "hw_counters/link_downed",
}

func (c Config) counterFiles() (all []file) {
	for _, name := range Counters {
		all = append(all, file{c.ib() + "/ports/1/" + name, "0"})
	}
	return all
}
