//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
)

// TestByHandTooLate: the peer's Request that comes when this side has given up is rejected, as any that nobody
// waits for.
func TestByHandTooLate(t *testing.T) {
	p := open(t, Config{Addr: addr2})
	p.dev.hand.timeout = 20 * time.Millisecond
	p.context()
	a, b := newSide(p, allRights), at(t, addr1)
	_, err := a.recv(1, a.sge(0, 8))
	require.NoError(t, err)
	a.raise(b) // b does not come
	a.failing()
	var rejected *cm.RejectedError
	require.ErrorAs(t, stranger(t, addr1, a, handData(a.qp.QPN, b.qp.QPN)), &rejected)
}
