package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// paths is a client and a server with one of everything that data, or a
// work request without data, can go through.
type paths struct {
	a, b   *node
	qp     *verbs.QP // of the server, with an S-RQ
	srq    *verbs.SRQ
	window verbs.TaggedBuffer // at the server, bound to qp
	word   verbs.Remote       // there, for Atomics

	bindWindow *verbs.MW // of the client
	under      *verbs.MR
	fast       *verbs.MR
	pages      *verbs.Pages

	buf  [1]verbs.Completion
	reqs [2]verbs.Request
	recv [1]verbs.Recv
	bind verbs.BindRequest
	reg  verbs.FastRegisterRequest
	key  uint8
}

func newPaths(t testing.TB) *paths {
	p := &paths{
		a: newNode(t, verbs.QPConfig{SendDepth: 8, Privileged: true, Extensions: true}),
		b: newNode(t, verbs.QPConfig{}),
	}
	var err error
	p.srq, err = p.b.nic.CreateSRQ(verbs.SRQConfig{PD: p.b.pd})
	require.NoError(t, err)
	p.qp = p.b.newQP(t, verbs.QPConfig{SRQ: p.srq, Extensions: true})
	p.bindWindow, err = p.a.pd.AllocateWindow()
	require.NoError(t, err)
	p.under, err = p.a.pd.Register(make([]byte, 4096), localRights|verbs.BindWindow)
	require.NoError(t, err)
	p.fast, err = p.a.pd.AllocateRegion(verbs.AllocateConfig{})
	require.NoError(t, err)
	p.pages, err = p.a.nic.AllocatePages(4, 4096)
	require.NoError(t, err)
	p.recv[0] = verbs.Recv{SGL: p.b.mr.SGL(0, 64)}
	p.reg.Buffers = p.pages.List(5, 4*4096-5)
	p.reg.Addressing, p.reg.Access = verbs.ZeroBased, localRights

	mw, err := p.b.pd.AllocateWindow()
	require.NoError(t, err)
	under, err := p.b.pd.Register(make([]byte, 4096), localRights|verbs.BindWindow)
	require.NoError(t, err)
	b := mw.BindRequest(under, 0, 4096, verbs.RemoteRead|verbs.RemoteWrite, 1)
	join(t, p.a.qp, p.qp, false)
	require.NoError(t, second(p.qp.PostSend(verbs.Request{Op: verbs.OpBind, Bind: b})))
	p.b.wait(t, 1)
	p.window = verbs.BindBuffer(b)
	_, p.word = p.b.counter(t)
	return p
}

type path struct {
	name string
	run  func(idle func()) error
}

func (p *paths) all() []path {
	a, b := p.a, p.b
	// The list of a request is made once, as a program does that cares.
	local := a.mr.SGL(0, 64)
	one := func(w verbs.Request) func(func()) error {
		return func(idle func()) error {
			p.reqs[0] = w
			return p.exchange(1, 0, idle)
		}
	}
	told := func(w verbs.Request) func(func()) error { // with a receive at the server
		return func(idle func()) error {
			if _, err := p.srq.PostRecv(p.recv[:]...); err != nil {
				return err
			}
			p.reqs[0] = w
			return p.exchange(1, 1, idle)
		}
	}
	return []path{
		{"write", one(verbs.Request{Op: verbs.OpWrite, SGL: local, Remote: b.mr.Remote(0)})},
		{"read", one(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 64), Remote: b.mr.Remote(0)})},
		{"write through a window", one(verbs.Request{Op: verbs.OpWrite, SGL: local, Remote: p.window.Remote(8)})},
		{"read through a window", one(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 64), Remote: p.window.Remote(8)})},
		{"atomic", one(verbs.Request{Op: verbs.OpFetchAdd, Remote: p.word, Atomic: verbs.FetchAdd(1)})},
		{"send to an S-RQ", told(verbs.Request{SGL: local})},
		{"immediate to an S-RQ", told(verbs.Request{Op: verbs.OpImmediate, Immediate: 7})},
		{"write with immediate", told(verbs.Request{Op: verbs.OpWriteImmediate, SGL: local, Remote: b.mr.Remote(0)})},
		{"bind and invalidate", func(idle func()) error {
			p.key++
			p.bind = verbs.BindRequest{
				Window: p.bindWindow.STag(p.key), Region: p.under.STag(), VA: p.under.Base(), Length: 64, Access: verbs.RemoteRead,
			}
			p.reqs = [2]verbs.Request{{Op: verbs.OpBind, Bind: &p.bind}, {Op: verbs.OpInvalidate, Invalidate: p.bind.Window}}
			return p.exchange(2, 0, idle)
		}},
		{"fast-register and invalidate", func(idle func()) error {
			p.key++
			p.reg.STag = p.fast.WithKey(p.key)
			p.reqs = [2]verbs.Request{{Op: verbs.OpFastRegister, FastRegister: &p.reg}, {Op: verbs.OpInvalidate, Invalidate: p.reg.STag}}
			return p.exchange(2, 0, idle)
		}},
	}
}

// exchange posts the first n of reqs at the client, and waits for them and for
// received messages at the server. It polls both: what is polled receives.
func (p *paths) exchange(n, received int, idle func()) error {
	if _, err := p.a.qp.PostSend(p.reqs[:n]...); err != nil {
		return err
	}
	for n > 0 || received > 0 {
		switch {
		case p.a.cq.Poll(p.buf[:]) > 0:
			n--
		case p.b.cq.Poll(p.buf[:]) > 0:
			received--
		default:
			idle()
			continue
		}
		if err := p.buf[0].Err(); err != nil {
			return err
		}
	}
	return nil
}
