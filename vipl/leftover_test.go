package vipl

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	breaks "github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// counts are the objects of a Nic, and the requests that nobody has answered.
func (n *Nic) counts() map[string]int {
	n.mu.Lock()
	all := map[string]int{"VIs": len(n.vis), "CQs": len(n.cqs), "regions": len(n.regions), "STags": n.stags.Len()}
	for _, users := range n.ptags {
		all["users of ptags"] += users
	}
	n.mu.Unlock()
	n.passive.mu.Lock()
	defer n.passive.mu.Unlock()
	all["requests"] = len(n.passive.conns)
	return all
}

// Of connections that end while they are made, a Nic keeps nothing.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	for _, name := range []string{"accepted", "rejected", "does not fit", "disconnected"} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, Config{})
			require.NoError(t, h.nic.ErrorCallback(func(*ErrorDescriptor) {}))
			level := ServiceReliableDelivery
			if name == "does not fit" {
				level = ServiceUnreliable
			}
			answer := func(c *Conn) {
				v, err := h.nic.CreateVi(h.attributes(level), nil, nil)
				if !assert.NoError(t, err) {
					return
				}
				defer func() {
					assert.NoError(t, v.Disconnect())
					assert.NoError(t, v.DestroyVi())
				}()
				switch name {
				case "rejected":
					_ = c.ConnectReject()
				case "disconnected": // in the moment of accepting
					var meanwhile sync.WaitGroup
					meanwhile.Go(func() { assert.NoError(t, v.Disconnect()) })
					_ = c.ConnectAccept(v)
					meanwhile.Wait()
				case "does not fit":
					assert.ErrorIs(t, c.ConnectAccept(v), ErrInvalidReliabilityLevel)
					_ = c.ConnectReject()
				default:
					if c.ConnectAccept(v) != nil {
						return
					}
					for state(t, v) == StateConnected {
						time.Sleep(time.Millisecond) // nothing is posted that would tell
					}
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				for {
					c, err := h.nic.ConnectWait(ctx, h.address("server"))
					if err != nil {
						return
					}
					all.Go(func() { answer(c) })
				}
			})
			s := breaks.VI("server", segment.ReliableDelivery)
			s.Refused = name == "rejected" || name == "does not fit"
			if name == "disconnected" { // either
				s.Answer = nil
			}
			to, err := h.address("server").AddrPort()
			require.NoError(t, err)
			at := to.String()
			breaks.Leave(t, at, s, h.nic.counts)
			stop()
			all.Wait()
		})
	}
}
