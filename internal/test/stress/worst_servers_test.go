package stress

import (
	"context"
	"encoding/binary"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/ulp/rsocket"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/vipl"
)

// program is one over the verbs that takes every client.
type program struct {
	*end
	mr     *verbs.MR // 1 MiB, which all clients share
	shared *verbs.SRQ
}

const programMemory = 1 << 20

// serve runs a program: make makes a client's queue pair, and then is what is done with it once it is connected.
func serve(t *testing.T, shared bool, then func(*program, *verbs.QP)) server {
	p := &program{end: newEnd(t)}
	near := newEnd(t)
	var err error
	p.cq, err = p.nic.CreateCQ(verbs.CQConfig{Entries: 1 << 16})
	require.NoError(t, err)
	p.mr, err = p.pd.Register(make([]byte, programMemory), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead)
	require.NoError(t, err)
	if shared {
		p.shared, err = p.nic.CreateSRQ(verbs.SRQConfig{PD: p.pd, Depth: 4096})
		require.NoError(t, err)
		for i := range 4096 {
			_, err = p.shared.PostRecv(verbs.Recv{ID: uint64(i), SGL: p.mr.SGL(0, 1024)})
			require.NoError(t, err)
		}
	}
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	to := p.mr.Remote(0)
	where := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, to.TO), uint32(to.STag))
	serving(t, func(ctx context.Context, wg *sync.WaitGroup) {
		wg.Go(func() { p.reap(ctx) })
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			wg.Go(func() {
				qp, err := p.nic.CreateQP(verbs.QPConfig{PD: p.pd, SendCQ: p.cq, RecvCQ: p.cq, SRQ: p.shared})
				if !assert.NoError(t, err) {
					return
				}
				if c, err := req.Accept(ctx, qp, cm.Config{PrivateData: where}); err == nil {
					then(p, qp)
					<-c.Done()
				}
				assert.NoError(t, qp.Destroy())
			})
		}
	}, func() { _ = l.Close() })
	return server{l.Addr().String(), droppedpeer.MPA(nil), near.connector(l.Addr().String(), nil)}
}

// reap takes completions: a queue pair that has been destroyed is there until the last of its own was.
func (p *program) reap(ctx context.Context) {
	var done [64]verbs.Completion
	for err := error(nil); err == nil; {
		_, err = p.cq.Wait(ctx, done[:])
	}
}

// startIdle does nothing with its clients.
func startIdle(t *testing.T) server { return serve(t, false, func(*program, *verbs.QP) {}) }

// startReceiving has a receive posted for each.
func startReceiving(t *testing.T) server {
	return serve(t, false, func(p *program, qp *verbs.QP) {
		_, _ = qp.PostRecv(verbs.Recv{SGL: p.mr.All()}) // of a client that has gone
	})
}

// startShared has its clients share receives.
func startShared(t *testing.T) server { return serve(t, true, func(*program, *verbs.QP) {}) }

// startSending sends each 16 MiB.
func startSending(t *testing.T) server { return serve(t, false, sendAll) }

func sendAll(p *program, qp *verbs.QP) {
	for range 16 {
		if _, err := qp.PostSend(verbs.Request{Flags: verbs.Unsignaled, SGL: p.mr.All()}); err != nil {
			return // the client has gone
		}
	}
}

// startUndecided accepts clients without private data, and does not answer others until many of those have come behind them.
func startUndecided(t *testing.T) server {
	near, far := newEnd(t), newEnd(t)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	serving(t, func(ctx context.Context, wg *sync.WaitGroup) {
		var undecided []*cm.Request
		behind := 0
		decide := func() {
			for _, r := range undecided {
				_ = r.Reject(nil) // of a client that has gone
			}
			undecided = nil
		}
		defer decide()
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			if len(req.PrivateData()) > 0 {
				undecided, behind = append(undecided, req), 0
				continue
			}
			if behind++; behind == honestOnes {
				decide()
			}
			wg.Go(func() { far.accept(ctx, t, req) })
		}
	}, func() { _ = l.Close() })
	return server{l.Addr().String(), droppedpeer.MPA(make([]byte, 508)), near.connector(l.Addr().String(), nil)}
}

// startVIPL is a program of vipl that has a receive posted for each client, and sends it 2 MiB.
func startVIPL(t *testing.T) server {
	nic, err := vipl.OpenNic("127.0.0.1:0", vipl.Config{MatchTimeout: 2 * time.Second})
	require.NoError(t, err)
	require.NoError(t, nic.ErrorCallback(func(*vipl.ErrorDescriptor) {}))
	about, err := nic.QueryNic()
	require.NoError(t, err)
	ptag, err := nic.CreatePtag()
	require.NoError(t, err)
	const posts, length = 33, 1 << 16
	slots := 300
	if os.Getenv("SOFTRNIC_SIEGE_SECONDS") != "" {
		slots = 2200
	}
	mem, descs := make([]byte, (1+slots)*length), make([]vipl.Descriptor, posts*slots)
	handle, err := nic.RegisterMem(mem, &vipl.MemAttributes{Ptag: ptag})
	require.NoError(t, err)
	dh, err := nic.RegisterDescriptors(descs, ptag)
	require.NoError(t, err)
	free := make(chan int, slots) // a client has a place for what it receives; what is sent is the same for all
	for i := range slots {
		free <- i
	}
	part := func(i int) vipl.DataSegment {
		return vipl.DataSegment{Data: vipl.AddressOf(mem) + vipl.Address(i*length), Handle: handle, Length: length}
	}
	at := &vipl.NetAddress{HostAddress: about.LocalNicAddress, Discriminator: []byte("siege")}
	attributes := &vipl.ViAttributes{ReliabilityLevel: vipl.ServiceUnreliable, MaxTransferSize: length, Ptag: ptag}
	serving(t, func(ctx context.Context, wg *sync.WaitGroup) {
		for {
			c, err := nic.ConnectWait(ctx, at)
			if err != nil {
				return
			}
			i := <-free // that of a client that has gone, at last
			own := descs[posts*i:][:posts]
			own[0].SetRecv(part(1 + i))
			for k := range own[1:] {
				own[1+k].SetSend(part(0))
			}
			wg.Go(func() {
				serveVI(ctx, t, nic, c, attributes, dh, own)
				clear(own)
				free <- i
			})
		}
	}, func() {})
	t.Cleanup(func() { assert.NoError(t, nic.CloseNic()) })
	to, err := at.AddrPort()
	require.NoError(t, err)
	peer := vitcp.Address{Host: netip.MustParseAddrPort(to.String()), Discriminator: "siege"}
	return server{to.String(), droppedpeer.VI("siege", segment.Unreliable), func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		a, err := vitcp.Dial(ctx, vitcp.Address{}, peer, vitcp.Config{})
		took := time.Since(start)
		if err == nil {
			err = a.Conn.Close()
		}
		return took, err
	}}
}

// serveVI serves a client with Descriptors: one for a receive, the others for what it is sent.
func serveVI(ctx context.Context, t *testing.T, nic *vipl.Nic, c *vipl.Conn, a *vipl.ViAttributes, dh vipl.MemHandle, descs []vipl.Descriptor) {
	v, err := nic.CreateVi(a, nil, nil)
	if !assert.NoError(t, err) || !assert.NoError(t, v.PostRecv(&descs[0], dh)) {
		return
	}
	if c.ConnectAccept(v) == nil {
		for i := range descs[1:] {
			_ = v.PostSend(&descs[1+i], dh) // of a client that has gone
		}
		_, _ = v.RecvWait(ctx)
	}
	assert.NoError(t, v.Disconnect())
	for _, done := range []func() (*vipl.Descriptor, error){v.RecvDone, v.SendDone} {
		for err := error(nil); err == nil; {
			_, err = done()
		}
	}
	assert.NoError(t, v.DestroyVi())
}

// startUnread is a program over rsocket that does not read, and writes 16 MiB.
func startUnread(t *testing.T) server {
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	all := make([]byte, 16<<20)
	serving(t, func(ctx context.Context, wg *sync.WaitGroup) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				defer stop()
				_, _ = c.Write(all)
			})
		}
	}, func() { _ = l.Close() })
	addr := l.Addr().String()
	return server{addr, droppedpeer.MPA(rsocketHello), func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		c, err := rsocket.Config{}.DialContext(ctx, "tcp", addr)
		if err != nil {
			return 0, err
		}
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
		return time.Since(start), err
	}}
}
