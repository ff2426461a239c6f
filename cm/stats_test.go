package cm_test

import (
	"context"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// counting is a host whose counters are looked at.
type counting struct {
	*host
	word  verbs.Remote // for Atomics
	gone  *verbs.MR    // for a Send with Invalidate
	spent *verbs.MR    // for an Invalidate
}

func newCounting(t testing.TB, c verbs.QPConfig) *counting {
	c.Extensions, c.SendDepth, c.RecvDepth, c.GracefulReceive = true, 32, 32, true
	h := &counting{host: newHost(t, c)}
	pd := h.qp.PD()
	word := new([1]uint64)
	mr, err := pd.Register(unsafe.Slice((*byte)(unsafe.Pointer(word)), 8), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteAtomic)
	require.NoError(t, err)
	h.word = mr.Remote(0)
	h.gone, err = pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 8), Access: verbs.LocalRead | verbs.RemoteRead, RemoteInvalidate: true})
	require.NoError(t, err)
	h.spent, err = pd.Register(make([]byte, 8), verbs.LocalRead)
	require.NoError(t, err)
	return h
}

// The sizes of the messages, in octets.
const (
	short = 100
	long  = 150_000
)

// messages is one request of each kind, posted by a, and how many receives they take.
func messages(a, b *counting) (reqs []verbs.Request, receives int) {
	at := b.mr.Remote(1 << 12)
	return []verbs.Request{
		{Op: verbs.OpSend, SGL: a.mr.SGL(0, short)},
		{Op: verbs.OpSend, SGL: a.mr.SGL(0, short), Flags: verbs.Unsignaled},
		{Op: verbs.OpSend, SGL: a.mr.SGL(0, long)},
		{Op: verbs.OpSendSE, SGL: []verbs.SGE{a.mr.SGE(0, short), a.mr.SGE(short, short)}},
		{Op: verbs.OpSendInvalidate, Invalidate: b.gone.STag()},
		{Op: verbs.OpWrite, SGL: a.mr.SGL(0, short), Remote: at},
		{Op: verbs.OpWrite, SGL: a.mr.SGL(0, long), Remote: at},
		{Op: verbs.OpWriteImmediate, SGL: a.mr.SGL(0, short), Remote: at, Immediate: 1},
		{Op: verbs.OpImmediate, Immediate: 2},
		{Op: verbs.OpImmediateSE, Immediate: 3},
		{Op: verbs.OpRead, Local: a.mr.SGE(1<<19, long), Remote: b.mr.Remote(0)},
		{Op: verbs.OpRead, Local: a.mr.SGE(1<<19, short), Remote: b.mr.Remote(0)},
		{Op: verbs.OpFetchAdd, Remote: b.word, Atomic: verbs.FetchAdd(1)},
		{Op: verbs.OpInvalidate, Invalidate: a.spent.STag(), Flags: verbs.LocalFence},
	}, 8
}

// expected are the counters of a host that has sent messages and got the peer's, but for what
// depends on how TCP cuts: the segments of long messages, and the octets of the stream.
func expected(connects uint64) verbs.QPStats {
	flows := verbs.Flows{
		Write:          verbs.Flow{Messages: 3, Octets: 2*short + long},
		ReadRequest:    verbs.Flow{Messages: 2, Segments: 2},
		ReadResponse:   verbs.Flow{Messages: 2, Octets: short + long},
		Send:           verbs.Flow{Messages: 3, Octets: 2*short + long},
		SendInvalidate: verbs.Flow{Messages: 1, Segments: 1},
		SendSE:         verbs.Flow{Messages: 1, Segments: 1, Octets: 2 * short},
		Immediate:      verbs.Flow{Messages: 2, Segments: 2, Octets: 16},
		ImmediateSE:    verbs.Flow{Messages: 1, Segments: 1, Octets: 8},
		AtomicRequest:  verbs.Flow{Messages: 1, Segments: 1},
		AtomicResponse: verbs.Flow{Messages: 1, Segments: 1, Octets: 8},
	}
	return verbs.QPStats{
		Out: flows, In: flows, SendsPosted: 14, RecvsPosted: 8,
		Completions: map[verbs.Status]uint64{verbs.StatusSuccess: 13 + 8},
		SendQueue:   verbs.Depth{Most: 14}, RecvQueue: verbs.Depth{Most: 8},
		Invalidates: 2, Connects: connects, Accepts: 1 - connects,
	}
}

// flatten takes away from s what expected leaves out.
func flatten(s verbs.QPStats) verbs.QPStats {
	for _, f := range []*verbs.Flows{&s.Out, &s.In} {
		f.Write.Segments, f.Send.Segments, f.ReadResponse.Segments = 0, 0, 0
	}
	s.OutOctets, s.InOctets = 0, 0
	s.OutReads, s.InReads = verbs.Depth{}, verbs.Depth{}
	return s
}

// run posts everything that a has for b, and waits for the completions.
func run(t testing.TB, a, b *counting) {
	reqs, receives := messages(a, b)
	var recvs []verbs.Recv
	for range receives {
		recvs = append(recvs, verbs.Recv{SGL: b.mr.SGL(0, long)})
	}
	_, err := b.qp.PostRecv(recvs...)
	require.NoError(t, err)
	_, err = a.qp.PostSend(reqs...)
	require.NoError(t, err)
	a.drain(t, len(reqs)-1)
	b.drain(t, receives)
}

// drain waits for n completions.
func (h *host) drain(t testing.TB, n int) {
	t.Helper()
	var c [1]verbs.Completion
	for range n {
		_, err := h.cq.Wait(bounded(t), c[:])
		require.NoError(t, err)
		require.Equal(t, verbs.StatusSuccess, c[0].Status, "%+v %v", c[0], h.qp.Stats().Ends)
	}
}

// TestStats: the counters are those of the traffic, exactly, over each kind of connection, with
// and without CRC and markers, both ways; and they stay when the queue pair has gone.
func TestStats(t *testing.T) {
	for name, l := range links {
		for way, c := range map[string]cm.Config{"CRC": {}, "no CRC": {NoCRC: true}, "markers": {Markers: true}} {
			t.Run(name+"/"+way, func(t *testing.T) {
				c.Extensions, c.NoNudge, c.Model = true, true, cm.ClientServer
				a, b := newCounting(t, verbs.QPConfig{}), newCounting(t, verbs.QPConfig{})
				ca, cb := connect(t, l, a.host, b.host, c, c, nil)
				run(t, a, b)
				run(t, b, a)
				sa, sb := a.qp.Stats(), b.qp.Stats()
				assert.Equal(t, expected(1), flatten(sa))
				assert.Equal(t, expected(0), flatten(sb))
				assert.Equal(t, sa.Out, sb.In, "segments too")
				assert.Equal(t, sb.Out, sa.In)
				assert.Greater(t, sa.Out.Write.Segments, uint64(3))
				assert.Equal(t, []uint64{sa.OutOctets, sb.OutOctets}, []uint64{sb.InOctets, sa.InOctets})
				assert.Greater(t, sa.OutOctets, sa.Out.Total().Octets)
				assert.Zero(t, sa.OutReads.Now+sa.InReads.Now+sb.OutReads.Now+sb.InReads.Now)
				assert.EqualValues(t, 3, sa.OutReads.Most, "posted together")
				assert.LessOrEqual(t, sb.InReads.Most, uint64(3))
				assert.NotZero(t, sb.InReads.Most)
				assert.Equal(t, map[verbs.Status]uint64{verbs.StatusSuccess: 21}, a.cq.Stats().Completions)

				require.NoError(t, ca.Close())
				<-cb.Done()
				require.NoError(t, a.qp.Destroy())
				require.NoError(t, b.nic.Close())
				assert.Equal(t, map[string]uint64{"Modify QP to Closing": 1}, a.qp.Stats().Ends)
				for _, h := range []*counting{a, b} {
					kept := h.nic.Stats().QP
					assert.Equal(t, h.qp.Stats(), kept)
					assert.Equal(t, expected(0).Out, flatten(kept).Out)
					assert.NotZero(t, kept.OutReads.Most)
				}
			})
		}
	}
}

// TestStatsWhenItCompletes: what a completion is for has been counted when the completion can be
// seen, though who owns the transmit side over a pipe cannot be asked.
func TestStatsWhenItCompletes(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	ca, _ := connect(t, pipeLink, a, b, cm.Config{NoNudge: true, Model: cm.ClientServer}, cm.Config{}, nil)
	for i := range uint64(2000) {
		spent, err := a.qp.PD().Register(make([]byte, 8), verbs.LocalRead)
		require.NoError(t, err)
		a.send(t, verbs.Request{ID: i, Op: verbs.OpInvalidate, Invalidate: spent.STag()})
		a.next(t, verbs.OpInvalidate, i)
		require.Equal(t, i+1, a.qp.Stats().Invalidates)
		require.NoError(t, spent.Deregister())
	}
	require.NoError(t, ca.Close())
}

// TestStatsOfTwoStreams: a queue pair's second stream adds to what the first has counted.
func TestStatsOfTwoStreams(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	for i := range uint64(2) {
		ca, cb := connect(t, tcpLink, a, b, cm.Config{NoNudge: true, Model: cm.ClientServer}, cm.Config{}, nil)
		b.recv(t, 1)
		a.send(t, verbs.Request{ID: 2, SGL: a.mr.SGL(0, short)})
		a.next(t, verbs.OpSend, 2)
		b.next(t, verbs.OpRecv, 1)
		require.NoError(t, ca.Close())
		<-ca.Done()
		<-cb.Done()
		sa, sb := a.nic.Stats().QP, b.qp.Stats()
		assert.Equal(t, verbs.Flow{Messages: i + 1, Segments: i + 1, Octets: (i + 1) * short}, sa.Out.Send)
		assert.Equal(t, sa.Out, sb.In)
		assert.Equal(t, i+1, sa.Connects)
		assert.Equal(t, i+1, sb.Accepts)
		assert.Equal(t, sa.OutOctets, sb.InOctets)
	}
}

// flipConn breaks the last octet of what is written once spoil is set.
type flipConn struct {
	net.Conn
	spoil atomic.Bool
}

func (c *flipConn) Write(p []byte) (int, error) {
	if len(p) > 0 && c.spoil.Swap(false) {
		p = append([]byte(nil), p...)
		p[len(p)-1] ^= 1
	}
	return c.Conn.Write(p)
}

// TestStatsOfFaults: a fault counts by its name, and its Terminate Message at both ends.
func TestStatsOfFaults(t *testing.T) {
	var flip *flipConn
	through := func(t testing.TB) (net.Conn, net.Conn) {
		x, y := tcpLink(t)
		flip = &flipConn{Conn: x}
		return flip, y
	}
	for name, c := range map[string]struct {
		link   link
		do     func(t *testing.T, a, b *host)
		end    string // of b
		code   string
		status verbs.Status // of a's Request
		crc    uint64
	}{
		"CRC": {through, func(t *testing.T, a, b *host) {
			flip.spoil.Store(true)
			a.send(t, verbs.Request{SGL: a.mr.SGL(0, short), Flags: verbs.Unsignaled})
		}, "FPDU with a bad CRC", "0x2002 (", verbs.StatusSuccess, 1},
		"no receive": {tcpLink, func(t *testing.T, a, b *host) {
			a.send(t, verbs.Request{SGL: a.mr.SGL(0, short), Flags: verbs.Unsignaled})
		}, "Send with no receive posted", "0x1202 (", verbs.StatusSuccess, 0},
		"STag": {pipeLink, func(t *testing.T, a, b *host) {
			a.send(t, verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 8), Remote: verbs.Remote{STag: 1 << 20}})
		}, "RDMA Read: invalid source STag", "0x0100 (", verbs.StatusRemoteTermination, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			ca, cb := connect(t, c.link, a, b, cm.Config{NoNudge: true, Model: cm.ClientServer}, cm.Config{}, nil)
			b.recv(t, 1) // a first message, before which a Responder sends no Terminate (RFC 5044 7.1.2)
			a.send(t, verbs.Request{ID: 1})
			a.next(t, verbs.OpSend, 1)
			b.next(t, verbs.OpRecv, 1)
			c.do(t, a, b)
			<-ca.Done()
			<-cb.Done()
			sa, sb := a.qp.Stats(), b.nic.Stats().QP
			assert.EqualValues(t, 1, sb.Ends[c.end], "%v", sb.Ends)
			assert.Equal(t, map[string]uint64{"Terminate Message received": 1}, sa.Ends)
			assert.Equal(t, c.crc, sb.CRCErrors)
			assert.Zero(t, sa.CRCErrors)
			require.Len(t, sb.OutTerminates, 1)
			assert.Equal(t, sb.OutTerminates, sa.InTerminates)
			for code, n := range sb.OutTerminates {
				assert.Contains(t, code, c.code)
				assert.EqualValues(t, 1, n)
			}
			terminate := verbs.Flow{Messages: 1, Segments: 1}
			assert.Equal(t, []verbs.Flow{terminate, terminate}, []verbs.Flow{sb.Out.Terminate, sa.In.Terminate})
			if c.status != verbs.StatusSuccess {
				assert.Equal(t, map[verbs.Status]uint64{verbs.StatusSuccess: 1, c.status: 1}, sa.Completions)
				assert.Equal(t, sa.Completions, a.nic.Stats().CQ.Completions)
			}
		})
	}
}

// TestStatsOfResets: who resets counts it, and whom it hits.
func TestStatsOfResets(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	ca, cb := connect(t, tcpLink, a, b, cm.Config{NoNudge: true, Model: cm.ClientServer}, cm.Config{}, nil)
	require.NoError(t, ca.Abort())
	<-cb.Done()
	sa, sb := a.nic.Stats().QP, b.nic.Stats().QP
	assert.Equal(t, []uint64{1, 0}, []uint64{sa.OutResets, sa.InResets})
	assert.EqualValues(t, 1, sb.InResets)
	assert.Equal(t, map[string]uint64{"LLP connection reset by the peer": 1}, sb.Ends)
}

// TestStatsOfAttempts: connections that the peer's program refuses, and those that fail
// otherwise.
func TestStatsOfAttempts(t *testing.T) {
	a := newHost(t, verbs.QPConfig{})
	x, y := tcpLink(t)
	go func() {
		if r, err := cm.Await(context.Background(), y, cm.Config{}); err == nil {
			_ = r.Reject(nil)
		}
	}()
	_, err := cm.Connect(bounded(t), x, a.qp, cm.Config{})
	require.ErrorAs(t, err, new(*cm.RejectedError))
	_ = x.Close()
	x, y = tcpLink(t)
	require.NoError(t, y.Close())
	_, err = cm.Connect(bounded(t), x, a.qp, cm.Config{})
	require.Error(t, err)
	s := a.nic.Stats()
	assert.Equal(t, []uint64{1, 1, 0}, []uint64{s.ConnectsRefused, s.ConnectsFailed, s.QP.Connects})
}

// TestStatsOfWaits: a message that finds no receive counts once, however often somebody looks
// again, and as received when it goes on.
func TestStatsOfWaits(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{GracefulReceive: true})
			connect(t, l, a, b, cm.Config{NoNudge: true, Model: cm.ClientServer}, cm.Config{}, nil)
			for i := range uint64(2) {
				a.send(t, verbs.Request{ID: i, SGL: a.mr.SGL(0, short)})
				a.next(t, verbs.OpSend, i)
				require.Eventually(t, func() bool { return b.qp.Stats().ReceiveWaits == i+1 }, time.Minute, time.Millisecond)
				assert.Equal(t, i, b.qp.Stats().In.Send.Messages)
				b.recv(t, i)
				b.next(t, verbs.OpRecv, i)
				assert.Equal(t, verbs.Flow{Messages: i + 1, Segments: i + 1, Octets: (i + 1) * short}, b.qp.Stats().In.Send)
			}
			assert.EqualValues(t, 2, b.qp.Stats().ReceiveWaits)
		})
	}
}

// TestStatsBySomebodyElse: who asks while data moves gets counters that only grow, disturbs
// nobody, and in the end those of all of it.
func TestStatsBySomebodyElse(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			ca, cb := connect(t, l, a, b, cm.Config{NoNudge: true, Model: cm.ClientServer}, cm.Config{}, nil)
			stop := make(chan struct{})
			var readers sync.WaitGroup
			for _, h := range []*host{a, b} {
				readers.Go(func() {
					var last verbs.QPStats
					for {
						s := h.nic.Stats().QP
						assert.GreaterOrEqual(t, s.Out.Total().Octets, last.Out.Total().Octets)
						assert.GreaterOrEqual(t, s.In.Total().Segments, last.In.Total().Segments)
						assert.GreaterOrEqual(t, s.Completions[verbs.StatusSuccess], last.Completions[verbs.StatusSuccess])
						last = s
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			const rounds = 15
			for range rounds {
				exchange(t, a, b)
			}
			require.NoError(t, ca.Close())
			<-ca.Done()
			<-cb.Done()
			close(stop)
			readers.Wait()
			s := a.nic.Stats().QP
			assert.Equal(t, verbs.Flow{Messages: rounds, Segments: rounds, Octets: rounds * 1000}, s.Out.Send)
			assert.EqualValues(t, rounds*300_000, s.Out.Write.Octets)
			assert.EqualValues(t, rounds*300_000, s.Out.ReadResponse.Octets)
			assert.Equal(t, s.Out, b.nic.Stats().QP.In)
			assert.Equal(t, []string{"Modify QP to Closing"}, keys(s.Ends))
		})
	}
}

func keys(m map[string]uint64) (list []string) {
	for k := range maps.Keys(m) {
		list = append(list, k)
	}
	return list
}
