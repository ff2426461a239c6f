package verbs

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
)

func tcpPair(t testing.TB) (net.Conn, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	d, err := l.Accept()
	require.NoError(t, err)
	return c, d
}

type end struct {
	nic *RNIC
	pd  *PD
	cq  *CQ
	qp  *QP
}

func newEnd(t testing.TB) *end {
	nic, err := Open(Config{})
	require.NoError(t, err)
	nic.SetEventHandler(func(e Event) { t.Log("event", e) })
	pd, err := nic.AllocPD()
	require.NoError(t, err)
	cq, err := nic.CreateCQ(CQConfig{Entries: 1024})
	require.NoError(t, err)
	qp, err := nic.CreateQP(QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SendDepth: 128, RecvDepth: 128})
	require.NoError(t, err)
	return &end{nic, pd, cq, qp}
}

func testSmoke(t *testing.T, a, b net.Conn, crc bool, markers bool) {
	x, y := newEnd(t), newEnd(t)
	defer x.nic.Close()
	defer y.nic.Close()
	xb, yb := make([]byte, 1<<20), make([]byte, 1<<20)
	xm, err := x.pd.Register(xb, LocalRead|LocalWrite|RemoteRead|RemoteWrite)
	require.NoError(t, err)
	ym, err := y.pd.Register(yb, LocalRead|LocalWrite|RemoteRead|RemoteWrite)
	require.NoError(t, err)
	for i := range xb {
		xb[i] = byte(i * 7)
	}
	_, err = y.qp.PostRecv(Recv{ID: 1, SGL: ym.SGL(0, 1<<20)}, Recv{ID: 2, SGL: ym.SGL(0, 0)})
	require.NoError(t, err)
	require.NoError(t, y.qp.Modify(ModifyQP{Next: RTS, Stream: &Stream{Conn: b, Role: mpa.Responder, CRC: crc, MarkersIn: markers, MarkersOut: markers}}))
	require.NoError(t, x.qp.Modify(ModifyQP{Next: RTS, Stream: &Stream{Conn: a, Role: mpa.Initiator, CRC: crc, MarkersIn: markers, MarkersOut: markers}}))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = x.qp.PostSend(Send{ID: 5, SGL: xm.SGL(0, 300000)})
	require.NoError(t, err)
	var c [4]Completion
	n, err := x.cq.Wait(ctx, c[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, StatusSuccess, c[0].Status)
	n, err = y.cq.Wait(ctx, c[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, StatusSuccess, c[0].Status)
	require.EqualValues(t, 300000, c[0].Bytes)
	require.Equal(t, xb[:300000], yb[:300000])
	// write, read
	_, err = x.qp.PostSend(Send{ID: 6, Op: OpWrite, SGL: xm.SGL(0, 1<<20), Remote: ym.Remote(0)}, Send{ID: 7})
	require.NoError(t, err)
	n, err = y.cq.Wait(ctx, c[:])
	require.NoError(t, err)
	require.Equal(t, StatusSuccess, c[0].Status)
	require.Equal(t, xb, yb)
	clear(xb)
	_, err = x.qp.PostSend(Send{ID: 8, Op: OpRead, Local: xm.SGE(0, 1<<20), Remote: ym.Remote(0)})
	require.NoError(t, err)
	got := 0
	for got < 3 {
		n, err := x.cq.Wait(ctx, c[:])
		require.NoError(t, err)
		for _, c := range c[:n] {
			require.Equal(t, StatusSuccess, c.Status, "%d", c.ID)
		}
		got += n
	}
	require.Equal(t, xb, yb)
	require.NoError(t, x.qp.Modify(ModifyQP{Next: Closing}))
	<-x.qp.Done()
	<-y.qp.Done()
	require.Equal(t, Idle, x.qp.State())
	require.Equal(t, Idle, y.qp.State())
}

func TestSmoke(t *testing.T) {
	a, b := tcpPair(t)
	testSmoke(t, a, b, false, false)
	a, b = tcpPair(t)
	testSmoke(t, a, b, true, false)
	a, b = tcpPair(t)
	testSmoke(t, a, b, true, true)
	a, b = net.Pipe()
	testSmoke(t, a, b, true, true)
	a, b = net.Pipe()
	testSmoke(t, a, b, false, false)
}
