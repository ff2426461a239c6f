package cm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/verbs"
)

// TestPeerMissesFirstFPDU: the peer takes no notice of what came right behind its Reply
// until something else comes, as Linux siw does now and then (decision 0014).
func TestPeerMissesFirstFPDU(t *testing.T) {
	for name, l := range links {
		for _, p2p := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				model := cm.ClientServer
				if p2p {
					model = cm.PeerToPeer
				}
				h := newHost(t, verbs.QPConfig{})
				h.recv(t, 1)
				na, nb := l(t)
				defer nb.Close()
				connected := make(chan error, 1)
				go func() {
					_, err := cm.Connect(bounded(t), na, h.qp, cm.Config{Model: model, RTR: cm.RTRWrite})
					connected <- err
				}()
				req, err := rawpeer.ReadStartup(nb)
				require.NoError(t, err)
				rep := req
				rep.Reply = true
				require.NoError(t, rawpeer.WriteStartup(nb, rep))
				require.NoError(t, <-connected)
				if !p2p { // else the ready-to-receive frame comes first
					h.send(t, verbs.Request{ID: 2})
				}

				p := rawpeer.New(nb, rawpeer.Options{CRC: true})
				_, err = p.Next()
				require.NoError(t, err)
				nudge, err := p.Segment()
				require.NoError(t, err)
				op, _ := rdmap.Check(nudge)
				assert.Equal(t, rdmap.Write, op)
				assert.Zero(t, nudge.Size())
				require.NoError(t, p.Send(rawpeer.Send(1, nil).Octets()))
				if !p2p {
					h.next(t, verbs.OpSend, 2)
				}
				h.next(t, verbs.OpRecv, 1)
			})
		}
	}
}
