package verbs_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// raceSecondsEnv is how long TestRevokeUnderTraffic runs.
const raceSecondsEnv = "SOFTRNIC_RACE_SECONDS"

// TestRevokeUnderTraffic takes memory away from peers that write to it as fast as
// they can, in every way that there is, many at a time on one RNIC. Once a way has
// returned nothing is placed any more: the memory is cleared then, which the race
// detector watches, and looked at when the stream is gone.
func TestRevokeUnderTraffic(t *testing.T) {
	duration := time.Second
	if s := os.Getenv(raceSecondsEnv); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		duration = time.Duration(n) * time.Second
	}
	server, client := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	for i := range client.mr.Bytes() {
		client.mr.Bytes()[i] = 0xAB
	}
	var wg sync.WaitGroup
	end := time.Now().Add(duration)
	rounds := make([]int, len(revocations))
	for i, r := range revocations {
		wg.Go(func() {
			for ; rounds[i] == 0 || time.Now().Before(end) && !t.Failed(); rounds[i]++ {
				l := newLane(t, server, client, rounds[i]%2 == 0)
				l.round(r.open, r.revoke)
				assert.False(t, t.Failed(), r.name)
			}
		})
	}
	wg.Wait()
	for i, r := range revocations {
		t.Logf("%-20s %d rounds", r.name, rounds[i])
	}
}

// lane is one connection and the memory that its client writes to.
type lane struct {
	t      testing.TB
	server *node
	qp     *verbs.QP // of the server; completions go to cq
	cq     *verbs.CQ
	peer   *verbs.QP // of the client
	peerCQ *verbs.CQ
	source *verbs.MR
	buf    []byte
	mr     *verbs.MR
	mw     *verbs.MW
	extra  chan verbs.Request // for the client to post once
}

const (
	laneBuffer = 64 << 10
	laneWrite  = 16 << 10
)

func newLane(t testing.TB, server, client *node, tcp bool) *lane {
	l := &lane{t: t, server: server, source: client.mr, buf: make([]byte, laneBuffer), extra: make(chan verbs.Request, 1)}
	l.qp, l.cq = laneQP(t, server)
	l.peer, l.peerCQ = laneQP(t, client)
	x, y := net.Pipe()
	if tcp {
		x, y = tcpConns(t)
	}
	start(t, l.qp, y, mpa.Responder, false)
	start(t, l.peer, x, mpa.Initiator, false)
	return l
}

func laneQP(t testing.TB, n *node) (*verbs.QP, *verbs.CQ) {
	cq, err := n.nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	qp, err := n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: cq, RecvCQ: cq, SendDepth: 16, Privileged: true})
	require.NoError(t, err)
	return qp, cq
}

// revocation is a way to open memory to a peer and one to close it again.
type revocation struct {
	name   string
	open   func(*lane) verbs.TaggedBuffer
	revoke func(*lane, verbs.TaggedBuffer)
}

var revocations = []revocation{
	{"deregister", (*lane).register, func(l *lane, _ verbs.TaggedBuffer) { l.must(l.mr.Deregister()) }},
	{"reregister", (*lane).register, func(l *lane, _ verbs.TaggedBuffer) {
		l.must(l.mr.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, laneBuffer), Access: allRights, Key: 200}))
	}},
	{"invalidate", (*lane).register, (*lane).invalidate},
	{"invalidate remotely", (*lane).register, (*lane).invalidateRemotely},
	{"fast-register", (*lane).fastRegister, (*lane).invalidate},
	{"deallocate window", (*lane).bind, func(l *lane, _ verbs.TaggedBuffer) { l.must(l.mw.Deallocate()) }},
	{"invalidate window", (*lane).bind, (*lane).invalidate},
	{"invalidate remotely W", (*lane).bind, (*lane).invalidateRemotely},
	{"rebind", (*lane).bind, (*lane).rebind},
	{"destroy", (*lane).register, func(l *lane, _ verbs.TaggedBuffer) { l.must(l.qp.Destroy()) }},
}

func (l *lane) must(err error) { require.NoError(l.t, err) }

func (l *lane) register() verbs.TaggedBuffer {
	var err error
	l.mr, err = l.server.pd.Register(l.buf, allRights|verbs.BindWindow)
	l.must(err)
	return l.mr.Buffer()
}

func (l *lane) bind() verbs.TaggedBuffer {
	l.register()
	var err error
	l.mw, err = l.server.pd.AllocateWindow()
	l.must(err)
	b := l.mw.BindRequest(l.mr, 0, laneBuffer, verbs.RemoteWrite, 1)
	require.Equal(l.t, verbs.StatusSuccess, l.run(verbs.Request{Op: verbs.OpBind, Bind: b}))
	return verbs.BindBuffer(b)
}

func (l *lane) fastRegister() verbs.TaggedBuffer {
	pages, err := l.server.nic.AllocatePages(laneBuffer/4096, 4096)
	l.must(err)
	l.buf = pages.Bytes()
	l.mr, err = l.server.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true})
	l.must(err)
	f := &verbs.FastRegisterRequest{
		STag: l.mr.STag(), Buffers: pages.List(0, laneBuffer), Access: allRights, Addressing: verbs.ZeroBased,
	}
	require.Equal(l.t, verbs.StatusSuccess, l.run(verbs.Request{Op: verbs.OpFastRegister, FastRegister: f}))
	l.must(pages.Deallocate()) // the region has the memory
	return verbs.FastRegisterBuffer(f)
}

// run has the server execute a request.
func (l *lane) run(w verbs.Request) verbs.Status {
	require.NoError(l.t, second(l.qp.PostSend(w)))
	return waitOne(l.t, l.cq).Status
}

// invalidate is an Invalidate Local STag. The next write then ends the stream,
// maybe before its completion is there: it is flushed then.
func (l *lane) invalidate(b verbs.TaggedBuffer) {
	if l.run(verbs.Request{Op: verbs.OpInvalidate, Invalidate: b.STag}) != verbs.StatusSuccess {
		<-l.qp.Done()
	}
}

func (l *lane) invalidateRemotely(b verbs.TaggedBuffer) {
	require.NoError(l.t, second(l.qp.PostRecv(verbs.Recv{})))
	l.extra <- verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: b.STag}
	if c := waitOne(l.t, l.cq); c.Status != verbs.StatusSuccess {
		<-l.qp.Done()
	} else {
		assert.Equal(l.t, b.STag, c.Invalidated)
	}
}

// rebind takes the window to other memory, under another key.
func (l *lane) rebind(b verbs.TaggedBuffer) {
	other, err := l.server.pd.Register(make([]byte, laneBuffer), localRights|verbs.BindWindow)
	l.must(err)
	n, err := l.qp.PostSend(
		verbs.Request{Op: verbs.OpInvalidate, Invalidate: b.STag},
		verbs.Request{Op: verbs.OpBind, Bind: l.mw.BindRequest(other, 0, laneBuffer, verbs.RemoteWrite, 2)})
	for range n {
		if waitOne(l.t, l.cq).Status != verbs.StatusSuccess {
			<-l.qp.Done()
		}
	}
	if err != nil { // the stream ended between the two
		assert.ErrorIs(l.t, err, verbs.ErrInvalidState)
		<-l.qp.Done()
	}
	l.mr, other = other, l.mr
	l.must(other.Deregister())
}

// round opens, lets the client write, and revokes.
func (l *lane) round(open func(*lane) verbs.TaggedBuffer, revoke func(*lane, verbs.TaggedBuffer)) {
	// The server is the Responder: it sends nothing, and needs no first FPDU for
	// its memory operations.
	target := open(l)
	done, placed, ended := l.qp.Done(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.blast(target, placed)
	}()
	<-placed
	revoke(l, target)
	assert.EqualValues(l.t, 0xAB, l.buf[0])
	clear(l.buf) // the program's again
	<-done
	<-ended
	for _, v := range l.buf {
		if v != 0 {
			assert.Fail(l.t, "placed after the memory was revoked")
			break
		}
	}
	l.cleanUp()
}

// blast writes until the stream ends. It tells when the whole buffer has been
// written once: an RDMA Read is answered after the writes before it.
func (l *lane) blast(to verbs.TaggedBuffer, placed chan<- struct{}) {
	for i := 0; ; i++ {
		off := i * laneWrite % laneBuffer
		w := verbs.Request{Op: verbs.OpWrite, SGL: l.source.SGL(0, laneWrite), Remote: to.Remote(off)}
		if i == laneBuffer/laneWrite {
			w = verbs.Request{Op: verbs.OpRead}
		}
		select {
		case w = <-l.extra:
		default:
		}
		if !l.push(w) {
			return
		}
		for w.Op == verbs.OpRead {
			if waitOne(l.t, l.peerCQ).Op == verbs.OpRead {
				close(placed)
				break
			}
		}
	}
}

// push posts, as soon as there is room. It reports false if the stream has ended.
func (l *lane) push(w verbs.Request) bool {
	var done [16]verbs.Completion
	for {
		_, err := l.peer.PostSend(w)
		if err == nil {
			return true
		}
		if !errors.Is(err, verbs.ErrQueueFull) {
			assert.ErrorIs(l.t, err, verbs.ErrInvalidState)
			return false
		}
		if l.peerCQ.Poll(done[:]) > 0 {
			continue
		}
		if l.peer.State() == verbs.StateIdle { // over a pipe a reset looks like a close
			return false
		}
		runtime.Gosched()
	}
}

// cleanUp destroys what is left, and takes it for granted that some of it is gone.
func (l *lane) cleanUp() {
	if l.mw != nil {
		_ = l.mw.Deallocate()
	}
	_ = l.qp.Destroy()
	l.must(l.peer.Destroy())
	_ = l.mr.Deregister()
	l.must(l.cq.Destroy())
	l.must(l.peerCQ.Destroy())
}
