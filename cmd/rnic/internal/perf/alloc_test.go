//go:build !race

// The race detector allocates by itself.

package perf

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

// What is measured must not be the collector.
func TestPerfLoopsDoNotAllocate(t *testing.T) {
	server, err := cli.StartServer(t.Context(), ownServer...)
	require.NoError(t, err)
	defer func() { assert.NoError(t, server.Stop()) }()
	for _, op := range []string{"send", "write", "write-imm", "read", "atomic"} {
		f := cli.DefaultConnFlags()
		// AllocsPerRun leaves one thread, of which polling takes all.
		run := perfRun{Op: op, Size: 64, Depth: 16, CRC: true, Event: true}
		if op == "atomic" {
			run.Size = atomicSize
		}
		t.Run(op+" stream", func(t *testing.T) {
			c, ctx := connectPerf(t, server.Address, &f, run)
			s := streamSender{perfClient: c}
			require.NoError(t, s.marker())
			body := c.request(c.sourceFirst(), c.sinkRest())
			assert.Zero(t, testing.AllocsPerRun(1000, func() {
				require.NoError(t, s.post(ctx, &body))
			}))
		})
		run.Latency = true
		t.Run(op+" latency", func(t *testing.T) {
			c, ctx := connectPerf(t, server.Address, &f, run)
			trip := roundTrip{perfClient: c}
			trip.prepare(c.sourceFirst())
			assert.Zero(t, testing.AllocsPerRun(1000, func() {
				require.NoError(t, trip.do(ctx))
			}))
		})
	}
}

func TestManyDoesNotAllocate(t *testing.T) {
	for _, way := range []manyWay{manyWaiting, manyPolling, manyWithCRC} {
		t.Run(way.String(), func(t *testing.T) {
			const n = 3
			err := withScaleClient(t.Context(), n, way.shape(), way.server(n), func(c *scaleClient) error {
				_, err := c.connectQPs(t.Context(), 0, n)
				require.NoError(t, err)
				exchange := exchanger{manyWindow: &manyWindow{trips: make([]tripCounter, n)}, reaper: c.reaper(c.cq[0])}
				for i := range c.pool {
					assert.Equal(t, way.CRC, c.pool[i].conn.CRC())
					require.NoError(t, c.pool[i].send())
				}
				assert.Zero(t, testing.AllocsPerRun(1000, func() {
					require.NoError(t, exchange.step(t.Context()))
				}))
				return nil
			})
			assert.NoError(t, err)
		})
	}
}

func connectPerf(t *testing.T, addr string, f *cli.ConnFlags, run perfRun) (*perfClient, context.Context) {
	t.Helper()
	c, err := openPerf(f, run)
	require.NoError(t, err)
	require.NoError(t, c.connect(t.Context(), addr, f))
	ctx, cancel := c.WhileConnected(t.Context())
	t.Cleanup(func() {
		cancel()
		c.Close(context.Background())
	})
	return c, ctx
}
