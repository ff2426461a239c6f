package endpoint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// What the region or the VI does not allow is refused; the stag package's tests have
// all the ways (VA-6.3.2-M1, VI Architecture 3.2.2).
func TestRightsOfInboundRDMA(t *testing.T) {
	for _, c := range []struct {
		name        string
		access      wr.Access
		pd          wr.PDID
		vi          bool
		write, read bool
	}{
		{"all", allRights, testPD, true, true, true},
		{"region without write", wr.LocalRead | wr.LocalWrite | wr.RemoteRead, testPD, true, false, true},
		{"region without read", wr.LocalRead | wr.LocalWrite | wr.RemoteWrite, testPD, true, true, false},
		{"other tag", allRights, testPD + 1, true, false, false},
		{"VI without either", allRights, testPD, false, false, false},
	} {
		for _, write := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				x, y := pipe(t)
				table, rec := stag.NewTable(stag.Config{}), newRecorder()
				info, err := table.Register(stag.RegionConfig{PD: c.pd, Memory: make([]byte, 10), Access: c.access, VA: 0x1000})
				require.NoError(t, err)
				e, err := endpoint.New(x, endpoint.Config{Level: segment.ReliableReception, MTU: 100, InboundReads: 1,
					AllowWrite: c.vi, AllowRead: c.vi, STags: table, User: stag.User{PD: testPD}, Handler: rec})
				require.NoError(t, err)
				t.Cleanup(e.Close)
				h := &hand{t: t, conn: y, rx: make(chan segment.Segment, 10), end: make(chan error, 1)}
				h.hear()
				e.Start()
				s := &side{Endpoint: e, recorder: rec, t: t, table: table}
				rdma := &segment.RDMA{Address: 0x1000, Handle: uint32(info.STag), Length: 10}
				if write {
					h.put(segment.Header{Type: segment.RDMAWrite, Flags: eom, Number: 1}, rdma, make([]byte, 10))
					g := h.get()
					assert.Equal(t, segment.NOP, g.Type)
					assert.Equal(t, uint32(1), g.Ack)
					if c.write {
						assert.Zero(t, g.Code)
						return
					}
					assert.Equal(t, segment.RDMAProtection, g.Code)
					assert.Equal(t, endpoint.EventWriteProtection, s.expect("event").event)
					s.ended(endpoint.CauseInbound)
					return
				}
				h.put(segment.Header{Type: segment.RDMAReadRequest, Flags: eom, Number: 1}, rdma, nil)
				g := h.get()
				assert.Equal(t, segment.RDMAReadResponse, g.Type)
				if c.read {
					assert.False(t, g.Failed())
					assert.Equal(t, 10, g.Size())
					return
				}
				assert.Equal(t, eom|tre, g.Flags)
				assert.Zero(t, g.Size())
				g = h.get()
				assert.Equal(t, segment.RDMAProtection, g.Code)
				assert.Equal(t, uint32(1), g.Ack)
				assert.Equal(t, endpoint.EventReadProtection, s.expect("event").event)
				s.ended(endpoint.CauseInbound)
				h.closed()
			})
		}
	}
}

// Where the next segment begins is not known: that ends an Unreliable connection too.
func TestLostFraming(t *testing.T) {
	for _, l := range levels {
		for _, b := range [][]byte{{2, 4, 0, 24}, {1, 4, 0, 23}} {
			s, h := byHand(t, transports[1], endpoint.Config{Level: l})
			s.recv()
			s.Start()
			h.write(append(b, make([]byte, 100)...))
			s.ended(endpoint.CauseMalformed)
			s.received(endpoint.OpReceive, endpoint.FlawFlushed, 0)
			if l == segment.ReliableReception {
				g := h.get()
				assert.Equal(t, segment.TransportError, g.Code)
				assert.Equal(t, uint32(201), g.Ack)
			}
			h.closed()
			s.drained()
		}
	}
}
