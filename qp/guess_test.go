package qp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// TestOneGuessForAStream: a Send with Invalidate tells a peer whether an STag index is in
// use, in any domain, by the code of the Terminate Message (RV-7.8-M16, RV-7.8-M17), and a
// Write or Read whether an STag is. That costs it the stream: a second guess, though it is
// there already, is not looked at, even if it is right. So it has one for each connection.
func TestOneGuessForAStream(t *testing.T) {
	invalidate := func(msn uint32, s wr.STag) []byte { return sendInvalidate(msn, uint32(s), nil).Octets() }
	write := func(s wr.STag) []byte { return rawpeer.Write(uint32(s), 0, filled(1)).Octets() }
	read := func(msn uint32, s *slab, key wr.STag) []byte {
		h := rdmap.ReadRequestHeader{SinkSTag: 1, Size: 1, SourceSTag: uint32(s.stag ^ key), SourceTO: s.base}
		return rawpeer.ReadRequest(msn, h).Octets()
	}
	for _, c := range []struct {
		name  string
		guess func(r *rig) []byte
		code  uint16
		read  bool
	}{
		{"index not in use", func(r *rig) []byte { return invalidate(1, r.gone) }, 0x0209, false},
		{"index in use, another key", func(r *rig) []byte { return invalidate(1, r.full.stag^1) }, 0x0109, false},
		{"another domain", func(r *rig) []byte { return invalidate(1, r.foreign.stag) }, 0x0109, false},
		{"another domain and key", func(r *rig) []byte { return invalidate(1, r.foreign.stag^1) }, 0x0109, false},
		{"another queue pair", func(r *rig) []byte { return invalidate(1, r.scoped.stag) }, 0x0109, false},
		{"not to be invalidated", func(r *rig) []byte { return invalidate(1, r.pinned.stag) }, 0x0109, false},
		{"Write to nothing", func(r *rig) []byte { return write(r.gone) }, 0x1100, false},
		{"Write to another domain", func(r *rig) []byte { return write(r.foreign.stag) }, 0x1102, false},
		{"Read of nothing", func(r *rig) []byte { return read(1, r.full, 1) }, 0x0100, true},
		{"Read of another domain", func(r *rig) []byte { return read(1, r.foreign, 0) }, 0x0103, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, setup{crc: true, role: mpa.Responder})
			r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2}, wr.Recv{ID: 3})
			all := r.peer.Frame(c.guess(r))
			if c.read { // what is wrong with one is found in answering: the others wait behind it
				all = append(all, r.peer.Frame(read(2, r.full, 0))...)
			} else {
				all = append(all, r.peer.Frame(invalidate(1, r.full.stag))...)
				all = append(all, r.peer.Frame(invalidate(2, r.full.stag))...)
			}
			require.NoError(t, r.peer.Raw(all))

			got := r.next()
			require.GreaterOrEqual(t, len(got), 20)
			require.Equal(t, byte(0x47), got[1], "a Terminate Message")
			assert.Equal(t, c.code, binary.BigEndian.Uint16(got[18:]))
			_, more, err := r.peer.End()
			require.NoError(t, err)
			assert.Zero(t, more, "answers behind it")
			_ = r.peer.Close()
			r.over()
			assert.Equal(t, wr.StateError, r.q.State())
			for _, s := range []*slab{r.full, r.foreign, r.scoped, r.pinned} {
				i, err := r.tab.QueryRegion(s.stag)
				require.NoError(t, err)
				assert.True(t, i.Valid, "%v", s.stag)
			}
			for _, done := range r.wait(r.rcq, 3) {
				assert.NotEqual(t, wr.StatusSuccess, done.Status)
			}
		})
	}
}
