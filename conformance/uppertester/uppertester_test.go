package uppertester_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/internal/rping"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

const patience = time.Minute

var none uppertester.None

// local is a Service that ends with the test.
func local(t *testing.T) uppertester.Tester {
	s, err := uppertester.New("127.0.0.1")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// serve is where Serve serves until the test ends.
func serve(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, uppertester.Serve(ctx, l)) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return l.Addr().String()
}

func remote(t *testing.T) uppertester.Tester {
	r, err := uppertester.Dial(context.Background(), serve(t))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

// testers are both kinds.
var testers = map[string]func(*testing.T) uppertester.Tester{"local": local, "remote": remote}

func open(t *testing.T, u uppertester.Tester, a uppertester.OpenArgs) uppertester.Opened {
	var o uppertester.Opened
	require.NoError(t, u.Open(a, &o))
	return o
}

// connect connects queue pair a of u, which listens, and b of v.
func connect(t *testing.T, u, v uppertester.Tester, a, b int) (ca, cb uppertester.Connection) {
	var at uppertester.Listening
	require.NoError(t, u.Listen(uppertester.ConnectArgs{QP: a, PrivateData: []byte("from a"), P2P: true}, &at))
	require.NoError(t, v.Dial(uppertester.ConnectArgs{QP: b, Addr: at.Addr, PrivateData: []byte("from b"), P2P: true}, &none))
	require.NoError(t, u.Connected(uppertester.Wait{Of: a, Timeout: patience}, &ca))
	require.NoError(t, v.Connected(uppertester.Wait{Of: b, Timeout: patience}, &cb))
	return ca, cb
}

// TestConversation: everything once, between two testers of either kind.
func TestConversation(t *testing.T) {
	const all = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.BindWindow
	for name, of := range testers {
		t.Run(name, func(t *testing.T) {
			u, v := of(t), of(t)
			a := open(t, u, uppertester.OpenArgs{SRQ: 1, SRQDepth: 4, IRD: 3})
			b := open(t, v, uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2, ORD: 2})
			ca, cb := connect(t, u, v, a.QP, b.QP)
			assert.Empty(t, ca.Failed)
			assert.Empty(t, cb.Failed)
			assert.Equal(t, "from b", string(ca.PrivateData))
			assert.Equal(t, "from a", string(cb.PrivateData))
			assert.True(t, cb.CRC)
			assert.Equal(t, 2, ca.PeerORD)
			assert.Equal(t, 2, cb.ORD)

			var sink, source uppertester.Region
			require.NoError(t, u.Register(uppertester.RegisterArgs{Len: 64, Seed: 1, Access: all}, &sink))
			require.NoError(t, v.Register(uppertester.RegisterArgs{Len: 64, Seed: 2, Access: all, ZeroBased: true, Key: 9}, &source))
			assert.Zero(t, source.Base)
			assert.EqualValues(t, 9, source.STag.Key())
			require.NoError(t, u.Notify(uppertester.NotifyArgs{CQ: a.RecvCQ, Type: verbs.NotifySolicited}, &none))
			var p uppertester.Posted
			sge := verbs.SGE{STag: sink.STag, TO: sink.Base, Length: 8}
			require.NoError(t, u.PostRecv(uppertester.PostRecvArgs{SRQ: 1, Recvs: []verbs.Recv{{ID: 5, SGL: []verbs.SGE{sge}}}}, &p))
			assert.Equal(t, 1, p.N)
			require.NoError(t, v.Fill(uppertester.FillArgs{Region: source.Region, Off: 8, Octets: []byte("octets")}, &none))
			require.NoError(t, v.PostSend(uppertester.PostSendArgs{QP: b.QP, Sends: []verbs.Request{
				{ID: 6, Op: verbs.OpSendSE, SGL: []verbs.SGE{{STag: source.STag, TO: 8, Length: 6}}},
				{ID: 7, Op: verbs.OpRead, Local: verbs.SGE{STag: source.STag, Length: 4}, Remote: verbs.Remote{STag: sink.STag, TO: sink.Base}},
			}}, &p))
			assert.Equal(t, 2, p.N)
			var c uppertester.Completions
			require.NoError(t, u.Poll(uppertester.PollArgs{CQ: a.RecvCQ, N: 1, Timeout: patience}, &c))
			assert.Equal(t, []verbs.Completion{{ID: 5, QP: a.ID, Bytes: 6, Op: verbs.OpRecv}}, c.Completions)
			var yes uppertester.Answer
			require.NoError(t, u.Notified(uppertester.Wait{Of: a.RecvCQ, Timeout: patience}, &yes))
			assert.True(t, yes.Yes)
			c = uppertester.Completions{}
			require.NoError(t, v.Poll(uppertester.PollArgs{CQ: 1, N: 2, Timeout: patience}, &c))
			assert.Equal(t, []verbs.Completion{{ID: 6, QP: b.ID, Op: verbs.OpSendSE}, {ID: 7, QP: b.ID, Bytes: 4, Op: verbs.OpRead}}, c.Completions)
			var o uppertester.Octets
			require.NoError(t, v.Memory(source.Region, &o))
			want := uppertester.Pattern(2, 64)
			copy(want[8:], "octets")
			copy(want, "octe")
			assert.Equal(t, want, o.Octets)

			require.NoError(t, v.Modify(uppertester.ModifyArgs{QP: b.QP, Next: verbs.StateClosing}, &none))
			var q uppertester.QPState
			require.NoError(t, u.Ended(uppertester.Wait{Of: a.QP, Timeout: patience}, &q))
			assert.Equal(t, verbs.StateIdle, q.State)
			var e uppertester.Events
			require.NoError(t, u.Events(uppertester.EventsArgs{N: 1, Timeout: patience}, &e))
			assert.Equal(t, []verbs.Event{{ID: verbs.EventLLPCloseComplete, QP: a.ID}}, e.Events)
			require.NoError(t, v.Ended(uppertester.Wait{Of: b.QP, Timeout: patience}, &q))
			require.NoError(t, v.Destroy(b.QP, &none))
			require.ErrorIs(t, v.Query(b.QP, &q), verbs.ErrInvalidQP)
		})
	}
}

// TestMemory: the verbs of chapter 7.
func TestMemory(t *testing.T) {
	for name, of := range testers {
		t.Run(name, func(t *testing.T) {
			u := of(t)
			qp := open(t, u, uppertester.OpenArgs{}).QP
			var r, s, g uppertester.Region
			require.NoError(t, u.Register(uppertester.RegisterArgs{PD: 3, Len: 9, Access: verbs.LocalRead, QP: qp}, &r))
			require.NoError(t, u.Reregister(uppertester.ReregisterArgs{
				Region: r.Region, RegisterArgs: uppertester.RegisterArgs{PD: 4, Len: 5, Access: verbs.LocalWrite},
			}, &r))
			require.NoError(t, u.Share(uppertester.ShareArgs{Region: r.Region, PD: 4, Access: verbs.LocalRead, ZeroBased: true}, &s))
			var q uppertester.RegionState
			require.NoError(t, u.QueryRegion(s.Region, &q))
			assert.True(t, q.Shared)
			assert.EqualValues(t, 5, q.Length)
			require.NoError(t, u.Allocate(uppertester.RegisterArgs{RemoteAccess: true}, &g))
			require.NoError(t, u.QueryRegion(g.Region, &q))
			assert.False(t, q.Valid)
			var w uppertester.Window
			require.NoError(t, u.AllocateWindow(4, &w))
			var ws uppertester.WindowState
			require.NoError(t, u.QueryWindow(w.Window, &ws))
			assert.False(t, ws.Valid)
			require.NoError(t, u.DeallocateWindow(w.Window, &none))
			require.NoError(t, u.Deregister(r.Region, &none))

			require.ErrorIs(t, u.Deregister(r.Region, &none), verbs.ErrInvalidSTag)
			require.ErrorIs(t, u.Register(uppertester.RegisterArgs{Len: 1}, &r), verbs.ErrInvalidAccess)
			require.ErrorIs(t, u.QueryWindow(w.Window, &ws), verbs.ErrInvalidSTag)
			require.ErrorContains(t, u.QueryRegion(77, &q), "there is no region 77")
			require.ErrorContains(t, u.Fill(uppertester.FillArgs{Region: s.Region, Off: 4, Octets: []byte("ab")}, &none), "octets 4 to 6")
		})
	}
}

// TestRefusals: Immediate Errors are what they are, from afar too.
func TestRefusals(t *testing.T) {
	for name, of := range testers {
		t.Run(name, func(t *testing.T) {
			u := of(t)
			o := open(t, u, uppertester.OpenArgs{SendDepth: 2})
			require.ErrorIs(t, u.Modify(uppertester.ModifyArgs{QP: o.QP, Next: verbs.StateClosing}, &none), verbs.ErrInvalidState)
			require.ErrorIs(t, u.Open(uppertester.OpenArgs{IRD: -1}, &o), verbs.ErrInvalidModifier)
			require.ErrorIs(t, u.Notify(uppertester.NotifyArgs{CQ: o.SendCQ, Type: 77}, &none), verbs.ErrInvalidNotifyType)
			var p uppertester.Posted
			err := u.PostSend(uppertester.PostSendArgs{QP: o.QP, Sends: make([]verbs.Request, 9999)}, &p)
			require.ErrorIs(t, err, verbs.ErrQueueFull)
			require.NotErrorIs(t, err, verbs.ErrInvalidState)
			require.ErrorContains(t, u.Destroy(4, &none), "there is no queue pair 4")
			var c uppertester.Connection
			require.Error(t, u.Connected(uppertester.Wait{Of: o.QP, Timeout: time.Millisecond}, &c))
		})
	}
}

// TestFailedConnections: what came of Listen and Dial is told.
func TestFailedConnections(t *testing.T) {
	u := local(t)
	a, b, other := open(t, u, uppertester.OpenArgs{}).QP, open(t, u, uppertester.OpenArgs{}).QP, open(t, u, uppertester.OpenArgs{}).QP
	var at uppertester.Listening
	var c uppertester.Connection
	require.NoError(t, u.Listen(uppertester.ConnectArgs{QP: a, Reject: true, PrivateData: []byte("no")}, &at))
	require.NoError(t, u.Dial(uppertester.ConnectArgs{QP: b, Addr: at.Addr}, &none))
	require.NoError(t, u.Connected(uppertester.Wait{Of: b, Timeout: patience}, &c))
	assert.True(t, c.Rejected)
	assert.Equal(t, "no", string(c.PrivateData))
	assert.NotEmpty(t, c.Failed)
	require.NoError(t, u.Connected(uppertester.Wait{Of: a, Timeout: patience}, &c))
	assert.True(t, c.Rejected)

	require.NoError(t, u.Dial(uppertester.ConnectArgs{QP: b, Addr: at.Addr}, &none)) // nobody listens any more
	require.NoError(t, u.Connected(uppertester.Wait{Of: b, Timeout: patience}, &c))
	assert.NotEmpty(t, c.Failed)

	require.NoError(t, u.Listen(uppertester.ConnectArgs{QP: other}, &at))
	nc, err := net.Dial("tcp", at.Addr)
	require.NoError(t, err)
	_, err = nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	require.NoError(t, u.Connected(uppertester.Wait{Of: other, Timeout: patience}, &c))
	assert.NotEmpty(t, c.Failed)
	require.NoError(t, nc.Close())
}

// TestPing plays a round with the program that talks as rping does.
func TestPing(t *testing.T) {
	u := local(t)
	var at uppertester.Listening
	require.NoError(t, u.Ping(uppertester.ConnectArgs{}, &at))
	nc, err := net.Dial("tcp", at.Addr)
	require.NoError(t, err)
	p, _, err := rawpeer.Initiate(nc, mpa.Startup{Rev: 1, CRC: true})
	require.NoError(t, err)
	defer p.Close()
	for i := range uint32(2) {
		msg := make([]byte, rping.MessageSize)
		rping.Buffer{Remote: verbs.Remote{STag: 7, TO: 8}, Length: 5}.Put(msg)
		require.NoError(t, p.Send(rawpeer.Send(2*i+1, msg).Octets()))
		s, err := p.Segment()
		require.NoError(t, err)
		req, ok := rdmap.ParseReadRequest(s.Payload())
		require.True(t, ok)
		assert.EqualValues(t, 7, req.SourceSTag)
		require.NoError(t, p.Send(rawpeer.ReadResponse(req.SinkSTag, req.SinkTO, []byte("hello")).Octets()))
		_, err = p.Segment()
		require.NoError(t, err)
		require.NoError(t, p.Send(rawpeer.Send(2*i+2, msg).Octets()))
		s, err = p.Segment()
		require.NoError(t, err)
		assert.Equal(t, "hello", string(s.Payload()))
		_, err = p.Segment()
		require.NoError(t, err)
	}
}

// TestPingBoth: a client and a server of it keep each other busy until one ends.
func TestPingBoth(t *testing.T) {
	u, v := local(t), local(t)
	var at uppertester.Listening
	require.NoError(t, u.Ping(uppertester.ConnectArgs{}, &at))
	require.NoError(t, v.Ping(uppertester.ConnectArgs{Addr: at.Addr}, &at))
}

// TestGone: a session whose other side is gone ends, whatever it waits for.
func TestGone(t *testing.T) {
	addr := serve(t)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := uppertester.Dial(ctx, addr)
	require.NoError(t, err)
	o := open(t, r, uppertester.OpenArgs{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var c uppertester.Completions
		assert.ErrorIs(t, r.Poll(uppertester.PollArgs{CQ: o.SendCQ, N: 1, Timeout: time.Hour}, &c), context.Canceled)
	})
	var c uppertester.Connection
	require.Error(t, r.Connected(uppertester.Wait{Of: o.QP, Timeout: time.Millisecond}, &c)) // Poll is under way
	cancel()
	wg.Wait()
	_ = r.Close()

	_, err = uppertester.Dial(context.Background(), "127.0.0.1:1")
	require.Error(t, err)
	assert.False(t, errors.Is(err, verbs.ErrInvalidQP))
}
