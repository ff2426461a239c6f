package nvmeof

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/verbs"
)

// counts are the places at the target, and what it has made of its RNIC.
func (t *Target) counts() []leakcheck.Counts {
	return []leakcheck.Counts{droppedpeer.RNIC(t.nic), func() map[string]int {
		t.mu.Lock()
		defer t.mu.Unlock()
		n := map[string]int{"queues": t.places.held(), "controllers": len(t.controllers)}
		t.buffers.mu.Lock()
		defer t.buffers.mu.Unlock()
		for _, free := range t.buffers.free {
			n["regions"] -= len(free) // which the next command has
		}
		if t.shared != nil {
			n["shared receives away"] = t.config.SharedReceives - int(t.shared.srq.Stats().Queue.Now)
		}
		return n
	}}
}

// Of a connection that ends while it is made, the target keeps nothing.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	hello := private(0, 1, 128, 127)
	for name, tt := range map[string]struct {
		config  Config
		hello   []byte
		refused bool
	}{
		"own receives":    {Config{}, hello, false},
		"shared receives": {Config{SharedReceives: 64}, hello, false},
		"private data":    {Config{}, private(1, 0, 128, 127), true},
		"no place":        {Config{Connections: 4}, hello, true},
		"no CQ":           {Config{RNIC: verbs.Config{Limits: verbs.Limits{CQs: 4}}}, hello, true},
		"one CQ":          {Config{RNIC: verbs.Config{Limits: verbs.Limits{CQs: 5}}}, hello, true},
		"no queue pair":   {Config{RNIC: verbs.Config{Limits: verbs.Limits{QPs: 2}}}, hello, true},
		"no region":       {Config{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 4}}}, hello, true},
		"one region":      {Config{RNIC: verbs.Config{Limits: verbs.Limits{Regions: 5}}}, hello, true},
	} {
		t.Run(name, func(t *testing.T) {
			addr, target := serve(t, tt.config, subsystem(t, Memory(1<<20)))
			associate(t, addr, 1)
			s := droppedpeer.MPA(tt.hello)
			s.Refused = tt.refused
			droppedpeer.Leave(t, addr, s, target.counts()...)
		})
	}
}

// A connection that the end of Serve meets in the moment of its Accept ends too.
func TestServeEndsWithinAccept(t *testing.T) {
	_, target := serve(t, Config{}, subsystem(t, Memory(1<<20)))
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	defer l.Close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var book *leakcheck.Ledger
	for i := range 301 {
		if i == 1 {
			book = leakcheck.Open(t, target.counts()...)
		}
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = nc.Write(droppedpeer.MPA(private(0, 1, 128, 127)).Request)
		require.NoError(t, err)
		req, err := l.Accept(t.Context())
		require.NoError(t, err)
		target.connect(over, req)
		_ = nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err = io.Copy(io.Discard, nc)
		require.NoError(t, err, "the host is not left waiting")
		require.NoError(t, nc.Close())
	}
	book.Settle()
}
