package qp

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestFloodWhileTerminating: a peer that sends and sends does not draw the Terminate
// state out beyond the close timeout (RV-6.2.5). Short segments are those that take
// the longest to look at.
func TestFloodWhileTerminating(t *testing.T) {
	r := newRig(t, setup{closeTimeout: 50 * time.Millisecond})
	flood := bytes.Repeat(r.peer.Frame(rawpeer.Write(0, 0, nil).Octets()), 1<<18)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := r.peer.Conn.Write(flood); err != nil {
				return
			}
		}
	}()
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateTerminate}))
	r.over()
	require.Equal(t, wr.StateError, r.q.State())
	<-ended
}
