package qp

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// crowdOfTricklers makes it look as if as many streams as may be had kept their receive
// buffers.
func crowdOfTricklers(t *testing.T) {
	detained.Add(mayDetain)
	t.Cleanup(func() { detained.Add(-mayDetain) })
}

// holdsBuffer reports whether the stream has a receive buffer while nothing is received.
func (r *rig) holdsBuffer() bool {
	return r.s.rx.locked(func(rx *receiver) bool { return rx.in.buf != nil })
}

// TestTricklerHoldsWhatItSent: beside many others a stream that stops within an FPDU holds no
// receive buffer, and nothing of the FPDU is lost.
func TestTricklerHoldsWhatItSent(t *testing.T) {
	crowdOfTricklers(t)
	for _, crc := range []bool{false, true} {
		t.Run(fmt.Sprintf("crc=%v", crc), func(t *testing.T) {
			r := newRig(t, setup{crc: crc})
			payload := filled(3000)
			r.writable.expect(0, payload)
			fpdu := r.peer.Frame(rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), payload).Octets())
			for from, end := 0, 0; end < len(fpdu); from = end {
				end = min(from+1+from, len(fpdu))
				require.NoError(t, r.peer.Raw(fpdu[from:end]))
				if end < len(fpdu) {
					r.untilBuffered(end)
					require.False(t, r.holdsBuffer(), "%d octets are buffered", end)
				}
			}
			r.postRecv(wr.Recv{ID: 1})
			r.send(rawpeer.Send(1, nil).Octets())
			assert.Equal(t, []comp{{1, wr.StatusSuccess, 0}}, r.wait(r.rcq, 1))
			r.requireMemory()
		})
	}
}

// TestPausedHoldsWhatCame: so does one that waits for a receive, and what it keeps is handled
// when there is one.
func TestPausedHoldsWhatCame(t *testing.T) {
	crowdOfTricklers(t)
	r := newRig(t, graceful(setup{}, nil))
	r.send(rawpeer.Send(1, filled(100)).Octets(), rawpeer.Send(2, filled(50)).Octets())
	r.paused()
	require.False(t, r.holdsBuffer())
	r.full.expect(0, filled(100))
	r.full.expect(200, filled(50))
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 100)}, wr.Recv{ID: 2, SGL: r.full.sgl(200, 50)})
	assert.Equal(t, []comp{{1, wr.StatusSuccess, 100}, {2, wr.StatusSuccess, 50}}, r.wait(r.rcq, 2))
	r.requireMemory()
}

// TestFewKeepBuffers: the first ones keep their buffers, which are counted while they do.
func TestFewKeepBuffers(t *testing.T) {
	var ins [mayDetain + 1]intake
	before := detained.Load()
	if before > 0 { // of other tests' streams
		require.Eventually(t, func() bool { before = detained.Load(); return before == 0 }, patience, time.Millisecond)
	}
	for i := range ins {
		ins[i].Deframer = mpa.NewDeframer(false, false)
		ins[i].early([]byte{0, 20, byte(i)})
		ins[i].rest()
		ins[i].rest()
		assert.Equal(t, i < mayDetain, ins[i].buf != nil)
	}
	assert.EqualValues(t, mayDetain, detained.Load())
	for i := range ins {
		ins[i].early(append(bytes.Repeat([]byte{byte(i)}, 19), 0, 0, 0, 0, 0, 0))
		ulpdu, ok, err := ins[i].Next()
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, bytes.Repeat([]byte{byte(i)}, 20), ulpdu)
		ins[i].rest()
		assert.Nil(t, ins[i].buf)
	}
	assert.Zero(t, detained.Load())
}
