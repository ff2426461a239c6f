package rsocket_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/ulp/rsocket"
	"github.com/softrnic/softrnic/verbs"
)

// Of connections that end while they are made, a Listener and its RNIC keep nothing.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	hello := newRaw(t).hello()
	for name, tt := range map[string]struct {
		limits  verbs.Limits
		private []byte
		refused bool
	}{
		"accepted":      {verbs.Limits{}, hello, false},
		"another peer":  {verbs.Limits{}, nil, true},
		"no CQ":         {verbs.Limits{CQs: 1}, hello, true},
		"no queue pair": {verbs.Limits{QPs: 1}, hello, true},
		"no PD":         {verbs.Limits{PDs: 1}, hello, true},
		"no region":     {verbs.Limits{Regions: 1}, hello, true},
		"one region":    {verbs.Limits{Regions: 2}, hello, true},
	} {
		t.Run(name, func(t *testing.T) {
			nic, err := verbs.Open(verbs.Config{Limits: tt.limits})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, nic.Close()) })
			if tt.refused && tt.private != nil { // the one that there is of what is scarce
				pd, err := nic.AllocatePD()
				require.NoError(t, err)
				cq, err := nic.CreateCQ(verbs.CQConfig{})
				require.NoError(t, err)
				_, err = nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
				require.NoError(t, err)
				_, err = pd.Register(make([]byte, 8), verbs.LocalRead)
				require.NoError(t, err)
			}
			l, err := rsocket.Config{NIC: nic}.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var all sync.WaitGroup
			all.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					all.Go(func() {
						_, _ = io.Copy(io.Discard, c)
						_ = c.Close()
					})
				}
			})
			s := droppedpeer.MPA(tt.private)
			s.Refused = tt.refused
			addr := l.Addr().String()
			droppedpeer.Leave(t, addr, s, droppedpeer.RNIC(nic))
			require.NoError(t, l.Close())
			all.Wait()
		})
	}
}

// A Close that meets Accept with a Request in its hands leaves nothing, and no peer waiting.
func TestNothingStaysOfACloseAmidAccept(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, nic.Close()) })
	request := droppedpeer.MPA(newRaw(t).hello()).Request
	var book *leakcheck.Ledger
	for i := range 301 {
		if i == 1 {
			book = leakcheck.Open(t, droppedpeer.RNIC(nic))
		}
		l, err := rsocket.Config{NIC: nic}.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = nc.Write(request)
		require.NoError(t, err)
		require.ErrorIs(t, rsocket.AcceptClosed(l), context.Canceled)
		_ = nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err = io.Copy(io.Discard, nc)
		require.NoError(t, err, "the peer is left waiting")
		require.NoError(t, nc.Close())
		require.NoError(t, l.Close())
	}
	book.Settle()
}
