package nd2_test

import (
	"context"
	"strings"
	gosync "sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/nd2"
)

// Of connections that end while they are made, a listener and its adapter keep nothing.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	for _, name := range []string{
		"accepted", "accepted, shared receives", "accepted, and two wait", "rejected", "closed without an answer", "the context has ended", "no queue pair",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, shape{srq: name == "accepted, shared receives", cqDepth: 1024})
			l, at := s.listen()
			over, cancel := context.WithCancel(context.Background())
			cancel()
			create := func() (*nd2.QueuePair, error) {
				if s.srq != nil {
					return s.a.CreateQueuePairWithSrq(s.in, s.out, s.srq, nil, 2, 1, 64)
				}
				return s.a.CreateQueuePair(s.in, s.out, nil, 2, 2, 1, 1, 64)
			}
			answer := func(c *nd2.Connector) {
				defer c.Close()
				switch name {
				case "rejected":
					_ = c.Reject(nil)
					return
				case "closed without an answer":
					return
				}
				qp, err := create()
				if !assert.NoError(t, err) {
					return
				}
				defer func() { assert.NoError(t, qp.Close()) }()
				if name == "accepted, and two wait" { // the Receive is canceled at the end
					assert.NoError(t, qp.Receive(nil, s.sge(0, 8)))
				}
				switch name {
				case "the context has ended":
					assert.ErrorIs(t, c.Accept(over, qp, 1, 1, nil), nd2.ErrCanceled)
				case "no queue pair":
					assert.ErrorIs(t, c.Accept(over, nil, 1, 1, nil), nd2.ErrInvalidParameter1)
				default:
					if c.Accept(context.Background(), qp, 1, 1, nil) == nil {
						_ = c.NotifyDisconnect(context.Background())
					}
				}
			}
			var all gosync.WaitGroup
			all.Go(func() {
				for {
					c, err := s.a.CreateConnector()
					if !assert.NoError(t, err) || l.GetConnectionRequest(context.Background(), c) != nil {
						return
					}
					all.Go(func() { answer(c) })
				}
			})
			waiting, stop := context.WithCancel(context.Background())
			for range 2 {
				all.Go(func() {
					if name != "accepted, and two wait" {
						return
					}
					for {
						if _, err := s.in.Wait(waiting, make([]nd2.Result, 4)); err != nil {
							return
						}
					}
				})
			}
			script := droppedpeer.MPA(nil)
			script.Refused = !strings.HasPrefix(name, "accepted")
			droppedpeer.Leave(t, at.String(), script, droppedpeer.RNIC(s.a.NIC()), func() map[string]int {
				return map[string]int{"places of queue pairs": s.a.Owners(), "queue pairs of the adapter": s.a.QueuePairs()}
			})
			require.NoError(t, l.Close())
			stop()
			all.Wait()
		})
	}
}
