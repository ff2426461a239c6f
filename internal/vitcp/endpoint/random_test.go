package endpoint_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// traffic is what one side sends to the other: messages with content that its number
// tells, so that the receiver knows what to expect.
type traffic struct {
	from, to *side
	rng      *rand.Rand
	reads    bool
	src      *memory // of Sends and Writes, one slot for each message
	dst      *memory // where Writes go, and Reads come from
	sink     *memory // of Reads
	bufs     *memory // of receives
	ops      []endpoint.Request
	sizes    []int
	slots    []int // where in src, dst and sink
}

const biggest = 200 << 10

func newTraffic(from, to *side, seed uint64, n int, reads bool) *traffic {
	tr := &traffic{from: from, to: to, rng: rand.New(rand.NewPCG(seed, 1)), reads: reads}
	total := 0
	for range n {
		size := 0
		switch tr.rng.IntN(4) {
		case 0:
			size = tr.rng.IntN(100)
		case 1:
			size = tr.rng.IntN(5000)
		case 2:
			size = 60000 + tr.rng.IntN(12000)
		default:
			size = tr.rng.IntN(biggest + 1)
		}
		tr.sizes, tr.slots = append(tr.sizes, size), append(tr.slots, total)
		total += size
	}
	tr.src, tr.sink = from.register(total+1, allRights), from.register(total+1, allRights)
	tr.dst, tr.bufs = to.register(total+1, allRights), to.register(total+1, allRights)
	pattern(tr.src.buf, int(seed))
	pattern(tr.dst.buf, int(seed)+1)
	return tr
}

// spans cuts n octets of m at off into some pieces.
func (tr *traffic) spans(m *memory, off, n int) (s []endpoint.Span) {
	for n > 0 && len(s) < 5 {
		k := tr.rng.IntN(n + 1)
		s = append(s, m.span(off, k))
		off, n = off+k, n-k
	}
	return append(s, m.span(off, n))
}

// prepare decides what is sent, and posts all receives.
func (tr *traffic) prepare() {
	for i, n := range tr.sizes {
		r := endpoint.Request{Op: endpoint.OpSend, Context: i, Fence: tr.rng.IntN(8) == 0, HasImmediate: tr.rng.IntN(2) == 0, Immediate: uint32(i)}
		off := tr.slots[i]
		switch k := tr.rng.IntN(3); {
		case k == 0:
			r.Op, r.RemoteAddr, r.RemoteHandle = endpoint.OpWrite, tr.dst.addr+uint64(off), tr.dst.handle
		case k == 1 && tr.reads:
			r.Op, r.RemoteAddr, r.RemoteHandle = endpoint.OpRead, tr.dst.addr+uint64(off), tr.dst.handle
		}
		r.Spans = tr.spans(tr.src, off, n)
		if r.Op == endpoint.OpRead {
			r.Spans = tr.spans(tr.sink, off, n)
		}
		tr.ops = append(tr.ops, r)
		if r.Op == endpoint.OpSend {
			require.NoError(tr.to.t, tr.to.PostReceive(&endpoint.Receive{Context: i, Spans: tr.spans(tr.bufs, off, n)}))
		} else if r.Op == endpoint.OpWrite && r.HasImmediate {
			require.NoError(tr.to.t, tr.to.PostReceive(&endpoint.Receive{Context: i}))
		}
	}
}

// results are the calls that a side is to have, in order for each queue.
func (tr *traffic) results() (sends, receives []endpoint.Result) {
	for i, r := range tr.ops {
		n := uint32(tr.sizes[i])
		sends = append(sends, endpoint.Result{Context: i, Op: r.Op, Length: n})
		in := endpoint.Result{Context: i, Op: endpoint.OpReceive, Length: n, HasImmediate: r.HasImmediate}
		if r.HasImmediate {
			in.Immediate = r.Immediate
		}
		switch {
		case r.Op == endpoint.OpSend:
			receives = append(receives, in)
		case r.Op == endpoint.OpWrite && r.HasImmediate:
			in.Op, in.Length = endpoint.OpRemoteWrite, 0
			receives = append(receives, in)
		}
	}
	return sends, receives
}

// content checks all memory when everything has completed.
func (tr *traffic) content(seed int) {
	t := tr.from.t
	dst := make([]byte, len(tr.dst.buf))
	pattern(dst, seed+1)
	for i, r := range tr.ops {
		a, b := tr.slots[i], tr.slots[i]+tr.sizes[i]
		want, got := tr.src.buf[a:b], tr.bufs.buf[a:b]
		switch r.Op {
		case endpoint.OpWrite:
			copy(dst[a:b], want)
			continue
		case endpoint.OpRead:
			want, got = tr.dst.buf[a:b], tr.sink.buf[a:b]
		default:
		}
		require.True(t, string(want) == string(got), "%v %d of %d octets", r.Op, i, tr.sizes[i])
	}
	require.True(t, string(dst) == string(tr.dst.buf), "target of the Writes")
}

// collect takes calls until n results have come for the queues of s.
func collect(s *side, sends, receives int) (a, b []endpoint.Result) {
	for len(a) < sends || len(b) < receives {
		switch c := s.next(); c.kind {
		case "send":
			a = append(a, c.result)
		case "receive":
			b = append(b, c.result)
		default:
			require.FailNow(s.t, "unexpected", "%+v", c)
		}
	}
	return a, b
}

func TestRandomTraffic(t *testing.T) {
	for _, tr := range append(transports, transport{"short reads", crippled}) {
		for _, l := range levels {
			for _, crc := range []bool{false, true} {
				for _, flow := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%v/crc=%v/flow=%v", tr.name, l, crc, flow), func(t *testing.T) {
						c := endpoint.Config{Level: l, CRC: crc, FlowControl: flow, PeerFlowControl: flow, MTU: biggest}
						randomTraffic(t, tr, c)
					})
				}
			}
		}
	}
}

func randomTraffic(t *testing.T, tr transport, c endpoint.Config) {
	seed := rand.Uint64() >> 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c.Segment = []int{0, 256 + rng.IntN(3000), 9000}[rng.IntN(3)]
	n := 25
	a, b := newPair(t, tr, c)
	reads := c.Level != segment.Unreliable
	ab, ba := newTraffic(a, b, seed, n, reads), newTraffic(b, a, seed+7, n, reads)
	ab.prepare()
	ba.prepare()
	a.Start()
	b.Start()
	var wg sync.WaitGroup
	for _, tr := range []*traffic{ab, ba} {
		wg.Go(func() {
			for i := range tr.ops {
				assert.NoError(t, tr.from.PostSend(&tr.ops[i]))
			}
		})
	}
	sendsA, receivesB := ab.results()
	sendsB, receivesA := ba.results()
	s, r := collect(a, len(sendsA), len(receivesA))
	require.Equal(t, sendsA, s)
	require.Equal(t, receivesA, r)
	s, r = collect(b, len(sendsB), len(receivesB))
	require.Equal(t, sendsB, s)
	require.Equal(t, receivesB, r)
	wg.Wait()
	if c.Level != segment.ReliableReception {
		// Writes without immediate data may not be there yet: a Send behind them says so.
		for _, p := range [][2]*side{{a, b}, {b, a}} {
			p[1].recv()
			p[0].send()
			p[0].sent(endpoint.OpSend, 0, 0)
			p[1].received(endpoint.OpReceive, 0, 0)
		}
	}
	ab.content(int(seed))
	ba.content(int(seed + 7))
	a.Abort()
	a.ended(endpoint.CauseClosed)
	b.ended(endpoint.CausePeerClosed)
	a.drained()
	b.drained()
}

// stuttering reads little at a time.
type stuttering struct {
	hidden
	rng *rand.Rand
}

func (c *stuttering) Read(b []byte) (int, error) {
	return c.hidden.Read(b[:min(len(b), 1+c.rng.IntN(4000))])
}

func crippled(t testing.TB) (net.Conn, net.Conn) {
	a, b := loopback(t)
	return &stuttering{hidden{a}, rand.New(rand.NewPCG(1, 2))}, &stuttering{hidden{b}, rand.New(rand.NewPCG(3, 4))}
}

// fragile is a connection that breaks after some octets.
type fragile struct {
	hidden
	mu   sync.Mutex
	left int
}

func (c *fragile) Write(b []byte) (int, error) {
	c.mu.Lock()
	n := min(len(b), c.left)
	c.left -= n
	c.mu.Unlock()
	k, err := c.hidden.Write(b[:n])
	if err == nil && n < len(b) {
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
		err = net.ErrClosed
	}
	return k, err
}

// The connection is reset after any number of octets: everything posted has one result,
// in order, on both sides, and what arrived whole is right.
func TestResetAtAnyOctet(t *testing.T) {
	for _, l := range levels {
		for left := range 400 {
			x, y := loopback(t)
			tr := transport{"", func(testing.TB) (net.Conn, net.Conn) { return &fragile{hidden: hidden{x}, left: left}, hidden{y} }}
			a, b := newPair(t, tr, endpoint.Config{Level: l, Segment: 256})
			m, dst := a.register(100, allRights), b.register(300, allRights)
			pattern(m.buf, 1)
			for i := range 3 {
				b.recv(dst.span(100*i, 100))
			}
			for range 4 {
				a.send(m.all()...)
			}
			a.Start()
			b.Start()
			for _, s := range []*side{a, b} {
				sends, receives, ends := 4, 3, 1
				if s == b {
					sends = 0
				} else {
					receives = 0
				}
				whole := true
				for sends+receives+ends > 0 {
					switch c := s.next(); c.kind {
					case "send":
						sends--
						require.True(t, whole || c.result.Flaws != 0, "success behind a failure")
						whole = c.result.Flaws == 0
					case "receive":
						at := 100 * (3 - receives)
						receives--
						if c.result.Flaws == 0 {
							require.True(t, whole)
							require.Equal(t, m.buf, dst.buf[at:at+100])
							require.Equal(t, uint32(100), c.result.Length)
						}
						whole = c.result.Flaws == 0
					case "ended":
						ends--
						require.NotEqual(t, endpoint.CauseMalformed, c.cause)
					case "event": // the fourth Send finds no receive
						require.Equal(t, endpoint.EventReceiveQueueEmpty, c.event)
					}
				}
				s.drained()
			}
		}
	}
}
