package dissect

import (
	"fmt"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
)

// fields are those of the headers of a segment, in the order in which they are sent.
func fields(s ddp.Segment) []Field {
	var list []Field
	add := func(name, format string, v any) { list = append(list, Field{name, fmt.Sprintf(format, v)}) }
	op := rdmap.OpcodeOf(s.RsvdULP())
	add("T", "%d", digit(s.Tagged()))
	add("L", "%d", digit(s.Last()))
	add("DV", "%d", s.Version())
	add("RV", "%d", s.RsvdULP()>>6)
	add("Opcode", "%v", op)
	if s.Tagged() {
		add("STag", "0x%08x", s.STag())
		add("TO", "0x%x", s.TO())
		return list
	}
	add("Invalidate STag", "0x%08x", s.RsvdULP32())
	add("QN", "%d", s.QN())
	add("MSN", "%d", s.MSN())
	add("MO", "%d", s.MO())
	switch op {
	case rdmap.ReadRequest:
		if h, ok := rdmap.ParseReadRequest(s.Payload()); ok {
			add("Data Sink STag", "0x%08x", h.SinkSTag)
			add("Data Sink TO", "0x%x", h.SinkTO)
			add("RDMA Read Message Size", "%d", h.Size)
			add("Data Source STag", "0x%08x", h.SourceSTag)
			add("Data Source TO", "0x%x", h.SourceTO)
		}
	case rdmap.Terminate:
		if h, ok := rdmap.ParseTerminate(s.Payload()); ok {
			add("Terminate Control", "0x%08x", h.Raw)
			add("Error", "%v", h.Code)
			if len(h.DDPHeader) > 0 {
				add("Terminated DDP Segment Length", "%d", h.SegmentLength)
				add("Terminated DDP Header", "%x", h.DDPHeader)
			}
			if len(h.ReadRequest) > 0 {
				add("Terminated RDMA Header", "%x", h.ReadRequest)
			}
		}
	case rdmap.Immediate, rdmap.ImmediateSE:
		if v, ok := rdmap.ParseImmediate(s.Payload()); ok {
			add("Immediate Data", "0x%016x", v)
		}
	case rdmap.AtomicRequest:
		if h, ok := rdmap.ParseAtomicRequest(s.Payload()); ok {
			add("AOpcode", "%d", h.Op)
			add("Request Identifier", "0x%x", h.RequestID)
			add("Remote STag", "0x%08x", h.STag)
			add("Remote TO", "0x%x", h.TO)
			add("Add or Swap Data", "0x%016x", h.Data)
			add("Add or Swap Mask", "0x%016x", h.Mask)
			add("Compare Data", "0x%016x", h.Compare)
			add("Compare Mask", "0x%016x", h.CompareMask)
		}
	case rdmap.AtomicResponse:
		if h, ok := rdmap.ParseAtomicResponse(s.Payload()); ok {
			add("Original Request Identifier", "0x%x", h.RequestID)
			add("Original Remote Data Value", "0x%016x", h.Value)
		}
	default:
	}
	return list
}
