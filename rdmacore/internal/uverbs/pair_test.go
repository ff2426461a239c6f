//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// side is one end of a connection as a C program has it.
type side struct {
	*program
	pd, cq uint32
	qp     uabi.CreateQPResp
	mem    uint64
	mr     uabi.RegMRResp
	conn   *cm.Conn
	shared uint32 // the receive queue, if there is one
}

const (
	allRights = uabi.AccessLocalWrite | uabi.AccessRemoteWrite | uabi.AccessRemoteRead | uabi.AccessRemoteAtomic
	sideBytes = 64 << 10
)

func newSide(p *program, access uint32) *side {
	s := &side{program: p, pd: p.pd(), cq: p.cq(256, -1)}
	s.qp = p.qp(s.pd, s.cq, s.cq)
	s.mem, s.mr = p.region(s.pd, sideBytes, access)
	return s
}

// pair is two connected queue pairs, of a program each that have one device, as two opens in a process have.
func pair(t testing.TB, c Config, access uint32) (a, b *side) {
	t.Helper()
	p := started(t, c)
	o := openOf(t, p.dev)
	o.context()
	a, b = newSide(p, access), newSide(o, access)
	connect(t, a, b)
	return a, b
}

func connect(t testing.TB, a, b *side) {
	t.Helper()
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := cm.NewListener(nl, cm.ListenConfig{})
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			b.conn, err = r.Accept(ctx, b.dev.QP(b.qp.QPN).Verbs(), cm.Config{})
		}
		accepted <- err
	}()
	a.conn, err = cm.Dial(ctx, nl.Addr().String(), a.dev.QP(a.qp.QPN).Verbs(), cm.Config{Model: cm.PeerToPeer})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
}

func (s *side) verbs() *QP { return s.dev.QP(s.qp.QPN) }

// sge is n octets of the side's region from off on.
func (s *side) sge(off, n int) uabi.SGE {
	return uabi.SGE{Addr: s.mem + uint64(off), Length: uint32(n), Lkey: s.mr.Lkey}
}

// fill writes octets into the region.
func (s *side) fill(off int, b []byte) { require.NoError(s.t, umem.Write(s.mem+uint64(off), b)) }

func (s *side) read(off, n int) []byte {
	b := make([]byte, n)
	require.NoError(s.t, umem.Read(b, s.mem+uint64(off)))
	return b
}

func (s *side) send(w uabi.SendWR, sges ...uabi.SGE) (uabi.PostResp, error) {
	w.NumSGE = uint32(len(sges))
	return write[uabi.PostResp](s.program, uabi.CmdPostSend, &uabi.PostSend{
		QPHandle: s.qp.QPHandle, WRCount: 1, SGECount: uint32(len(sges)), WQESize: uint32(size[uabi.SendWR]()),
	}, umem.Bytes(&w), umem.Octets(sges))
}

func (s *side) recv(id uint64, sges ...uabi.SGE) (uabi.PostResp, error) {
	w := uabi.RecvWR{WRID: id, NumSGE: uint32(len(sges))}
	return write[uabi.PostResp](s.program, uabi.CmdPostRecv, &uabi.PostRecv{
		QPHandle: s.qp.QPHandle, WRCount: 1, SGECount: uint32(len(sges)), WQESize: uint32(size[uabi.RecvWR]()),
	}, umem.Bytes(&w), umem.Octets(sges))
}

// posted is send of what is not refused.
func (s *side) posted(w uabi.SendWR, sges ...uabi.SGE) {
	s.t.Helper()
	r, err := s.send(w, sges...)
	require.NoError(s.t, err)
	require.Zero(s.t, r.BadWR)
}

// poll polls once, for up to n.
func (s *side) poll(n int) []uabi.WC {
	s.t.Helper()
	return s.pollOf(s.cq, n)
}

func (p *program) pollOf(cq uint32, n int) []uabi.WC {
	p.t.Helper()
	at := p.alloc(256)
	resp := p.alloc(size[uabi.PollCQResp]() + n*size[uabi.WC]())
	_ = umem.Store(at, &struct {
		uabi.CmdHdr
		uabi.PollCQ
	}{uabi.CmdHdr{Command: uabi.CmdPollCQ, InWords: 6, OutWords: uint16((8 + n*size[uabi.WC]()) / 4)}, uabi.PollCQ{Response: resp, CQHandle: cq, NE: uint32(n)}})
	_, err := p.file.Write(at, 24)
	require.NoError(p.t, err)
	h, err := umem.Load[uabi.PollCQResp](resp)
	require.NoError(p.t, err)
	require.LessOrEqual(p.t, int(h.Count), n)
	list := make([]uabi.WC, h.Count)
	require.NoError(p.t, umem.Read(umem.Octets(list), resp+8))
	return list
}

// wait polls until there are n completions.
func (s *side) wait(n int) (list []uabi.WC) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); len(list) < n; {
		list = append(list, s.poll(n-len(list))...)
		require.True(s.t, time.Now().Before(end), "%d of %d completions", len(list), n)
	}
	return list
}

// one waits for a completion, which succeeds.
func (s *side) one() uabi.WC {
	s.t.Helper()
	w := s.wait(1)[0]
	assert.Equal(s.t, uint32(uabi.WCSuccess), w.Status, "%+v", w)
	assert.Equal(s.t, s.qp.QPN, w.QPNum)
	return w
}
