package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// untilBuffered waits until n octets of an FPDU have been received, or the session
// has ended for what they are.
func (r *rig) untilBuffered(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		if r.s.stopping.Load() || !r.s.rx.mu.TryLock() {
			return r.s.stopping.Load()
		}
		defer r.s.rx.mu.Unlock()
		return r.s.rx.in.Buffered() >= n
	}, patience, 100*time.Microsecond)
}

// inTransit reports whether a segment is being received where it belongs.
func (r *rig) inTransit() bool {
	r.s.rx.mu.Lock()
	defer r.s.rx.mu.Unlock()
	return r.s.rx.in.Diverted() > 0
}

// inParts sends an FPDU in pieces that end at the offsets, each when the one before
// has been received.
func (r *rig) inParts(ulpdu []byte, ends ...int) {
	r.t.Helper()
	fpdu := r.peer.Frame(ulpdu)
	from := 0
	for _, end := range append(ends, len(fpdu)) {
		require.NoError(r.t, r.peer.Raw(fpdu[from:end]))
		if from = end; end < len(fpdu) {
			r.untilBuffered(end)
		}
	}
}

func direct(c *Config) { c.Tuning.Direct = 1 }

// TestDirectPlacement: segments that come in parts end where they belong, whichever
// way they took, and so does what comes behind them.
func TestDirectPlacement(t *testing.T) {
	r := newRig(t, setup{config: direct})
	r.postRecv(
		wr.Recv{ID: 1, SGL: []wr.SGE{r.full.sge(0, 700), {}, r.full.sge(900, 100)}},
		wr.Recv{ID: 2, SGL: r.full.sgl(1900, 8)},
	)
	fpdu := 2 + 14 + 1001 + 3 + 4

	w := rawpeer.Write(uint32(r.writable.stag), r.writable.at(100), filled(1001))
	w.More = true
	r.writable.expect(100, filled(1001))
	r.inParts(w.Octets(), 2, 16, 17, 500, 2+14+1001, fpdu-1)
	w = rawpeer.Write(uint32(r.writable.stag), r.writable.at(1101), filled(999))
	r.writable.expect(1101, filled(999))
	r.inParts(w.Octets(), 300)

	// Of a Send the second segment does not fit one element, the others do.
	payload := filled(799)
	for _, part := range [][2]int{{0, 600}, {600, 760}, {760, 799}} {
		s := rawpeer.Send(1, payload[part[0]:part[1]])
		s.MO, s.More = uint32(part[0]), part[1] < len(payload)
		r.inParts(s.Octets(), 20, 25)
	}
	r.full.expect(0, payload[:700])
	r.full.expect(900, payload[700:])
	r.send(rawpeer.Send(2, filled(8)).Octets())
	r.full.expect(1900, filled(8))
	assert.Equal(t, []comp{{1, wr.StatusSuccess, 799}, {2, wr.StatusSuccess, 8}}, r.wait(r.rcq, 2))

	r.postSend(wr.Request{ID: 3, Op: wr.OpRead, Local: r.full.sge(2000, 300), Remote: wr.Remote{STag: 5, TO: 6}})
	r.next()
	a := rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(2000), filled(300)[:200])
	a.More = true
	r.inParts(a.Octets(), 16, 100)
	r.inParts(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(2200), filled(300)[200:]).Octets(), 30)
	r.full.expect(2000, filled(300))
	assert.Equal(t, []comp{{3, wr.StatusSuccess, 0}}, r.wait(r.scq, 1))
	r.requireMemory()
}

// TestDirectSegments says which segments go straight to their memory.
func TestDirectSegments(t *testing.T) {
	to := func(r *rig, n int) rawpeer.Segment {
		return rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(n))
	}
	tests := []struct {
		name string
		set  setup
		recv []wr.SGE // of full, offsets as TO
		seg  func(*rig) rawpeer.Segment
		part int
		want bool
	}{
		{name: "Write", part: 30, want: true},
		{name: "nothing but its header", part: 16, want: true},
		{name: "a part of its header", part: 15},
		{name: "too little left", part: 30, set: setup{config: func(c *Config) { c.Tuning.Direct = 87 }}},
		{name: "just enough left", part: 30, set: setup{config: func(c *Config) { c.Tuning.Direct = 86 }}, want: true},
		{name: "turned off", part: 30, set: setup{config: func(c *Config) { c.Tuning.Direct = -1 }}},
		{name: "as by default", part: 30, set: setup{config: func(c *Config) { c.Tuning.Direct = 8 << 10 }}},
		{name: "CRC", part: 30, set: setup{crc: true}},
		{name: "markers", part: 30, set: setup{markers: true}},
		{name: "Send", part: 30, seg: func(*rig) rawpeer.Segment { return rawpeer.Send(1, filled(100)) }, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.set.config == nil {
				tt.set.config = direct
			}
			if tt.seg == nil {
				tt.seg = func(r *rig) rawpeer.Segment { return to(r, 100) }
			}
			r := newRig(t, tt.set)
			r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 100)})
			fpdu := r.peer.Frame(tt.seg(r).Octets())
			require.NoError(t, r.peer.Raw(fpdu[:tt.part]))
			r.untilBuffered(tt.part)
			assert.Equal(t, tt.want, r.inTransit())
			require.NoError(t, r.peer.Raw(fpdu[tt.part:]))
			r.send(rawpeer.Write(uint32(r.full.stag), r.full.at(200), filled(1)).Octets())
			r.full.expect(0, filled(100))
			r.full.expect(200, filled(1))
			require.NoError(t, r.peer.CloseWrite())
			r.over()
			r.requireMemory()
		})
	}
}

// TestRevokedInTransit: memory that goes while a segment is received into it is not
// touched any more, and the peer hears why.
func TestRevokedInTransit(t *testing.T) {
	write := func(r *rig) []byte {
		r.postRecv(wr.Recv{ID: 1})
		return rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), filled(100)).Octets()
	}
	response := func(r *rig) []byte {
		r.postSend(wr.Request{ID: 1, Op: wr.OpRead, Local: r.writable.sge(0, 100), Remote: wr.Remote{STag: 5}})
		r.next()
		return rawpeer.ReadResponse(uint32(r.writable.stag), r.writable.at(0), filled(100)).Octets()
	}
	send := func(r *rig) []byte {
		r.postRecv(wr.Recv{ID: 1, SGL: r.writable.sgl(0, 100)}, wr.Recv{ID: 2})
		return rawpeer.Send(1, filled(100)).Octets()
	}
	for name, c := range map[string]struct {
		begin        func(*rig) []byte
		placed       int    // of the part that is there first
		code         uint16 // of the Terminate Message, with the segment; 0 for one without
		events       []wr.EventID
		sends, recvs []comp
	}{
		"Write":         {begin: write, placed: 14, code: 0x1100, events: []wr.EventID{wr.EventProtSTag}, recvs: flushed(1)},
		"Read Response": {begin: response, placed: 14, code: 0x1100, sends: []comp{{1, wr.StatusInvalidSTag, 0}}},
		"Send":          {begin: send, placed: 10, recvs: append([]comp{{1, faults[faultRQSTag].Status, 0}}, flushed(2)...)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{config: direct})
			bad := c.begin(r)
			fpdu := r.peer.Frame(bad)
			require.NoError(t, r.peer.Raw(fpdu[:30]))
			r.untilBuffered(30)
			require.True(t, r.inTransit())
			require.NoError(t, r.tab.Deallocate(r.writable.stag))
			r.writable.expect(0, filled(c.placed))
			require.NoError(t, r.peer.Raw(fpdu[30:]))
			want := terminate(0, echoNone, nil)
			if c.code != 0 {
				want = terminate(c.code, echoDDP, bad)
			}
			require.Equal(t, want, r.next())
			require.NoError(t, r.peer.Close())
			r.over()
			r.requireEvents(c.events...)
			assert.Equal(t, c.sends, r.all(r.scq))
			assert.Equal(t, c.recvs, r.all(r.rcq))
			r.requireMemory()
		})
	}
}

// TestLostInTransit: a stream that ends within a segment is lost, as within any
// FPDU.
func TestLostInTransit(t *testing.T) {
	r := newRig(t, setup{config: direct})
	fpdu := r.peer.Frame(rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), filled(100)).Octets())
	require.NoError(t, r.peer.Raw(fpdu[:60]))
	r.untilBuffered(60)
	r.writable.expect(0, filled(44))
	require.NoError(t, r.peer.CloseWrite())
	r.over()
	assert.Equal(t, faultLLPLost, r.s.cause.fault)
	r.requireEvents(wr.EventLLPLost)
	r.requireMemory()
}

// TestHostileInParts: what is wrong with a segment is found whichever way it takes.
func TestHostileInParts(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			a.run(t, setup{split: true})
		})
	}
}
