package qp

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// TestGracefulFlow has receives come one at a time, and messages faster than
// they, to consumers of each kind: no wake-up is lost.
func TestGracefulFlow(t *testing.T) {
	const n = 600
	poll := func(r *rig) comp {
		var c [1]wr.Completion
		for r.rcq.Poll(c[:]) == 0 {
			runtime.Gosched()
		}
		return comps(c[:])[0]
	}
	sleep := func(r *rig) comp { return r.wait(r.rcq, 1)[0] }
	for name, take := range map[string]func(*rig) comp{"poll": poll, "wait": sleep, "both": nil} {
		t.Run(name, func(t *testing.T) {
			gracefulRigs(t, func(t *testing.T, r *rig, _ func(...wr.Recv)) {
				var list [][]byte
				for msn := range uint32(n) {
					list = append(list, rawpeer.Send(msn+1, filled(int(msn%64))).Octets())
				}
				sent := r.inBackground(list...)
				posted := make(chan error, 1)
				reaped := make(chan struct{}, 1)
				go func() { posted <- r.postOneByOne(n, reaped) }()
				for i := range uint64(n) {
					how := take
					if how == nil {
						how = poll
						if i/100%2 == 1 {
							how = sleep
						}
					}
					require.Equal(t, comp{i, 0, uint32(i % 64)}, how(r))
					reaped <- struct{}{}
				}
				require.NoError(t, <-posted)
				require.NoError(t, <-sent)
				require.Equal(t, wr.StateRTS, r.q.State())
			})
		})
	}
}

// postOneByOne posts n receives, each when the one before was reaped.
func (r *rig) postOneByOne(n int, reaped <-chan struct{}) error {
	for i := range n {
		w := wr.Recv{ID: uint64(i), SGL: r.full.sgl(0, 64)}
		var err error
		if shared := r.q.cfg.SRQ; shared != nil {
			_, err = shared.Post(w)
		} else {
			_, err = r.q.PostRecv(w)
		}
		if err != nil {
			return err
		}
		<-reaped
	}
	return nil
}

// TestGracefulSharing has two starved queue pairs on one S-RQ: each receive goes to
// one of them, and both end with what they were sent.
func TestGracefulSharing(t *testing.T) {
	const n = 300
	shared := newShared(t, ownPD)
	a := newRig(t, graceful(setup{}, shared))
	b := a.sibling(20)
	buffer := func(i uint64) wr.Recv { return wr.Recv{ID: i, SGL: a.full.sgl(64*int(i), 64)} }
	got := make(chan error, 2)
	for _, r := range []*rig{a, b} {
		var list [][]byte
		for msn := range uint32(n) {
			list = append(list, rawpeer.Send(msn+1, filled(int(msn%50))).Octets())
		}
		sent := r.inBackground(list...)
		go func() {
			for i := range n {
				var c [1]wr.Completion
				if _, err := r.rcq.Wait(t.Context(), c[:]); err != nil {
					got <- err
					return
				}
				if c[0].Status != 0 || c[0].Bytes != uint32(i%50) || c[0].QP != r.id {
					got <- fmt.Errorf("message %d: %+v", i, c[0])
					return
				}
				if _, err := shared.Post(buffer(c[0].ID)); err != nil {
					got <- err
					return
				}
			}
			got <- <-sent
		}()
	}
	shared.post(buffer(0), buffer(1))
	require.NoError(t, <-got)
	require.NoError(t, <-got)
}
