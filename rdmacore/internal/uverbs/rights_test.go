//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestAccessFlags: the peer may do what the queue pair's flags say, set before it has a stream or with one.
func TestAccessFlags(t *testing.T) {
	for name, c := range map[string]struct {
		flag   uint32
		opcode int
	}{"Write": {uabi.AccessRemoteWrite, uabi.WRRDMAWrite}, "Read": {uabi.AccessRemoteRead, uabi.WRRDMARead}} {
		t.Run(name, func(t *testing.T) {
			p := started(t, Config{})
			a, b := newSide(p, allRights), newSide(p, allRights)
			permit := func(flags uint32) {
				require.NoError(t, b.modify(uabi.ModifyQP{AttrMask: uabi.QPAccessFlags, QPAccessFlags: flags}))
			}
			request := func() uint32 {
				w := signaled(c.opcode, 1)
				w.RemoteAddr, w.CompareAdd = b.mem, uint64(b.mr.Rkey)
				a.posted(w, a.sge(0, 8))
				return a.wait(1)[0].Status
			}
			permit(c.flag)
			connect(t, a, b)
			assert.EqualValues(t, uabi.WCSuccess, request())
			permit(^c.flag & (uabi.AccessRemoteWrite | uabi.AccessRemoteRead | uabi.AccessRemoteAtomic))
			request() // of a Write the first tells nothing
			<-b.verbs().Verbs().Done()
			permit(c.flag) // of a queue pair that has ended
			assert.EqualValues(t, uabi.QPSErr, b.query().QPState)
		})
	}
}
