//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// hot is what a program writes again and again, in memory of its own: one Send, one receive, a poll of each end.
type hot struct {
	a, b                         *side
	send, recv, pollA, pollB     uint64
	sendLen, recvLen, pollLength int
	count                        [2]uint64
}

func newHot(t testing.TB, c Config) *hot {
	a, b := pair(t, c, allRights)
	h := &hot{a: a, b: b, send: a.alloc(256), recv: a.alloc(256), pollA: a.alloc(64), pollB: a.alloc(64)}
	store := func(at uint64, command uint32, body []byte) int {
		n := hdrSize + len(body)
		require.NoError(t, umem.Write(at, join(header(command, n/4, 1024), body)))
		return n
	}
	w, g := signaled(uabi.WRSend, 1), a.sge(0, 64)
	w.NumSGE = 1
	h.sendLen = store(h.send, uabi.CmdPostSend, join(umem.Bytes(&uabi.PostSend{Response: a.alloc(8192), QPHandle: a.qp.QPHandle, WRCount: 1, SGECount: 1, WQESize: wqe}), umem.Bytes(&w), umem.Bytes(&g)))
	r, g := uabi.RecvWR{WRID: 1, NumSGE: 1}, b.sge(0, 64)
	h.recvLen = store(h.recv, uabi.CmdPostRecv, join(umem.Bytes(&uabi.PostRecv{Response: a.alloc(8192), QPHandle: b.qp.QPHandle, WRCount: 1, SGECount: 1, WQESize: 16}), umem.Bytes(&r), umem.Bytes(&g)))
	for i, s := range []*side{a, b} {
		h.count[i] = a.alloc(8192)
		h.pollLength = store([]uint64{h.pollA, h.pollB}[i], uabi.CmdPollCQ, umem.Bytes(&uabi.PollCQ{Response: h.count[i], CQHandle: s.cq, NE: 16}))
	}
	return h
}

func (h *hot) write(t testing.TB, s *side, at uint64, n int) {
	if _, err := s.enter(at, n); err != nil {
		t.Fatal(err)
	}
}

// round sends a message and polls until both ends have completed.
func (h *hot) round(t testing.TB) {
	h.write(t, h.b, h.recv, h.recvLen)
	h.write(t, h.a, h.send, h.sendLen)
	for i, s := range []*side{h.a, h.b} {
		for n := uint32(0); n == 0; {
			h.write(t, s, []uint64{h.pollA, h.pollB}[i], h.pollLength)
			n, _ = umem.Load[uint32](h.count[i])
		}
	}
}

func BenchmarkRound(b *testing.B) {
	h := newHot(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		h.round(b)
	}
}

func BenchmarkPollEmpty(b *testing.B) {
	h := newHot(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		h.write(b, h.a, h.pollA, h.pollLength)
	}
}

func BenchmarkNotify(b *testing.B) {
	h := newHot(b, Config{})
	at := h.a.alloc(64)
	_ = umem.Write(at, join(header(uabi.CmdReqNotifyCQ, 4, 0), umem.Bytes(&uabi.ReqNotifyCQ{CQHandle: h.a.cq})))
	b.ReportAllocs()
	for b.Loop() {
		h.write(b, h.a, at, 16)
	}
}
