package verbs_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/verbs"
)

// badPeers are peers that want more than their share. Each goes on until its connection ends.
var badPeers = map[string]func(p *rawpeer.Peer, mr *verbs.MR){
	"stalls": func(p *rawpeer.Peer, _ *verbs.MR) {
		_ = p.Raw(p.Frame(rawpeer.Write(0, 0, nil).Octets())[:7])
	},
	"trickles": func(p *rawpeer.Peer, _ *verbs.MR) {
		for {
			for _, octet := range p.Frame(rawpeer.Write(0, 0, nil).Octets()) {
				if p.Raw([]byte{octet}) != nil {
					return
				}
			}
		}
	},
	"floods": func(p *rawpeer.Peer, _ *verbs.MR) {
		var many []byte
		for range 4096 {
			many = append(many, p.Frame(rawpeer.Write(0, 0, nil).Octets())...)
		}
		for p.Raw(many) == nil {
		}
	},
	"does not read": func(p *rawpeer.Peer, mr *verbs.MR) {
		b := mr.Remote(0)
		for msn := range uint32(4) {
			_ = p.Send(rawpeer.ReadRequest(1+msn, rdmap.ReadRequestHeader{
				SinkSTag: 1, Size: 64 << 20, SourceSTag: uint32(b.STag), SourceTO: b.TO,
			}).Octets())
		}
	},
}

// TestCrowdBesideBadPeers: whatever the peers of other queue pairs of a CQ do, those of the
// crowd make progress, in whatever way somebody looks at the CQ.
func TestCrowdBesideBadPeers(t *testing.T) {
	const links, rounds, bad = 6, 15, 3
	for name, attack := range badPeers {
		for _, h := range []how{polling, waiting, events} {
			t.Run(name+", "+string(h), func(t *testing.T) {
				c := newCrowd(t, rounds, false, make([]ends, links)...)
				pd, err := c.near.AllocatePD()
				require.NoError(t, err)
				mr, err := pd.Register(make([]byte, 64<<20), verbs.LocalRead|verbs.RemoteRead)
				require.NoError(t, err)
				var attacks sync.WaitGroup
				t.Cleanup(attacks.Wait) // when all have been closed
				for range bad {
					qp, err := c.near.CreateQP(verbs.QPConfig{PD: pd, SendCQ: c.cqs[0], RecvCQ: c.cqs[0], IRD: 4})
					require.NoError(t, err)
					near, far := tcpConns(t)
					start(t, qp, near, mpa.Initiator, false)
					p := rawpeer.New(far, rawpeer.Options{Patience: crowdPatience})
					attacks.Go(func() { attack(p, mr) })
					t.Cleanup(func() {
						_ = p.Close()
						require.NoError(t, qp.Destroy())
					})
				}
				c.consumers(0, h)
				c.start()
				c.finish()
			})
		}
	}
}
