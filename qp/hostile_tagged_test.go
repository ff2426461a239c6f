package qp

import (
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// badWrite is an RDMA Write of n octets to where at says.
func badWrite(name string, n int, at func(*rig) (wr.STag, uint64), f streamFault, code uint16, e wr.EventID) attack {
	return attack{
		name: "Write " + name,
		bad: func(r *rig) []byte {
			s, to := at(r)
			return rawpeer.Write(uint32(s), to, filled(n)).Octets()
		},
		fault: f, code: code, echo: echoDDP, event: e,
	}
}

const top = ^uint64(0)

var taggedAttacks = []attack{
	badWrite("to no STag", 1, func(r *rig) (wr.STag, uint64) { return r.gone, 0x10000 }, faultTagSTag, 0x1100, wr.EventProtSTag),
	badWrite("to STag zero", 1, func(*rig) (wr.STag, uint64) { return 0, 0 }, faultTagSTag, 0x1100, wr.EventProtSTag),
	badWrite("with a wrong key", 1, func(r *rig) (wr.STag, uint64) { return r.full.stag ^ 1, r.full.at(0) }, faultTagSTag, 0x1100, wr.EventProtSTag),
	badWrite("one octet below", 1, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.base - 1 }, faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("from below into it", 2, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.base - 1 }, faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("one octet beyond", 2, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.at(slabSize - 1) }, faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("right behind", 1, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.at(slabSize) }, faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("larger than the region", slabSize+1, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.at(0) }, faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("to the last TO", 1, func(r *rig) (wr.STag, uint64) { return r.full.stag, top }, faultTagBounds, 0x1101, wr.EventProtBounds),
	badWrite("that wraps", 2, func(r *rig) (wr.STag, uint64) { return r.full.stag, top }, faultTagWrap, 0x1103, wr.EventProtWrap),
	badWrite("that wraps into the region", 3000, func(r *rig) (wr.STag, uint64) { return r.full.stag, top - 100 }, faultTagWrap, 0x1103, wr.EventProtWrap),
	badWrite("without remote write right", 1, func(r *rig) (wr.STag, uint64) { return r.readable.stag, r.readable.at(0) }, faultTagAccess, 0x1100, wr.EventProtAccess),
	badWrite("to a local region", 1, func(r *rig) (wr.STag, uint64) { return r.private.stag, r.private.at(0) }, faultTagAccess, 0x1100, wr.EventProtAccess),
	badWrite("to another PD", 1, func(r *rig) (wr.STag, uint64) { return r.foreign.stag, r.foreign.at(0) }, faultTagPD, 0x1102, wr.EventProtPD),
	badWrite("to another QP's region", 1, func(r *rig) (wr.STag, uint64) { return r.scoped.stag, r.scoped.at(0) }, faultTagPD, 0x1102, wr.EventProtPD),
	{
		name: "Write where none is allowed", set: func(c *setup) { c.noWrite = true },
		bad:   func(r *rig) []byte { return rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(1)).Octets() },
		fault: faultWriteNotEnabled, code: 0x1100, echo: echoDDP, event: wr.EventWriteNotEnabled,
	},
	{
		name: "second segment of a Write out of bounds",
		lead: func(r *rig) [][]byte {
			s := rawpeer.Write(uint32(r.full.stag), r.full.at(slabSize-10), filled(10))
			s.More = true
			return [][]byte{s.Octets()}
		},
		bad: func(r *rig) []byte {
			return rawpeer.Write(uint32(r.full.stag), r.full.at(slabSize), filled(1)).Octets()
		},
		fault: faultTagBounds, code: 0x1101, echo: echoDDP, event: wr.EventProtBounds,
		after: func(r *rig) { r.full.expect(slabSize-10, filled(10)) },
	},
	{
		name: "another STag within a Write", lead: openWrite,
		bad: func(r *rig) []byte {
			return rawpeer.Write(uint32(r.writable.stag), r.writable.at(4), filled(1)).Octets()
		},
		fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode, after: openWritten,
	},
	{
		name: "Read Response within a Write", lead: openWrite,
		bad: func(r *rig) []byte {
			return rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO), filled(readSize)).Octets()
		},
		fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode, after: openWritten,
	},
	{
		name: "revoked within a Write",
		lead: func(r *rig) [][]byte {
			s := rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), filled(4))
			s.More = true
			r.writable.expect(0, filled(4))
			return [][]byte{s.Octets(), sendInvalidate(1, uint32(r.writable.stag), nil).Octets()}
		},
		bad: func(r *rig) []byte {
			return rawpeer.Write(uint32(r.writable.stag), r.writable.at(4), filled(4)).Octets()
		},
		fault: faultTagSTag, code: 0x1100, echo: echoDDP, event: wr.EventProtSTag,
		recvs: []comp{{1, wr.StatusSuccess, 0}, {2, wr.StatusFlushed, 0}},
	},
}

// openWrite is an RDMA Write that has not ended.
func openWrite(r *rig) [][]byte {
	s := rawpeer.Write(uint32(r.full.stag), r.full.at(2000), filled(4))
	s.More = true
	return [][]byte{s.Octets()}
}

func openWritten(r *rig) { r.full.expect(2000, filled(4)) }

// badRead is an RDMA Read Request of n octets from where at says.
func badRead(name string, n uint32, at func(*rig) (wr.STag, uint64), f streamFault, code uint16, e wr.EventID) attack {
	return attack{
		name: "Read " + name,
		bad: func(r *rig) []byte {
			s, to := at(r)
			return readRequest(1, n, s, to).Octets()
		},
		fault: f, code: code, echo: echoRead, event: e,
	}
}

func readRequest(msn, n uint32, s wr.STag, to uint64) rawpeer.Segment {
	return rawpeer.ReadRequest(msn, rdmap.ReadRequestHeader{
		SinkSTag: 0x5151, SinkTO: 0x6262, Size: n, SourceSTag: uint32(s), SourceTO: to,
	})
}

func goodRead(msn uint32) func(r *rig) []byte {
	return func(r *rig) []byte { return readRequest(msn, 4, r.full.stag, r.full.at(0)).Octets() }
}

var readAttacks = []attack{
	badRead("of no STag", 1, func(r *rig) (wr.STag, uint64) { return r.gone, 0 }, faultReadSTag, 0x0100, wr.EventIRRQSTag),
	badRead("of STag zero", 1, func(*rig) (wr.STag, uint64) { return 0, 0 }, faultReadSTag, 0x0100, wr.EventIRRQSTag),
	badRead("with a wrong key", 1, func(r *rig) (wr.STag, uint64) { return r.full.stag ^ 1, r.full.at(0) }, faultReadSTag, 0x0100, wr.EventIRRQSTag),
	badRead("one octet below", 1, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.base - 1 }, faultReadBounds, 0x0101, wr.EventIRRQBounds),
	badRead("one octet beyond", 2, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.at(slabSize - 1) }, faultReadBounds, 0x0101, wr.EventIRRQBounds),
	badRead("of 4 GiB", 1<<32-1, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.at(0) }, faultReadBounds, 0x0101, wr.EventIRRQBounds),
	badRead("that wraps", 2, func(r *rig) (wr.STag, uint64) { return r.full.stag, top }, faultReadWrap, 0x0104, wr.EventIRRQWrap),
	badRead("without remote read right", 1, func(r *rig) (wr.STag, uint64) { return r.writable.stag, r.writable.at(0) }, faultReadAccess, 0x0102, wr.EventIRRQAccess),
	badRead("of a local region", 1, func(r *rig) (wr.STag, uint64) { return r.private.stag, r.private.at(0) }, faultReadAccess, 0x0102, wr.EventIRRQAccess),
	badRead("of another PD", 1, func(r *rig) (wr.STag, uint64) { return r.foreign.stag, r.foreign.at(0) }, faultReadPD, 0x0103, wr.EventIRRQPD),
	badRead("of another QP's region", 1, func(r *rig) (wr.STag, uint64) { return r.scoped.stag, r.scoped.at(0) }, faultReadPD, 0x0103, wr.EventIRRQPD),
	{
		name: "Read where none is allowed", set: func(c *setup) { c.noRead = true }, bad: goodRead(1),
		fault: faultReadNotEnabled, code: 0x1201, echo: echoDDP, event: wr.EventReadNotEnabled,
	},
	{
		name: "Read with IRD 0", set: func(c *setup) { c.ird = -1 }, bad: goodRead(1),
		fault: faultReadTooMany, code: 0x1202, echo: echoDDP, event: wr.EventIRRQTooMany,
	},
	{
		name: "Read with MSN 2 first", bad: goodRead(2),
		fault: faultReadMSNGap, code: 0x1203, echo: echoDDP, event: wr.EventIRRQMSNGap,
	},
	{
		name: "Read with the last MSN of the IRRQ", bad: goodRead(4),
		fault: faultReadMSNGap, code: 0x1203, echo: echoDDP, event: wr.EventIRRQMSNGap,
	},
	{
		name: "Read with the MSN behind it", bad: goodRead(5),
		fault: faultReadMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventIRRQMSNRange,
	},
	{
		name: "Read with MSN 0 first", bad: goodRead(0),
		fault: faultReadMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventIRRQMSNRange,
	},
	{
		name: "Read with an MSN half way round", bad: goodRead(1 << 31),
		fault: faultReadMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventIRRQMSNRange,
	},
	{
		name: "Read Request without L",
		bad: func(r *rig) []byte {
			s := readRequest(1, 4, r.full.stag, r.full.at(0))
			s.More = true
			return s.Octets()
		},
		fault: faultNoLBit, code: 0x0207, echo: echoDDP, event: wr.EventNoLBit,
	},
	{
		name: "Read Request with an MO",
		bad: func(r *rig) []byte {
			s := readRequest(1, 4, r.full.stag, r.full.at(0))
			s.MO = 28
			return s.Octets()
		},
		fault: faultReadRequestMO, code: 0x1204, echo: echoDDP, event: wr.EventInvalidReadRequest,
	},
	{
		name: "Read Request of 29 octets", bad: func(r *rig) []byte { return append(goodRead(1)(r), 0) },
		fault: faultReadRequest, code: 0x1205, echo: echoDDP, event: wr.EventInvalidReadRequest,
	},
	{
		name: "Read Request of 27 octets", bad: func(r *rig) []byte { return goodRead(1)(r)[:18+27] },
		fault: faultReadRequestShort, code: 0x1000, event: wr.EventInvalidReadRequest,
	},
	{
		name: "empty Read Request", bad: func(r *rig) []byte { return goodRead(1)(r)[:18] },
		fault: faultReadRequestShort, code: 0x1000, event: wr.EventInvalidReadRequest,
	},
}

// badResponse is an answer, of n octets, to the Read that is outstanding.
func badResponse(name string, n int, at func(*rig) (wr.STag, uint64), f streamFault, code uint16, e wr.EventID) attack {
	return attack{
		name: "Read Response " + name,
		bad: func(r *rig) []byte {
			s, to := at(r)
			return rawpeer.ReadResponse(uint32(s), to, filled(n)).Octets()
		},
		fault: f, code: code, echo: echoDDP, event: e,
	}
}

func sink(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.at(readTO) }

// halfResponse is the first part of the answer, without L.
func halfResponse(n int) func(*rig) [][]byte {
	return func(r *rig) [][]byte {
		s := rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO), filled(n))
		s.More = true
		return [][]byte{s.Octets()}
	}
}

var responseAttacks = []attack{
	{
		name: "Read Response to nothing", idle: true,
		bad: func(r *rig) []byte {
			return rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(0), filled(4)).Octets()
		},
		fault: faultUnexpectedResponse, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
	},
	{
		name: "empty Read Response to nothing", idle: true, bad: seg(rawpeer.ReadResponse(0, 0, nil)),
		fault: faultUnexpectedResponse, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
	},
	badResponse("to another STag", readSize, func(r *rig) (wr.STag, uint64) { return r.writable.stag, r.writable.at(0) }, faultTagSTag, 0x1100, wr.EventProtSTag),
	badResponse("to another TO", readSize, func(r *rig) (wr.STag, uint64) { return r.full.stag, r.full.at(readTO + 1) }, faultTagBounds, 0x1101, wr.EventProtBounds),
	badResponse("too long", readSize+1, sink, faultTagBounds, 0x1101, wr.EventProtBounds),
	badResponse("empty", 0, sink, faultTagBounds, 0x1101, wr.EventProtBounds),
	func() attack {
		a := badResponse("too short", readSize-1, sink, faultTagBounds, 0x1101, wr.EventProtBounds)
		a.after = func(r *rig) { r.full.expect(readTO, filled(readSize-1)) }
		return a
	}(),
	{
		name: "Read Response that goes on behind its last octet", lead: halfResponse(readSize),
		bad: func(r *rig) []byte {
			return rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO+readSize), filled(1)).Octets()
		},
		fault: faultTagBounds, code: 0x1101, echo: echoDDP, event: wr.EventProtBounds,
		after: func(r *rig) { r.full.expect(readTO, filled(readSize)) },
	},
	{
		name: "Read Response with a gap", lead: halfResponse(8),
		bad: func(r *rig) []byte {
			return rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO+9), filled(readSize-9)).Octets()
		},
		fault: faultTagBounds, code: 0x1101, echo: echoDDP, event: wr.EventProtBounds,
		after: func(r *rig) { r.full.expect(readTO, filled(8)) },
	},
	{
		name: "Read Response too long in its second segment", lead: halfResponse(8),
		bad: func(r *rig) []byte {
			return rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO+8), filled(readSize-7)).Octets()
		},
		fault: faultTagBounds, code: 0x1101, echo: echoDDP, event: wr.EventProtBounds,
		after: func(r *rig) { r.full.expect(readTO, filled(8)) },
	},
	{
		name: "Write within a Read Response", lead: halfResponse(8),
		bad: func(r *rig) []byte {
			return rawpeer.Write(uint32(r.full.stag), r.full.at(readTO+8), filled(1)).Octets()
		},
		fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
		after: func(r *rig) { r.full.expect(readTO, filled(8)) },
	},
	{
		name: "Read Response where no Write is allowed", set: func(c *setup) { c.noWrite = true },
		bad: func(r *rig) []byte {
			return rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO), filled(readSize)).Octets()
		},
		fault: faultWriteNotEnabled, code: 0x1100, echo: echoDDP, event: wr.EventWriteNotEnabled,
	},
}
