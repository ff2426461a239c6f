package perf

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/verbs"
)

// Of connections that end while they are made, a server keeps nothing.
func TestNothingStaysOfBrokenConnections(t *testing.T) {
	host, err := endpoint.OpenHost(verbs.Config{}, perfClients, perfBudget, 0)
	require.NoError(t, err)
	defer host.Close()
	for name, private := range map[string][]byte{
		"write": []byte(`{"op":"write","size":4096,"depth":4,"event":true}`), "send": []byte(`{"op":"send","size":64,"depth":64,"latency":true,"event":true}`),
		"refused": []byte(`{"op":"nothing"}`),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- servePerf(ctx, l, host, &cli.ConnFlags{}, slog.New(slog.DiscardHandler)) }()
			s := droppedpeer.MPA(private)
			s.Answer = nil // of more than perfClients at a time some are refused
			addr := l.Addr().String()
			droppedpeer.Leave(t, addr, s, droppedpeer.RNIC(host.NIC), func() map[string]int { return map[string]int{"places": host.Clients()} })
			stop()
			require.NoError(t, <-ended)
			require.NoError(t, l.Close())
		})
	}
}
