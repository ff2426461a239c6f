//go:build linux && !race

package qp

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netpoll"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// TestTransitAllocatesNothing: a segment that is received where it belongs may lie in
// more pieces than one system call reads into.
func TestTransitAllocatesNothing(t *testing.T) {
	const pages, runs, warm = 3 * (netpoll.MaxReadPieces - 1), 100, 20
	r := newRig(t, setup{config: direct})
	p, err := r.tab.AllocatePages(pages, stag.MinPage)
	require.NoError(t, err)
	list := p.Addresses()
	slices.Reverse(list) // no two in a row
	reg, err := r.tab.Register(stag.RegionConfig{
		PD: ownPD, Access: wr.LocalWrite | wr.RemoteWrite, Addressing: wr.ZeroBased,
		Buffers: wr.PhysicalBuffers{Size: stag.MinPage, Addresses: list, Length: 15 * stag.MinPage},
	})
	require.NoError(t, err)
	payload := filled(15 * stag.MinPage)
	fpdu := r.peer.Frame(rawpeer.Write(uint32(reg.STag), 0, payload).Octets())
	var c [1]wr.Completion
	poll := func(until func(in *intake) bool) {
		for !r.s.rx.locked(func(rx *receiver) bool { return until(&rx.in) }) {
			r.rcq.Poll(c[:])
			runtime.Gosched()
		}
	}
	begun := func(in *intake) bool { return in.Diverted() > 0 }
	done := func(in *intake) bool { return in.Buffered() == 0 }
	one := func() {
		_, _ = r.peer.Conn.Write(fpdu[:30])
		poll(begun)
		_, _ = r.peer.Conn.Write(fpdu[30:])
		poll(done)
	}
	for range warm {
		one()
	}
	assert.Zero(t, testing.AllocsPerRun(runs, one))
	for i := range 15 {
		page := p.Bytes()[(pages-1-i)*stag.MinPage:][:stag.MinPage]
		require.Equal(t, payload[i*stag.MinPage:][:stag.MinPage], page)
	}
	require.Equal(t, wr.StateRTS, r.q.State())
}
