package nvmeof

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

const (
	testNQN  = "nqn.2026-01.org.softrnic:test"
	testHost = "nqn.2026-01.org.softrnic:host"
)

// serve runs a target until the test ends, and says where.
func serve(t *testing.T, c Config, subsystems ...*Subsystem) (addr string, target *Target) {
	t.Helper()
	target, err := New(c, subsystems...)
	require.NoError(t, err)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- target.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, target.Close())
	})
	return l.Addr().String(), target
}

func subsystem(t *testing.T, disks ...Disk) *Subsystem {
	t.Helper()
	s, err := NewSubsystem(testNQN, disks)
	require.NoError(t, err)
	return s
}

// rawQueue is one connection of a raw initiator, which sends what no Host does: one command outstanding unless the test
// posts more.
type rawQueue struct {
	t    *testing.T
	nic  *verbs.RNIC
	qp   *verbs.QP
	conn *cm.Conn
	out  *verbs.MR // capsules
	in   *verbs.MR // responses
	data *verbs.MR // for the target
	cid  uint16
	id   uint16
}

const (
	hostCapsule = 8192
	hostData    = maxTransfer
	hostSlots   = 32
)

// answer is a completion as it came.
type answer struct {
	result      uint64
	sqhd, sqid  uint16
	cid         uint16
	status      Status
	invalidated verbs.STag
	withInv     bool
}

func dialQueue(t *testing.T, addr string, qid, hsqsize uint16) *rawQueue {
	t.Helper()
	q, err := tryQueue(t, addr, private(0, qid, hsqsize+1, hsqsize))
	require.NoError(t, err)
	q.id = qid
	return q
}

func private(recfmt, qid, hrqsize, hsqsize uint16) []byte {
	b := hello{qid: qid, hrqsize: hrqsize, hsqsize: hsqsize}.request()
	le.PutUint16(b, recfmt)
	return b
}

func tryQueue(t *testing.T, addr string, privateData []byte) (*rawQueue, error) {
	t.Helper()
	return tryQueueFrom(t, "127.0.0.1", addr, privateData)
}

// tryQueueFrom is tryQueue from an address of this host's.
func tryQueueFrom(t *testing.T, from, addr string, privateData []byte) (*rawQueue, error) {
	t.Helper()
	q := &rawQueue{t: t}
	var err error
	q.nic, err = verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.nic.Close() })
	q.qp, err = q.nic.CreateEndpoint(verbs.QPConfig{SendDepth: 2 * hostSlots, RecvDepth: 2 * hostSlots})
	require.NoError(t, err)
	register := func(n int, a verbs.Access) *verbs.MR {
		mr, err := q.qp.PD().Register(make([]byte, n), a)
		require.NoError(t, err)
		return mr
	}
	q.out = register(hostCapsule, verbs.LocalRead)
	q.in = register(hostSlots*completionSize, verbs.LocalWrite)
	q.renew()
	for i := range hostSlots {
		q.post(uint64(i))
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	q.conn, err = cm.Connect(t.Context(), nc, q.qp, cm.Config{PrivateData: privateData, IRD: 16})
	return q, err
}

// renew registers the data anew, after the target has invalidated its key.
func (q *rawQueue) renew() {
	mr, err := q.qp.PD().RegisterRegion(verbs.RegionConfig{
		Memory: make([]byte, hostData), Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite, RemoteInvalidate: true,
	})
	require.NoError(q.t, err)
	q.data = mr
}

func (q *rawQueue) post(id uint64) {
	_, err := q.qp.PostRecv(verbs.Recv{ID: id, SGL: q.in.SGL(int(id)*completionSize, completionSize)})
	require.NoError(q.t, err)
}

// entry is a command with the next cid and no data.
func (q *rawQueue) entry(opcode byte, nsid uint32) command {
	c := newCommand(opcode, nsid)
	q.cid++
	le.PutUint16(c[2:], q.cid)
	return c
}

func keyed(c command, m *verbs.MR, n int) command {
	r := m.Remote(0)
	sgl{offset: r.TO, length: uint32(n), key: r.STag, invalidate: true}.put(c)
	return c
}

func inline(c command, n int) command {
	sgl{inline: true, length: uint32(n)}.put(c)
	return c
}

// send posts a capsule, and waits until it is gone.
func (q *rawQueue) send(parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += copy(q.out.Bytes()[n:], p)
	}
	_, err := q.qp.PostSend(verbs.Request{SGL: q.out.SGL(0, n)})
	require.NoError(q.t, err)
	c, err := q.qp.SendCQ().WaitOne(q.t.Context())
	require.NoError(q.t, err)
	require.NoError(q.t, c.Err())
}

// receive waits for a response.
func (q *rawQueue) receive() answer {
	q.t.Helper()
	c, err := q.qp.RecvCQ().WaitOne(q.t.Context())
	require.NoError(q.t, err)
	require.NoError(q.t, c.Err())
	require.EqualValues(q.t, completionSize, c.Bytes)
	b := q.in.Bytes()[int(c.ID)*completionSize:]
	a := answer{
		result: le.Uint64(b), sqhd: le.Uint16(b[8:]), sqid: le.Uint16(b[10:]), cid: le.Uint16(b[12:]),
		status: Status(le.Uint16(b[14:]) >> 1), invalidated: c.Invalidated, withInv: c.HasInvalidated,
	}
	q.post(c.ID)
	return a
}

// do runs a command; a key that its response has invalidated is replaced.
func (q *rawQueue) do(c command, data ...[]byte) answer {
	q.t.Helper()
	q.send(append([][]byte{c}, data...)...)
	a := q.receive()
	require.Equal(q.t, c.cid(), a.cid)
	require.Equal(q.t, q.id, a.sqid)
	return a
}

// connect is the Connect command; the data may be changed.
func (q *rawQueue) connect(cntlid uint16, sqsize int, kato uint32, change func(c command, data []byte)) answer {
	q.t.Helper()
	c := q.entry(fabricsCommand, typeConnect)
	le.PutUint16(c[42:], q.id)
	le.PutUint16(c[44:], uint16(sqsize))
	le.PutUint32(c[48:], kato)
	data := make([]byte, connectSize)
	data[0] = 0x51
	le.PutUint16(data[16:], cntlid)
	copy(data[256:], testNQN)
	copy(data[512:], testHost)
	if change != nil {
		change(c, data)
	}
	if q.id != 0 {
		return q.do(inline(c, connectSize), data)
	}
	copy(q.data.Bytes(), data)
	a := q.do(keyed(c, q.data, connectSize))
	if a.withInv {
		q.renew()
	}
	return a
}

func (q *rawQueue) setProperty(offset, value uint32) answer {
	c := q.entry(fabricsCommand, typePropertySet)
	le.PutUint32(c[44:], offset)
	le.PutUint64(c[48:], uint64(value))
	return q.do(c)
}

func (q *rawQueue) property(offset uint32, eight bool) answer {
	c := q.entry(fabricsCommand, typePropertyGet)
	if eight {
		c[40] = 1
	}
	le.PutUint32(c[44:], offset)
	return q.do(c)
}

// fetch runs a command whose data come by RDMA Write.
func (q *rawQueue) fetch(c command, n int) ([]byte, answer) {
	q.t.Helper()
	a := q.do(keyed(c, q.data, n))
	b := append([]byte(nil), q.data.Bytes()[:n]...)
	if a.withInv {
		require.Equal(q.t, q.data.STag(), a.invalidated)
		q.renew()
	}
	return b, a
}

// give runs a command whose data go by RDMA Read.
func (q *rawQueue) give(c command, b []byte) answer {
	q.t.Helper()
	copy(q.data.Bytes(), b)
	a := q.do(keyed(c, q.data, len(b)))
	if a.withInv {
		q.renew()
	}
	return a
}

// association is a controller with I/O queues, ready.
type association struct {
	admin *rawQueue
	id    uint16
	io    []*rawQueue
}

func associate(t *testing.T, addr string, queues int) *association {
	t.Helper()
	a := &association{admin: dialQueue(t, addr, 0, 31)}
	got := a.admin.connect(0xffff, 31, 0, nil)
	require.Equal(t, Success, got.status)
	a.id = uint16(got.result)
	require.Equal(t, Success, a.admin.setProperty(regCC, 0x00460001).status)
	require.EqualValues(t, cstsRDY, a.admin.property(regCSTS, false).result)
	c := a.admin.entry(adminSetFeatures, 0)
	c[40] = featNumQueues
	le.PutUint32(c[44:], uint32(queues-1)<<16|uint32(queues-1))
	got = a.admin.do(c)
	require.Equal(t, Success, got.status)
	require.Equal(t, queueCount(queues), got.result)
	for i := range queues {
		q := dialQueue(t, addr, uint16(i+1), 15)
		require.Equal(t, Success, q.connect(a.id, 15, 0, nil).status)
		a.io = append(a.io, q)
	}
	return a
}

// recorder is a Disk that counts Syncs.
type recorder struct {
	Disk
	mu    sync.Mutex
	syncs int
}

func (r *recorder) Sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncs++
	return r.Disk.Sync()
}
