package qp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestManyResetAtOnce: nobody polls or waits, and every queue pair of a CQ learns that its peer
// has gone, however many go at a time: far more than one look tells of.
func TestManyResetAtOnce(t *testing.T) {
	const n = 300
	first := newRig(t, setup{})
	all := []*rig{first}
	for i := range n {
		r := &rig{t: t, id: ownQP + 1 + wr.QPID(i), set: first.set, tab: first.tab, scq: first.scq, rcq: first.rcq}
		r.newQP()
		mine, theirs, err := rawpeer.Pair()
		require.NoError(t, err)
		r.start(mine, theirs)
		require.NoError(t, theirs.(*net.TCPConn).SetLinger(0))
		all = append(all, r)
	}
	for _, r := range all {
		_ = r.peer.Close()
	}
	for _, r := range all {
		r.over()
	}
}
