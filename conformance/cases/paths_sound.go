package cases

import (
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// pathsSound is what is right, by each way: all of it is placed where it belongs, and no
// octet of a header, a pad or a CRC field is.
var pathsSound = []conformance.Case{
	apiCase("5.3/placed-by-each-way", func(t *conformance.T) { byEachWay(t, soundOnes) },
		"R5041-5.2-M6", "R5041-4.3-M14", "R5041-5.3-M3", "R5044-4.1-M2", "R5044-4.1-M3"),
}

// placed is the ULPDU of a sound message, and that what went before it was done.
func (v *trial) placed(i int, p *guardedRegion, off int) []byte {
	p.gets(off, payload(1, v.n))
	if i >= 0 {
		v.want[i].Status = verbs.StatusSuccess
	}
	return payload(1, v.n)
}

// sound is a fault that is none. No RDMA Read is posted, or the stream could not end well
// without its answer.
func sound(what string, plot func(*trial) []byte) pathFault {
	return pathFault{what: what, event: verbs.EventLLPCloseComplete, spoil: filledUp, arrange: func(v *trial) []byte {
		v.idle = true
		return plot(v)
	}}
}

// filledUp makes an FPDU whose pad is not of zeros, and, without CRCs, whose CRC field is
// not either: both are of no account (RFC 5044 4.1).
func filledUp(v *trial, u []byte) []byte {
	x := twist{pad: 0xEE}
	if !v.crc {
		x.crc = func(uint32) uint32 { return 0xA5A5A5A5 }
	}
	return v.out.twisted(u, x)
}

var soundOnes = []pathFault{
	sound("a Write", func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		return aWrite(p.tag(), p.at(0), v.placed(-1, p, 0))
	}),
	sound("the second segment of a Write", func(v *trial) []byte {
		p := v.guarded(2*v.n, allRights)
		v.begun(opWrite, p, 0, payload(2, v.n))
		return aWrite(p.tag(), p.at(v.n), v.placed(-1, p, v.n))
	}),
	sound("a Write to the queue pair's own region", func(v *trial) []byte {
		p := v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: allRights, QP: v.qp})
		return aWrite(p.tag(), p.at(0), v.placed(-1, p, 0))
	}),
	sound("a Write through a window", func(v *trial) []byte {
		p := v.guarded(v.n+2, allRights|verbs.BindWindow)
		return aWrite(v.window(v.qp, p, 1, v.n, remoteRights), p.at(1), v.placed(-1, p, 1))
	}),
	sound("a Send", func(v *trial) []byte {
		v.want[firstRecv].Bytes = uint32(v.n)
		v.placed(firstRecv, v.room(v.n)[0], 0)
		return part(lastUntagged, 1, 0, v.n)
	}),
	sound("a Send with room to spare", func(v *trial) []byte {
		v.want[firstRecv].Bytes = uint32(v.n)
		v.placed(firstRecv, v.room(v.n + 100)[0], 0)
		return part(lastUntagged, 1, 0, v.n)
	}),
	sound("a Send into three pieces", func(v *trial) []byte {
		v.want[firstRecv].Status, v.want[firstRecv].Bytes = verbs.StatusSuccess, uint32(v.n)
		list := v.room(v.n-3, 2, 7)
		data := payload(1, v.n)
		list[0].gets(0, data[:v.n-3])
		list[1].gets(0, data[v.n-3:v.n-1])
		list[2].gets(0, data[v.n-1:])
		return part(lastUntagged, 1, 0, v.n)
	}),
	sound("the second segment of a Send, over two pieces", func(v *trial) []byte {
		v.want[firstRecv].Status, v.want[firstRecv].Bytes = verbs.StatusSuccess, uint32(3+v.n)
		list := v.room(4, v.n)
		v.lead = [][]byte{untagged(moreUntagged, opSend, 0, 0, 1, 0, payload(2, 3))}
		data := payload(1, v.n)
		list[0].gets(0, append(payload(2, 3), data[0]))
		list[1].gets(0, data[1:])
		return part(lastUntagged, 1, 3, v.n)
	}),
	sound("a Send with Invalidate", func(v *trial) []byte {
		p := v.guarded(8, allRights)
		v.want[firstRecv].Bytes, v.want[firstRecv].Invalidated, v.want[firstRecv].HasInvalidated = uint32(v.n), p.STag(), true
		v.placed(firstRecv, v.room(v.n)[0], 0)
		return aSendInv(1, p.tag(), payload(1, v.n))
	}),
	{what: "a Read Response", event: verbs.EventLLPCloseComplete, spoil: filledUp, arrange: func(v *trial) []byte {
		v.placed(itsRead, v.sinkIn(0), 0)
		return v.response(0, v.n)
	}},
	{what: "the second segment of a Read Response", event: verbs.EventLLPCloseComplete, spoil: filledUp, arrange: func(v *trial) []byte {
		p := v.guarded(2*v.n, verbs.LocalWrite|verbs.RemoteWrite)
		v.sink = p.sge(0, 2*v.n)
		v.begun(opReadResponse, p, 0, payload(2, v.n))
		v.placed(itsRead, p, v.n)
		return v.response(v.n, v.n)
	}},
}
