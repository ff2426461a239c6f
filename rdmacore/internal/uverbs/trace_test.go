//go:build linux && (amd64 || arm64)

package uverbs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestTrace: each command is a line that a person can read, with what it was asked, what it answered or why not.
func TestTrace(t *testing.T) {
	var lines []string
	p := started(t, Config{Trace: func(s string) { lines = append(lines, s) }})
	last := func() string { return lines[len(lines)-1] }
	assert.Equal(t, fmt.Sprintf("uverbs GET_CONTEXT() = 0 (async_fd=%d, num_comp_vectors=1)", p.asyncFD), last())
	pd := p.pd()
	assert.Equal(t, fmt.Sprintf("uverbs ALLOC_PD() = 0 (pd=%d)", pd), last())
	cq := p.cq(16, -1)
	assert.Equal(t, fmt.Sprintf("uverbs CREATE_CQ(user_handle=0xc0ffee, cqe=16, comp_channel=-1) = 0 (cq=%d, cqe=16)", cq), last())
	qp := p.qp(pd, cq, cq)
	assert.Contains(t, last(), fmt.Sprintf("uverbs CREATE_QP(user_handle=0xabcd, pd=%d, send_cq=%d, recv_cq=%d, max_send_wr=32,", pd, cq, cq))
	assert.Contains(t, last(), fmt.Sprintf(") = 0 (qp=%d, qpn=%#x, max_send_wr=", qp.QPHandle, qp.QPN))
	s := &side{program: p, pd: pd, cq: cq, qp: qp}
	s.mem, s.mr = p.region(pd, 4096, uabi.AccessLocalWrite)
	_ = s.to(uabi.QPSInit)
	assert.Contains(t, last(), "qp_state=INIT")
	_ = s.to(uabi.QPSRTS)
	assert.Contains(t, last(), " = -1 EINVAL (from INIT to RTS there is no way)")
	w := rdma(signaled(uabi.WRRDMAWriteWithImm, 7), s, 0)
	s.posted(w, s.sge(0, 8))
	assert.Equal(t, fmt.Sprintf("uverbs POST_SEND(qp=%d, [{wr_id=7, RDMA_WRITE_WITH_IMM, SIGNALED, remote=%#x:%#x, imm=00000000, sge=[%#x+8:%#x]}]) = 0",
		qp.QPHandle, s.mem, s.mr.Rkey, s.mem, s.mr.Lkey), last())
	_, _ = s.recv(9, s.sge(0, 8))
	assert.Contains(t, last(), "uverbs POST_RECV(qp=1, [{wr_id=9, sge=[")
	_, _ = s.send(signaled(50, 1))
	assert.Contains(t, last(), " = -1 EOPNOTSUPP (operation 50: the device has none such) bad_wr=1")
	_ = s.to(uabi.QPSErr)
	s.wait(2)
	for _, want := range []string{"uverbs POLL_CQ(cq=1, ne=", "wr_id=7, RDMA_WRITE, WR_FLUSH_ERR (", "qpn=" + fmt.Sprintf("%#x", qp.QPN)} {
		assert.Contains(t, strings.Join(lines, "\n"), want)
	}
	_ = p.raw(header(99, 2, 0))
	assert.Equal(t, "uverbs ?(0x63) = -1 EOPNOTSUPP (there is no command 0x63)", last())
}

// TestFailureIsTold: why a queue pair has failed is told to the user once, in one sentence, whether an event or a completion
// tells the program; and each time in the trace.
func TestFailureIsTold(t *testing.T) {
	said, traced := make(chan string, 64), make(chan string, 256)
	c := Config{Report: func(s string) { said <- s }, Trace: func(s string) {
		if strings.Contains(s, "failed(") {
			traced <- s
		}
	}}
	a, b := pair(t, c, uabi.AccessLocalWrite)
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 0), a.sge(0, 8))
	there := "refused: the region has no IBV_ACCESS_REMOTE_WRITE right: register it with IBV_ACCESS_REMOTE_WRITE"
	here := "refused: the peer says 0x1100 (DDP invalid rkey): write to memory that is still registered there with IBV_ACCESS_REMOTE_WRITE"
	both := <-said + "\n" + <-said
	assert.Contains(t, both, fmt.Sprintf("queue pair %#x has failed: RDMA Write of 8 octets at address ", b.qp.QPN))
	assert.Contains(t, both, there)
	assert.Contains(t, both, here)

	for i := range 2 { // the second says nothing new
		a, b = newSide(a.program, allRights), newSide(b.program, allRights)
		connect(t, a, b)
		_, err := b.recv(7, b.sge(0, 8))
		require.NoError(t, err)
		a.posted(signaled(uabi.WRSend, 2), a.sge(0, 9))
		assert.NotEqualValues(t, uabi.WCSuccess, b.wait(1)[0].Status)
		assert.Contains(t, <-traced, fmt.Sprintf("uverbs failed(qpn=%#x, wr_id=7): ", b.qp.QPN))
		<-a.verbs().Verbs().Done()
		if i == 0 {
			both := <-said + "\n" + <-said
			assert.Contains(t, both, "Send of 9 octets with MSN 1 refused: the receive posted for it has room for 8: post longer receives")
			assert.Contains(t, both, "the peer says 0x1205")
		}
	}
	assert.Empty(t, said)
}

// TestTraceOfFailure: the event of a queue pair that fails says why.
func TestTraceOfFailure(t *testing.T) {
	lines := make(chan string, 64)
	a, b := pair(t, Config{Trace: func(s string) {
		if strings.Contains(s, "event") {
			lines <- s
		}
	}}, uabi.AccessLocalWrite)
	a.posted(rdma(signaled(uabi.WRRDMAWrite, 1), b, 0), a.sge(0, 8))
	first, second := <-lines, <-lines
	both := first + "\n" + second
	assert.Contains(t, both, fmt.Sprintf("uverbs event QP_ACCESS_ERR(qpn=%#x): ", b.qp.QPN))
	assert.Contains(t, both, fmt.Sprintf("uverbs event QP_FATAL(qpn=%#x): ", a.qp.QPN))
	assert.Contains(t, both, "): Protection Error: Tagged Access Rights Violation: RDMA Write of ")
	assert.Contains(t, both, "): Terminate Message Received: RDMA Write of ")
	assert.Contains(t, both, "the peer says 0x1100 (DDP invalid rkey)")
}
