package cases

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// What goes on while a stream begins or ends: programs that post, text before iWARP, and what is
// left at the peer.

// aStream is a stream that a queue pair could be given, and its other end.
func aStream(t *conformance.T) (*verbs.Stream, *rawEnd) {
	x, y := tcpPair(t)
	return &verbs.Stream{Conn: y, Role: asInitiator, CRC: true}, newRawEnd(t.Trace().Conn(x), withCRC)
}

// settleBehind is settle, behind what the peer gets before.
func (l *line) settleBehind(before ...[]byte) {
	l.hear(before...)
	l.settle()
}

// heardText reads a text in streaming mode.
func heardText(t *conformance.T, p *rawEnd, want string) {
	b := make([]byte, len(want))
	for n := 0; n < len(b); {
		k := must(p.Conn.Read(b[n:]))(t, "after %q", b[:n])
		n += k
	}
	require.Equal(t, want, string(b))
}

// twoCQs is a queue pair with a CQ for each queue.
func twoCQs() setup { return setup{qp: upper.OpenArgs{SendCQ: 1, RecvCQ: 2}} }

// flushedRecvs are the completions of receives that nothing came for.
func flushedRecvs(ids ...uint64) (list []verbs.Completion) {
	for _, id := range ids {
		list = append(list, verbs.Completion{ID: id, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	}
	return list
}

// outstandingRead posts an RDMA Read of 8 octets, the first of the stream, which the
// peer gets.
func (r *rig) outstandingRead(id uint64) *buffer {
	b := r.region(8, allRights)
	r.post(verbs.Request{ID: id, Op: verbs.OpRead, Local: b.sge(0, 8), Remote: theirs})
	r.expect(aReadRequest(1, read{b.tag(), b.at(0), 8, uint32(theirs.STag), theirs.TO}))
	return b
}

// posting posts to both queues, from two goroutines, until refused, does something when
// it has posted a while, and tells what was accepted: a Send has an even ID.
func (l *line) posting(lead int, do func()) map[uint64]bool {
	var (
		mu       sync.Mutex
		accepted = map[uint64]bool{}
		g        sync.WaitGroup
		started  = make(chan struct{}, 2)
	)
	for queue := range uint64(2) {
		g.Go(func() {
			for i := range uint64(400) {
				id := i<<1 | queue
				var err error
				if queue == 0 {
					err = second(l.qp.PostSend(verbs.Request{ID: id, SGL: l.mr.SGL(0, 4)}))
				} else {
					err = second(l.qp.PostRecv(verbs.Recv{ID: id}))
				}
				if int(i) == lead || err != nil && int(i) < lead {
					started <- struct{}{}
				}
				if err != nil {
					assert.ErrorIs(l.t, err, verbs.ErrInvalidState)
					return
				}
				mu.Lock()
				accepted[id] = true
				mu.Unlock()
			}
		})
	}
	<-started
	<-started
	do()
	g.Wait()
	return accepted
}

// accounted says that each of these requests has completed once, as Success or
// Flushed, at its own CQ; but for those, nothing has.
func (l *line) accounted(accepted map[uint64]bool) {
	for queue, cq := range []*verbs.CQ{l.sq, l.rq} {
		c := make([]verbs.Completion, 1024)
		for _, x := range c[:cq.Poll(c)] {
			require.True(l.t, accepted[x.ID], "%+v: not posted, or completed already", x)
			require.Equal(l.t, uint64(queue), x.ID&1, "%+v: the CQ", x)
			require.Contains(l.t, []verbs.Status{verbs.StatusSuccess, verbs.StatusFlushed}, x.Status, "%+v", x)
			delete(accepted, x.ID)
		}
	}
	require.Empty(l.t, accepted, "accepted, and never completed")
}

// shortly is a close timeout that has to be seen to pass.
const shortly = 50 * time.Millisecond

// tap is a connection that keeps the octets which are written to it, and whether it
// was reset.
type tap struct {
	*net.TCPConn
	octets []byte // whoever writes owns it; read once the connection is gone
	reset  atomic.Bool
}

func (c *tap) SetLinger(s int) error {
	c.reset.Store(s == 0)
	return c.TCPConn.SetLinger(s)
}

func (c *tap) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.octets = append(c.octets, b[:n]...)
	return n, err
}

func (c *tap) SyscallConn() {} // no raw access: all goes through Write

// badSTag is a segment that names no region.
var badSTag = aWrite(0x00F00000, 0, []byte{1})

// stuff posts what the sockets cannot hold, to a peer that does not read.
func (l *line) stuff() {
	mr := l.register(16<<20, allRights)
	post(l.t, l.qp, verbs.Request{ID: 80, Op: verbs.OpWrite, SGL: mr.SGL(0, 16<<20), Remote: theirs})
	u := must(l.peer.Next())(l.t)
	require.Equal(l.t, []byte{moreTagged, opWrite}, u[:2], "it is under way")
}

// vast is more than the sockets of a connection hold.
const vast = 16 << 20

// rest reads what a peer still gets, up to the end of the stream: how many octets of
// payload and whole messages, whether there was a Terminate Message, which then was the
// last, and how it ended (io.EOF: in order).
type rest struct {
	octets, messages int
	terminate        []byte
	end              error
}

func (l *line) rest() (r rest) {
	for {
		u, err := l.peer.Next()
		if err != nil {
			r.end = err
			return r
		}
		require.Nil(l.t, r.terminate, "a segment behind the Terminate Message: % x", u[:14])
		head := either(u[0]&0x80 != 0, 14, 18)
		if u[1] == opTerminate {
			r.terminate = bytes.Clone(u)
			continue
		}
		r.octets += len(u) - head
		if u[0]&0x40 != 0 {
			r.messages++
		}
	}
}

// full gives what is being sent the time to fill the sockets: others set up streams
// and take them down meanwhile.
func (l *line) full() {
	for range 3 {
		other := l.line(verbs.QPConfig{})
		other.settle()
		require.NoError(l.t, other.qp.Destroy())
	}
}
