package qp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

func readIntoLocal(c *Config) { c.ReadIntoLocal = true }

// TestReadIntoLocal: a Read into memory with local rights alone, by every way that its
// answer can take, also where the peer may not write at all.
func TestReadIntoLocal(t *testing.T) {
	for _, c := range []setup{{}, {crc: true}, {markers: true}, {noWrite: true}, {noWrite: true, split: true}} {
		c.config = readIntoLocal
		r := newRig(t, c)
		sink := r.private.sge(readTO, 1000)
		r.postSend(wr.Request{ID: 3, Op: wr.OpRead, Local: sink, Remote: wr.Remote{STag: 5, TO: 6}})
		r.next()
		part := rawpeer.ReadResponse(uint32(sink.STag), sink.TO, filled(1000)[:400])
		part.More = true
		fpdu := r.peer.Frame(part.Octets())
		require.NoError(t, r.peer.Raw(fpdu[:100]))
		r.untilBuffered(100)
		if paths == "" { // else all that can be placed directly is, or nothing
			assert.Equal(t, c.split, r.inTransit())
		}
		require.NoError(t, r.peer.Raw(fpdu[100:]))
		r.send(rawpeer.ReadResponse(uint32(sink.STag), sink.TO+400, filled(1000)[400:]).Octets())
		r.private.expect(readTO, filled(1000))
		assert.Equal(t, []comp{{3, wr.StatusSuccess, 0}}, r.wait(r.scq, 1))
		r.requireMemory()
	}
}

// TestReadIntoLocalNeedsLocalWrite: a sink that the program itself may not write to, or
// that is a window, is found before the request is sent.
func TestReadIntoLocalNeedsLocalWrite(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sink   func(*rig) wr.SGE
		status wr.Status
	}{
		{"read only", slabSink(func(r *rig) *slab { return r.readable }), wr.StatusAccess},
		{"another PD", slabSink(func(r *rig) *slab { return r.foreign }), wr.StatusInvalidPD},
		{"a window", windowSink(wr.RemoteWrite), wr.StatusInvalidSTag},
	} {
		r := newRig(t, setup{config: readIntoLocal})
		r.postSend(wr.Request{ID: 3, Op: wr.OpRead, Local: tt.sink(r), Remote: wr.Remote{STag: 5, TO: 6}})
		assert.Equal(t, []comp{{3, tt.status, 0}}, r.wait(r.scq, 1), tt.name)
		_, _, err := r.peer.End()
		require.NoError(t, err)
		require.NoError(t, r.peer.Close())
		r.over()
		r.requireMemory()
	}
}

// localSinkAttacks: what Local Write is enough for is the answer to the Read, and
// nothing else that the peer sends to the STag it was told.
func localSinkAttacks() []attack {
	private := slabSink(func(r *rig) *slab { return r.private })
	half := func(r *rig) [][]byte {
		s := rawpeer.ReadResponse(uint32(r.aim.STag), r.aim.TO, filled(8))
		s.More = true
		return [][]byte{s.Octets()}
	}
	halfPlaced := func(r *rig) { r.private.expect(readTO, filled(8)) }
	to := func(make func(uint32, uint64, []byte) rawpeer.Segment, at, n int) func(*rig) []byte {
		return func(r *rig) []byte { return make(uint32(r.aim.STag), r.aim.TO+uint64(at), filled(n)).Octets() }
	}
	all := []attack{
		{
			name: "Write to the sink of a Read", bad: to(rawpeer.Write, 0, readSize),
			fault: faultTagAccess, code: 0x1100, event: wr.EventProtAccess,
		},
		{
			name: "Write to the sink of a Read within the answer", lead: half, bad: to(rawpeer.Write, 8, readSize-8), after: halfPlaced,
			fault: faultOpcode, code: 0x0206, event: wr.EventUnexpectedOpcode,
		},
		{
			name: "Write to the sink of a Read behind some of it and another Write", lead: func(r *rig) [][]byte {
				return [][]byte{rawpeer.Write(uint32(r.full.stag), r.full.at(2000), filled(4)).Octets()}
			}, bad: to(rawpeer.Write, 8, 1), after: openWritten,
			fault: faultTagAccess, code: 0x1100, event: wr.EventProtAccess,
		},
		{
			name: "answer beside the sink", bad: to(rawpeer.ReadResponse, 1, readSize),
			fault: faultTagBounds, code: 0x1101, event: wr.EventProtBounds,
		},
		{
			name: "answer longer than the sink", bad: to(rawpeer.ReadResponse, 0, readSize+1),
			fault: faultTagBounds, code: 0x1101, event: wr.EventProtBounds,
		},
		{
			name: "sink deallocated meanwhile", sink: slabSink(func(r *rig) *slab {
				return r.newSlab(stag.RegionConfig{PD: ownPD, Access: wr.LocalWrite, Key: 11})
			}), lead: func(r *rig) [][]byte { require.NoError(r.t, r.tab.Deallocate(r.aim.STag)); return nil },
			bad: to(rawpeer.ReadResponse, 0, readSize), read: wr.StatusInvalidSTag,
			fault: faultSinkSTag, code: 0x1100,
		},
		{
			name: "Write where none is allowed", set: func(c *setup) { c.noWrite = true }, bad: to(rawpeer.Write, 0, readSize),
			fault: faultWriteNotEnabled, code: 0x1100, event: wr.EventWriteNotEnabled,
		},
	}
	for i := range all {
		a := &all[i]
		before := a.set
		a.name, a.echo = "Read into local memory, "+a.name, echoDDP
		a.set = func(c *setup) {
			c.config = readIntoLocal
			if before != nil {
				before(c)
			}
		}
		if a.sink == nil {
			a.sink = private
		}
	}
	return all
}
