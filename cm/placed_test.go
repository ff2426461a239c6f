package cm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// TestPlacedWrites: two such queue pairs grant each other the Read for their Writes, whatever
// else they allow, and a Write that has completed is in the peer's memory. With any other
// peer the program's Reads go first.
func TestPlacedWrites(t *testing.T) {
	for _, tt := range []struct {
		name     string
		a, b     verbs.QPConfig
		cfg      cm.Config
		ord, ird int // of a
		slot     bool
	}{
		{"both", verbs.QPConfig{PlacedWrites: true}, verbs.QPConfig{PlacedWrites: true}, cm.Config{}, 16, 16, true},
		{"no Reads", verbs.QPConfig{PlacedWrites: true, NoReads: true}, verbs.QPConfig{PlacedWrites: true, NoReads: true, NoInboundRead: true}, cm.Config{}, 0, 0, true},
		{"fewer", verbs.QPConfig{PlacedWrites: true}, verbs.QPConfig{PlacedWrites: true, IRD: 3}, cm.Config{ORD: 5, IRD: 7}, 3, 8, true},
		{"one", verbs.QPConfig{PlacedWrites: true, ORD: 1}, verbs.QPConfig{IRD: 1}, cm.Config{}, 1, 16, false},
		{"most", verbs.QPConfig{PlacedWrites: true, IRD: 128, ORD: 128}, verbs.QPConfig{PlacedWrites: true, IRD: 128, ORD: 128}, cm.Config{}, 128, 128, true},
		{"one end alone", verbs.QPConfig{PlacedWrites: true}, verbs.QPConfig{}, cm.Config{}, 15, 16, true},
		{"MPA revision 1", verbs.QPConfig{PlacedWrites: true}, verbs.QPConfig{PlacedWrites: true}, cm.Config{Rev: 1}, 16, 16, false},
		{"peer-to-peer", verbs.QPConfig{PlacedWrites: true}, verbs.QPConfig{PlacedWrites: true}, cm.Config{Model: cm.PeerToPeer}, 16, 16, true},
		{"no inbound Reads", verbs.QPConfig{PlacedWrites: true}, verbs.QPConfig{PlacedWrites: true, NoInboundRead: true}, cm.Config{}, 1, 16, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newHost(t, tt.a), newHost(t, tt.b)
			x, y := connect(t, tcpLink, a, b, tt.cfg, cm.Config{}, nil)
			at, err := a.qp.Query()
			require.NoError(t, err)
			assert.Equal(t, []any{tt.ord, tt.slot}, []any{at.ORD, at.PlacedWrites})
			assert.Equal(t, []int{tt.ord, tt.ird}, []int{x.ORD(), x.IRD()})
			for i := range 100 {
				data := a.mr.Bytes()[:64]
				data[0], data[63] = byte(i), byte(i)
				a.send(t, verbs.Request{ID: uint64(i), Op: verbs.OpWrite, SGL: a.mr.SGL(0, 64), Remote: b.mr.Remote(4096)})
				a.next(t, verbs.OpWrite, uint64(i))
				if tt.slot {
					require.Equal(t, byte(i), b.mr.Bytes()[4096+63])
				}
			}
			require.NoError(t, x.Close())
			require.NoError(t, y.Close())
		})
	}
}
