package vitcp_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// Of connections that end while they are made, a Listener keeps nothing.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	for name, answer := range map[string]func(*vitcp.Pending){
		"accepted": func(p *vitcp.Pending) {
			if a, err := p.Accept(context.Background(), vitcp.Config{Level: segment.ReliableDelivery}); err == nil {
				_, _ = a.Conn.Read(make([]byte, 64))
				_ = a.Conn.Close()
			}
		},
		"rejected":                func(p *vitcp.Pending) { _ = p.Reject(context.Background(), vitcp.ReasonConsumer) },
		"closed without answer":   func(p *vitcp.Pending) { _ = p.Close() },
		"the context has ended":   func(p *vitcp.Pending) { acceptLate(p) },
		"does not fit":            func(p *vitcp.Pending) { acceptMisfit(p) },
		"nobody waits":            nil,
		"nobody waits, and match": nil,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := vitcp.ListenConfig{MatchTimeout: time.Minute}
			if name == "nobody waits" {
				cfg.MatchTimeout = 0
			} else if answer == nil {
				cfg.MatchTimeout = 1 // it has passed at once
			}
			l := listen(t, "127.0.0.1", cfg)
			var all sync.WaitGroup
			all.Go(func() {
				for answer != nil {
					p, err := l.Wait(context.Background(), vitcp.Filter{Called: "bob"})
					if err != nil {
						return
					}
					all.Go(func() { answer(p) })
				}
			})
			s := droppedpeer.VI("bob", segment.ReliableDelivery)
			s.Refused = name != "accepted"
			if name == "the context has ended" { // the answer may have been faster
				s.Answer = nil
			}
			addr := l.Addr().String()
			droppedpeer.Leave(t, addr, s, func() map[string]int {
				return map[string]int{"places": l.Places(), "held": l.Held()}
			})
			require.NoError(t, l.Close())
			all.Wait()
		})
	}
}

// acceptLate accepts when the time for it is over.
func acceptLate(p *vitcp.Pending) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if a, err := p.Accept(over, vitcp.Config{Level: segment.ReliableDelivery}); err == nil {
		_ = a.Conn.Close()
	}
	_ = p.Close() // nothing, once it is answered
}

// acceptMisfit accepts with a level that does not fit: the request stands, and is given up.
func acceptMisfit(p *vitcp.Pending) {
	_, _ = p.Accept(context.Background(), vitcp.Config{Level: segment.Unreliable})
	_ = p.Close()
}
