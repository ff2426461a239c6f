//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestNothingStaysOfBrokenConnections: of connections that end while they are made a listening id keeps nothing, if
// the program destroys its ids and queue pairs.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	p := newDevice(t).program()
	listener, at := p.listen(1, netip.AddrPortFrom(loopback, 0))
	children := map[uint32]uint32{} // a queue pair for each id
	end := func(id uint32) {
		p.destroy(id)
		uv(p, uabi.CmdDestroyQP, &uabi.DestroyQP{Response: p.resp(), QPHandle: p.handle(children[id])}, 4)
		delete(children, id)
	}
	next := func() { // one event
		p.token()
		require.NoError(t, p.getEvent())
		switch e := got[uabi.EventResp](p); int(e.Event) {
		case uabi.CMEventConnectRequest:
			children[e.ID] = p.qp()
			if p.accept(e.ID, uint64(e.ID), children[e.ID], "") != nil {
				end(e.ID)
			}
		case uabi.CMEventEstablished:
		case uabi.CMEventDisconnected:
			end(e.ID)
		default:
			t.Fatalf("event %d", e.Event)
		}
	}
	s := droppedpeer.MPA(nil)
	s.Answer = nil // as the program is faster or slower
	serve := func(step droppedpeer.Step, n int) {
		over := make(chan struct{})
		var failed atomic.Bool
		go func() {
			defer close(over)
			for range n {
				if step.Run(at.String(), s) != nil {
					failed.Store(true)
				}
			}
		}()
		for running := true; running || p.tokens() > 0 || len(children) > 0; {
			select {
			case <-over:
				running = false
			default:
			}
			if p.tokens() > 0 {
				next()
			} else {
				time.Sleep(time.Millisecond) // the program is one goroutine, as a C program's thread is
			}
		}
		require.False(t, failed.Load(), step.Name)
	}
	serve(droppedpeer.Steps[6], 1)
	for _, step := range droppedpeer.Steps {
		t.Run(step.Name, func(t *testing.T) {
			l := leakcheck.Open(t, func() map[string]int { return map[string]int{"ids": p.dev.ucm.IDs()} })
			serve(step, 300)
			l.Settle()
		})
	}
	p.destroy(listener)
}
