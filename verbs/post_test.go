package verbs_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/verbs"
)

// TestRoom: Room is how many posts are taken, whatever the state, and of a shared receive queue none.
func TestRoom(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	check := func(state verbs.State, sends, recvs int) {
		t.Helper()
		require.Equal(t, state, w.qp.State())
		s, r := verbsinternal.Room(w.qp)
		assert.Equal(t, [2]int{sends, recvs}, [2]int{s, r})
		r, _ = w.qp.PostRecv(make([]verbs.Recv, 9)...)
		writes := slices.Repeat([]verbs.Request{{Op: verbs.OpWrite}}, 9) // of nothing: the peer has no receives for Sends
		s, _ = w.qp.PostSend(writes...)
		assert.Equal(t, [2]int{sends, recvs}, [2]int{s, r})
	}
	w.connect()
	check(verbs.StateRTS, 4, 4)
	_, recvs := verbsinternal.Room(w.sharing)
	assert.Zero(t, recvs)
	_ = w.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) // refused if the peer, which has no receive, has ended it already
	<-w.qp.Done()
	check(verbs.StateError, 0, 0)
}
