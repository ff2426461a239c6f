package nd2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// A place is free when its result was retrieved; a silent one's when a later request has
// succeeded. They come free in order.
func TestRing(t *testing.T) {
	r := newRing(&QueuePair{}, 5)
	post := func(silent bool) {
		s := r.reserve()
		require.NotNil(t, s)
		s.fill(RequestTypeSend, r.tail, silent)
		r.tail++
	}
	complete := func(pos uint64, st verbs.Status) (place, bool) {
		var out Result
		return r.result(&verbs.Completion{ID: pos | lastPart, Status: st}, &out)
	}
	for range 100 {
		base := r.tail
		for _, silent := range []bool{true, true, false, true, true} {
			post(silent)
		}
		require.Nil(t, r.reserve())
		require.True(t, r.unknown())
		p, ok := complete(base+2, verbs.StatusSuccess)
		require.True(t, ok)
		require.NotNil(t, r.reserve(), "those before it are over")
		require.Equal(t, base+2, r.freed, "but not its own, which was not retrieved")
		require.False(t, r.unknown())
		p.release()
		r.reclaim()
		require.Equal(t, base+3, r.freed)
		_, ok = complete(base+4, verbs.StatusSuccess)
		require.False(t, ok, "a mark")
		r.reclaim()
		require.Equal(t, base+5, r.freed)
	}
	post(true)
	post(false)
	_, ok := complete(r.tail-1, verbs.StatusFlushed)
	require.True(t, ok)
	r.reclaim()
	require.Equal(t, r.tail-2, r.freed, "a failure says nothing of those before")
}
