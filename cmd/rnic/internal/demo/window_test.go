package demo

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/verbs"
)

// The demo finds out a side that does not do its part, and both say so.
func TestDemoFindsFaults(t *testing.T) {
	const bind, invalidate, last = 1, 4, 5 // the steps
	tests := []struct {
		name           string
		server         func(s *demoServer, steps []demoServerStep)
		client         func(c *demoClient, s *demoServer, steps []demoStep)
		atServer, here string // part of the error; empty: none
	}{
		{
			name:   "all right",
			server: func(*demoServer, []demoServerStep) {},
		},
		{
			name: "window valid again",
			server: func(s *demoServer, steps []demoServerStep) {
				steps[invalidate] = s.bindAgain(demoSlotSize)
			},
			atServer: "through the invalidated window was not refused",
			here:     "the peer says: the Write through the invalidated window was not refused",
		},
		{
			name: "refused for another reason",
			server: func(s *demoServer, steps []demoServerStep) {
				steps[invalidate] = s.bindAgain(demoProbe.length - 1)
			},
			atServer: "ended with Terminate 0x1101 (DDP base or bounds violation), want 0x1100 (DDP invalid STag)",
			here:     "ended with Terminate 0x1101 (DDP base or bounds violation), want 0x1100 (DDP invalid STag)",
		},
		{
			name: "memory changed",
			server: func(s *demoServer, steps []demoServerStep) {
				refuse := steps[last]
				steps[last] = func(ctx context.Context) error {
					s.slots[demoProbe.length-1] = 1
					return refuse(ctx)
				}
			},
			atServer: "was refused, but has changed octet 4095",
		},
		{
			name: "another STag invalidated",
			server: func(s *demoServer, steps []demoServerStep) {
				check := steps[invalidate]
				steps[invalidate] = func(ctx context.Context) error {
					s.bound.STag++
					return check(ctx)
				}
			},
			atServer: "the Send did not invalidate the window's STag",
			here:     "the peer says: the Send did not invalidate",
		},
		{
			name: "Send that invalidates nothing",
			client: func(c *demoClient, _ *demoServer, steps []demoStep) {
				steps[invalidate].run = func(ctx context.Context, row *demoResult) error {
					require.NoError(t, c.sendCredit())
					return c.writeAgain(ctx, row)
				}
			},
			atServer: "the Send did not invalidate the window's STag",
			here:     "the peer says: the Send did not invalidate",
		},
		{
			name: "client leaves before the last Write",
			client: func(_ *demoClient, _ *demoServer, steps []demoStep) {
				steps[last].run = func(context.Context, *demoResult) error { return nil }
			},
			atServer: "the peer ended the connection, not by the Terminate Message",
		},
		{
			name: "last Write to another STag",
			client: func(c *demoClient, _ *demoServer, steps []demoStep) {
				write := steps[last].run
				steps[last].run = func(ctx context.Context, row *demoResult) error {
					c.remote.STag++
					return write(ctx, row)
				}
			},
			atServer: "ended with Terminate 0x1100 (DDP invalid STag), want 0x1100 (DDP invalid STag) about STag",
		},
		{
			name: "Write to the region, not the window",
			client: func(c *demoClient, s *demoServer, steps []demoStep) {
				write := steps[bind+1].run
				steps[bind+1].run = func(ctx context.Context, row *demoResult) error {
					region := endpoint.AddressOf(s.slotsMR, 0)
					c.remote = &region
					err := write(ctx, row)
					if err != nil {
						_, unlike := c.refused(s.slotsMR.STag())
						assert.NoError(t, unlike)
					}
					return err
				}
			},
			atServer: "this side ended the connection: RDMA Write",
			here:     "the peer ended the connection",
		},
		{
			name:     "wrong data",
			client:   func(c *demoClient, _ *demoServer, _ []demoStep) { c.plan.Seed++ },
			atServer: "Send 0 differs from what was sent",
			here:     "the peer says: Send 0 differs from what was sent",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, s := connectDemo(t, demoPlan{Bytes: 3000, Seed: 7})
			serverSteps, clientSteps := s.steps(), c.steps()
			if tt.server != nil {
				tt.server(s, serverSteps)
			}
			if tt.client != nil {
				tt.client(c, s, clientSteps)
			}
			served := make(chan error, 1)
			go func() { served <- s.serve(t.Context(), serverSteps) }()
			_, err := c.run(t.Context(), clientSteps)
			c.Close(t.Context()) // this is how it leaves, whatever has been
			assertError(t, tt.here, err)
			assertError(t, tt.atServer, <-served)
			s.Close(t.Context())
		})
	}
}

// assertError checks for an error with that text, or with none of it for no error.
func assertError(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		assert.NoError(t, err)
	} else {
		assert.ErrorContains(t, err, want)
	}
}

// bindAgain makes a step that takes the client's Send with Invalidate, but binds
// the window again, with its old STag, to n octets.
func (s *demoServer) bindAgain(n int) demoServerStep {
	return func(ctx context.Context) error {
		if _, err := s.NextRecv(ctx); err != nil {
			return err
		}
		again := s.window.BindRequest(s.slotsMR, 0, n, demoRights, demoKey)
		if err := s.PostSend(verbs.Request{Op: verbs.OpBind, Bind: again}); err != nil {
			return err
		}
		return s.sendCredit()
	}
}

// connectDemo connects the two sides of a demo within this process.
func connectDemo(t *testing.T, plan demoPlan) (*demoClient, *demoServer) {
	t.Helper()
	f := cli.DefaultConnFlags()
	address := make(chan string, 1)
	accepted := make(chan *demoServer, 1)
	go func() {
		s, err := acceptDemo(t.Context(), &f, func(a string) error {
			address <- a
			return nil
		})
		assert.NoError(t, err)
		accepted <- s
	}()
	c, err := dialDemo(t.Context(), <-address, &f, plan)
	require.NoError(t, err)
	s := <-accepted
	require.NotNil(t, s)
	return c, s
}

// The server's Receives come from an S-RQ, and its slots have no remote rights
// but those of the window; the client's, which are sinks of its own Reads, have none.
func TestDemoServerResources(t *testing.T) {
	c, s := connectDemo(t, demoPlan{Bytes: 3, Seed: 1})
	defer s.Close(t.Context())
	defer c.Close(t.Context())
	qp, err := s.QP.Query()
	require.NoError(t, err)
	require.NotNil(t, qp.SRQ)
	queue, err := qp.SRQ.Query()
	require.NoError(t, err)
	assert.Equal(t, demoRecvs, queue.Depth)
	region, err := s.slotsMR.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.LocalRead|verbs.LocalWrite|verbs.BindWindow, region.Access)
	region, err = c.slotsMR.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.LocalRead|verbs.LocalWrite, region.Access)
	window, err := s.window.Query()
	require.NoError(t, err)
	assert.False(t, window.Valid)
}

func TestDemoNotes(t *testing.T) {
	d := &demoEnd{}
	require.NoError(t, d.read(newDemoNote(&endpoint.RemoteBuffer{STag: 5, TO: 6}, "")))
	assert.Equal(t, &endpoint.RemoteBuffer{STag: 5, TO: 6}, d.remote)
	assert.EqualError(t, d.read(newDemoNote(nil, "too late")), "the peer says: too late")
	assert.ErrorContains(t, d.read([]byte("hello")), "is it rnic demo?")

	long := newDemoNote(nil, strings.Repeat("\x01", 2*demoNoteSize))
	assert.LessOrEqual(t, len(long), demoNoteSize)
	assert.ErrorContains(t, d.read(long), "the peer says: \x01\x01")
}

func TestTerminateNames(t *testing.T) {
	header := func(ddpHeader []byte) []byte {
		h := rdmap.TerminateHeader{Code: demoRefusal, HasLength: true, SegmentLength: 14, DDPHeader: ddpHeader}
		return h.Append(nil)
	}
	tagged := header(ddp.AppendTagged(nil, true, 0, 0x105, 0))
	tests := []struct {
		name string
		raw  []byte
		stag verbs.STag
		want bool
	}{
		{"the STag", tagged, 0x105, true},
		{"another STag", tagged, 0x106, false},
		{"untagged", header(ddp.AppendUntagged(nil, true, 0, 0x105, 0, 1, 0)), 0x105, false},
		{"no header", header(nil), 0, false},
		{"cut short", tagged[:10], 0x105, false},
		{"nothing", nil, 0, false},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, names(tt.raw, tt.stag), tt.name)
	}
}
