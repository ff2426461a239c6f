package stats

import "github.com/softrnic/softrnic/verbs"

// The tables of counters, of which docs/counters.md is made.

// QPCounters are those of a queue pair, and of all queue pairs of an RNIC together.
var QPCounters = []Counter[verbs.QPStats]{
	{Name: "sent_pkts", Linux: "rxe", Help: "segments sent", One: func(s *verbs.QPStats) uint64 { return s.Out.Total().Segments }},
	{Name: "rcvd_pkts", Linux: "rxe", Help: "segments received", One: func(s *verbs.QPStats) uint64 { return s.In.Total().Segments }},
	{Name: "tx_bytes", Linux: "efa", Help: "bytes of the stream sent, with headers, padding, CRCs and markers", One: func(s *verbs.QPStats) uint64 { return s.OutOctets }},
	{Name: "rx_bytes", Linux: "efa", Help: "bytes of the stream received, likewise", One: func(s *verbs.QPStats) uint64 { return s.InOctets }},
	{Name: "iwOutRdmaSends", Linux: "irdma", Help: "Sends sent, of the four kinds", One: func(s *verbs.QPStats) uint64 { return s.Out.Sends().Messages }},
	{Name: "iwInRdmaSends", Linux: "irdma", Help: "Sends received", One: func(s *verbs.QPStats) uint64 { return s.In.Sends().Messages }},
	{Name: "iwOutRdmaWrites", Linux: "irdma", Help: "RDMA Writes sent", One: func(s *verbs.QPStats) uint64 { return s.Out.Write.Messages }},
	{Name: "iwInRdmaWrites", Linux: "irdma", Help: "RDMA Writes received", One: func(s *verbs.QPStats) uint64 { return s.In.Write.Messages }},
	{Name: "iwOutRdmaReads", Linux: "irdma", Help: "RDMA Read Requests sent", One: func(s *verbs.QPStats) uint64 { return s.Out.ReadRequest.Messages }},
	{Name: "iwInRdmaReads", Linux: "irdma", Help: "RDMA Read Requests received", One: func(s *verbs.QPStats) uint64 { return s.In.ReadRequest.Messages }},
	{Name: "iwRdmaBnd", Linux: "irdma", Help: "Binds of Memory Windows carried out", One: func(s *verbs.QPStats) uint64 { return s.Binds }},
	{Name: "iwRdmaInv", Linux: "irdma", Help: "STags invalidated, by requests of this side and by Sends of the peer", One: func(s *verbs.QPStats) uint64 { return s.Invalidates }},
	{Name: "fast_registers", Help: "Fast-Registers carried out", One: func(s *verbs.QPStats) uint64 { return s.FastRegisters }},
	{Name: "out_messages", Help: "messages sent, counted with their last segment", Label: "op", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return flows(&s.Out, messages) }},
	{Name: "in_messages", Help: "messages received, counted with their last segment", Label: "op", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return flows(&s.In, messages) }},
	{Name: "out_segments", Help: "segments framed", Label: "op", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return flows(&s.Out, segments) }},
	{Name: "in_segments", Help: "segments received whose headers were in order", Label: "op", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return flows(&s.In, segments) }},
	{Name: "out_octets", Help: "bytes of the program sent", Label: "op", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return flows(&s.Out, octets) }},
	{Name: "in_octets", Help: "bytes of the program received", Label: "op", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return flows(&s.In, octets) }},
	{Name: "posted_sends", Help: "work requests posted to the Send Queue", One: func(s *verbs.QPStats) uint64 { return s.SendsPosted }},
	{Name: "posted_recvs", Help: "receives posted to the Receive Queue", One: func(s *verbs.QPStats) uint64 { return s.RecvsPosted }},
	{Name: "completions", Help: "completions, queued or lost to a full CQ", Label: "status", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return statuses(s.Completions) }},
	{Name: "send_queue", Gauge: true, Help: "requests posted and not completed", One: func(s *verbs.QPStats) uint64 { return s.SendQueue.Now }},
	{Name: "send_queue_max", Gauge: true, Help: "the most there have been", One: func(s *verbs.QPStats) uint64 { return s.SendQueue.Most }},
	{Name: "recv_queue", Gauge: true, Help: "receives posted and not completed", One: func(s *verbs.QPStats) uint64 { return s.RecvQueue.Now }},
	{Name: "recv_queue_max", Gauge: true, Help: "the most there have been", One: func(s *verbs.QPStats) uint64 { return s.RecvQueue.Most }},
	{Name: "out_reads", Gauge: true, Help: "RDMA Reads and Atomics of this side under way, bounded by ORD", One: func(s *verbs.QPStats) uint64 { return s.OutReads.Now }},
	{Name: "out_reads_max", Gauge: true, Help: "the most there have been", One: func(s *verbs.QPStats) uint64 { return s.OutReads.Most }},
	{Name: "in_reads", Gauge: true, Help: "RDMA Reads and Atomics of the peer that wait for their answer, bounded by IRD", One: func(s *verbs.QPStats) uint64 { return s.InReads.Now }},
	{Name: "in_reads_max", Gauge: true, Help: "the most there have been", One: func(s *verbs.QPStats) uint64 { return s.InReads.Most }},
	{Name: "out_of_buffer", Linux: "mlx5", Help: "messages that waited for a receive: GracefulReceive, or others hold the S-RQ's", One: func(s *verbs.QPStats) uint64 { return s.ReceiveWaits }},
	{Name: "dropped", Help: "messages that an unreliable connection (UC) had no place for", One: func(s *verbs.QPStats) uint64 { return s.Dropped }},
	{Name: "crc_errors", Help: "FPDUs whose CRC was wrong", One: func(s *verbs.QPStats) uint64 { return s.CRCErrors }},
	{Name: "connects", Help: "streams begun as Initiator", One: func(s *verbs.QPStats) uint64 { return s.Connects }},
	{Name: "accepts", Help: "streams begun as Responder", One: func(s *verbs.QPStats) uint64 { return s.Accepts }},
	{Name: "out_resets", Help: "streams that this side reset", One: func(s *verbs.QPStats) uint64 { return s.OutResets }},
	{Name: "in_resets", Help: "streams that the peer reset", One: func(s *verbs.QPStats) uint64 { return s.InResets }},
	{Name: "stream_ends", Help: "streams that are over, by the fault, verb or close that ended them", Label: "reason", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return s.Ends }},
	{Name: "out_terminates", Help: "Terminate Messages sent", Label: "code", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return s.OutTerminates }},
	{Name: "in_terminates", Help: "Terminate Messages received", Label: "code", ByLabel: func(s *verbs.QPStats) map[string]uint64 { return s.InTerminates }},
}

// CQCounters are those of a completion queue, and of all of an RNIC together.
var CQCounters = []Counter[verbs.CQStats]{
	{Name: "cq_completions", Help: "completions queued", Label: "status", ByLabel: func(s *verbs.CQStats) map[string]uint64 { return statuses(s.Completions) }},
	{Name: "cq_queue", Gauge: true, Help: "completions that wait to be polled", One: func(s *verbs.CQStats) uint64 { return s.Queue.Now }},
	{Name: "cq_queue_max", Gauge: true, Help: "the most there have been", One: func(s *verbs.CQStats) uint64 { return s.Queue.Most }},
	{Name: "cq_overflows", Help: "completions dropped, for want of room or after a failure of the queue", One: func(s *verbs.CQStats) uint64 { return s.Overflows }},
	{Name: "cq_notifications", Help: "notifications given", One: func(s *verbs.CQStats) uint64 { return s.Notifications }},
}

// SRQCounters are those of a shared receive queue, and of all of an RNIC together.
var SRQCounters = []Counter[verbs.SRQStats]{
	{Name: "srq_posted", Help: "receives posted", One: func(s *verbs.SRQStats) uint64 { return s.Posted }},
	{Name: "srq_taken", Help: "receives that messages have begun to fill", One: func(s *verbs.SRQStats) uint64 { return s.Taken }},
	{Name: "srq_queue", Gauge: true, Help: "receives posted, or taken and their completion not reaped", One: func(s *verbs.SRQStats) uint64 { return s.Queue.Now }},
	{Name: "srq_queue_max", Gauge: true, Help: "the most there have been", One: func(s *verbs.SRQStats) uint64 { return s.Queue.Most }},
}

// RNICCounters are those of an RNIC that its queues have not.
var RNICCounters = []Counter[verbs.RNICStats]{
	{Name: "connects_refused", Help: "attempts to connect that the peer's program refused", One: func(s *verbs.RNICStats) uint64 { return s.ConnectsRefused }},
	{Name: "connects_failed", Help: "MPA startups that failed otherwise, of either side", One: func(s *verbs.RNICStats) uint64 { return s.ConnectsFailed }},
	{Name: "faults", Help: "faults that were made on purpose: by a plan, or by `rnic nic`", Label: "kind", ByLabel: func(s *verbs.RNICStats) map[string]uint64 { return s.Faults }},
	{Name: "pd", Linux: "rdma resource", Gauge: true, Help: "protection domains", One: func(s *verbs.RNICStats) uint64 { return s.PDs }},
	{Name: "cq", Linux: "rdma resource", Gauge: true, Help: "completion queues", One: func(s *verbs.RNICStats) uint64 { return s.CQs }},
	{Name: "qp", Linux: "rdma resource", Gauge: true, Help: "queue pairs", One: func(s *verbs.RNICStats) uint64 { return s.QPs }},
	{Name: "srq", Linux: "rdma resource", Gauge: true, Help: "shared receive queues", One: func(s *verbs.RNICStats) uint64 { return s.SRQs }},
	{Name: "mr", Linux: "rdma resource", Gauge: true, Help: "memory regions", One: func(s *verbs.RNICStats) uint64 { return s.Regions }},
	{Name: "mw", Gauge: true, Help: "memory windows", One: func(s *verbs.RNICStats) uint64 { return s.Windows }},
}
