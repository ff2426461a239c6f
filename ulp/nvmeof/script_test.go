package nvmeof

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// scripted is a target that answers a Host as NVMe wants it, but for what its functions do instead. It has a controller
// without data: what is read is whatever the host's memory holds.
type scripted struct {
	t    *testing.T
	addr string
	nic  *verbs.RNIC
	// Each may be nil. reply is the private data of the reply to a queue; instead gets each command before it is answered,
	// and says that it has done so, or wants no answer.
	reply   func(h hello) []byte
	reject  []byte
	instead func(q *scriptedQueue, c command) (done bool)
	page    func(c command, b []byte) // changes what Identify or a log page says
	seen    int                       // commands, of all queues
	mu      sync.Mutex
}

// scriptedQueue is a connection of it.
type scriptedQueue struct {
	of      *scripted
	id      uint16
	qp      *verbs.QP
	conn    *cm.Conn
	in, out *verbs.MR
}

const scriptedDepth = 64

// play runs it until the test ends.
func (s *scripted) play(t *testing.T) *scripted {
	t.Helper()
	s.t = t
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	s.addr = l.Addr().String()
	s.nic, err = verbs.Open(verbs.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			all.Go(func() { s.serve(ctx, req) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		_ = s.nic.Close() // the ends of all connections
		all.Wait()
	})
	return s
}

func (s *scripted) serve(ctx context.Context, req *cm.Request) {
	if s.reject != nil {
		_ = req.Reject(s.reject)
		return
	}
	h, _ := decodeHello(req.PrivateData(), &Config{Queues: maxQueues, Depth: 1024})
	q := &scriptedQueue{of: s, id: h.qid}
	var err error
	if q.qp, err = s.nic.CreateEndpoint(verbs.QPConfig{SendDepth: 4 * scriptedDepth, RecvDepth: scriptedDepth}); err != nil {
		return
	}
	defer func() {
		_ = q.qp.Destroy()
		for _, mr := range []*verbs.MR{q.in, q.out} {
			if mr != nil {
				_ = mr.Deregister()
			}
		}
	}()
	const size = commandSize + 4096
	q.in, err = q.qp.PD().Register(make([]byte, scriptedDepth*size), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return
	}
	q.out, err = q.qp.PD().Register(make([]byte, 64<<10), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		return
	}
	for i := range scriptedDepth {
		_, _ = q.qp.PostRecv(verbs.Recv{ID: uint64(i), SGL: q.in.SGL(i*size, size)})
	}
	private := h.accepted()
	if s.reply != nil {
		private = s.reply(h)
	}
	if q.conn, err = req.Accept(ctx, q.qp, cm.Config{PrivateData: private}); err != nil {
		return
	}
	for {
		got, err := q.qp.RecvCQ().WaitOne(ctx)
		if err != nil || got.Bytes < commandSize {
			return
		}
		c := append(command(nil), q.in.Bytes()[int(got.ID)*size:][:commandSize]...)
		_, _ = q.qp.PostRecv(verbs.Recv{ID: got.ID, SGL: q.in.SGL(int(got.ID)*size, size)})
		s.mu.Lock()
		s.seen++
		done := s.instead != nil && s.instead(q, c)
		s.mu.Unlock()
		if !done {
			q.honest(c)
		}
	}
}

// honest answers a command as it should be.
func (q *scriptedQueue) honest(c command) {
	var page []byte
	var result uint64
	switch op := c.opcode(); {
	case op == fabricsCommand && c.fctype() == typeConnect:
		result = 1
	case op == fabricsCommand && c.fctype() == typePropertyGet && c.dw(11) == regCAP:
		result = capNVM | 0xff<<capTO | 63
	case op == fabricsCommand && c.fctype() == typePropertyGet:
		result = cstsRDY | cstsSHSTComplete
	case q.id != 0 || op == fabricsCommand:
	case op == adminSetFeatures:
		result = uint64(c.dw(11))
	case op == adminIdentify && c[40] == idController:
		page = make([]byte, identifySize)
		le.PutUint16(page[ctrlID:], 1)
		le.PutUint32(page[ctrlSGLS:], sglsSupported|sglsKeyed|sglsOffset)
		le.PutUint32(page[ctrlIOCCSZ:], (commandSize+4096)/16)
		le.PutUint32(page[ctrlIORCSZ:], 1)
	case op == adminIdentify && c[40] == idNS:
		page = make([]byte, identifySize)
		le.PutUint64(page, 2048)
		page[nsFormats+2] = blockShift
	case op == adminIdentify:
		page = make([]byte, identifySize)
		if c.nsid() == 0 {
			page[0] = 1
		}
	case op == adminGetLogPage:
		page = make([]byte, discoveryEntry)
	}
	if page != nil {
		if q.of.page != nil {
			q.of.page(c, page)
		}
		q.write(q.at(c), page)
	}
	q.answer(completion{cid: c.cid(), sqid: q.id, result: result})
}

// at is the memory of the host that a command names.
func (q *scriptedQueue) at(c command) sgl {
	s, _ := decodeSGL(c, 4096)
	return s
}

// write posts an RDMA Write of b.
func (q *scriptedQueue) write(s sgl, b []byte) {
	n := copy(q.out.Bytes(), b)
	q.post(verbs.Request{Op: verbs.OpWrite, SGL: q.out.SGL(0, n), Remote: verbs.Remote{STag: s.key, TO: s.offset}})
}

// read posts an RDMA Read of n octets.
func (q *scriptedQueue) read(s sgl, n int) {
	q.post(verbs.Request{Op: verbs.OpRead, Local: q.out.SGE(0, n), Remote: verbs.Remote{STag: s.key, TO: s.offset}})
}

func (q *scriptedQueue) answer(c completion) {
	b := make([]byte, completionSize)
	c.put(b)
	q.send(b)
}

// send posts a Send of b.
func (q *scriptedQueue) send(b []byte) {
	n := copy(q.out.Bytes(), b)
	q.post(verbs.Request{SGL: q.out.SGL(0, n)})
}

// post posts a request, and waits until it is done: out is one buffer.
func (q *scriptedQueue) post(r verbs.Request) {
	if _, err := q.qp.PostSend(r); err == nil {
		_, _ = q.qp.SendCQ().WaitOne(context.Background()) // it ends with the connection
	}
}
