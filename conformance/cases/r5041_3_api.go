package cases

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_3_api is RFC 5041 3 over connections that a case makes.
var r5041_3_api = []conformance.Case{
	apiCase("3/any-llp", onHost(anyLLP), "R5041-3-M1"),
	apiCase("3/mulpdu-changes", mulpduChanges, "R5041-3-M2", "R5041-3-M3"),
}

// pieceConn is a connection that takes and gives no more than so many octets at a
// time. It hides that it is a socket.
type pieceConn struct {
	net.Conn
	most int
}

func (c *pieceConn) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(len(b), c.most)]) }

func (c *pieceConn) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := c.Conn.Write(b[done:min(done+c.most, len(b))])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// llps are connections of several kinds.
func llps(t *conformance.T) map[string]func() (near, far net.Conn) {
	tcp := func() (net.Conn, net.Conn) {
		x, y := tcpPair(t)
		return x, y
	}
	list := map[string]func() (net.Conn, net.Conn){"TCP": tcp, "net.Pipe": net.Pipe}
	for _, most := range []int{1, 7, 64 << 10} {
		list[fmt.Sprintf("pieces of %d octets", most)] = func() (net.Conn, net.Conn) {
			x, y := tcp()
			return x, &pieceConn{y, most}
		}
	}
	return list
}

// anyLLP looks at one point of section 3 after the other, on connections of every kind.
func anyLLP(t *conformance.T, n *host) {
	for _, pair := range named(t, "%s", llps(t)) {
		join := func() (*link, net.Conn) {
			l := n.idleLink(verbs.QPConfig{})
			x, y := pair()
			t.Cleanup(func() { _ = x.Close() })
			begin(t, l.qp, verbs.StreamConfig{Conn: y, Role: asInitiator, CRC: true})
			l.peer = newPeer(t, t.Trace().Conn(x), withCRC)
			return l, y
		}
		l, _ := join()
		// Boundaries and lengths, both ways.
		l.recv(1, 2, 3)
		for i, m := range []string{"three", "", "messages"} {
			l.sendMessage([]byte(m))
			completes(t, l.rq, l.got(uint64(i+1), len(m)))
			require.Equal(t, m, string(l.mr.Bytes()[64*(i+1):64*(i+1)+len(m)]))
		}
		data := fill(l.mr.Bytes()[1024:], 3)[:5000]
		post(t, l.qp, verbs.Request{ID: 1, SGL: l.mr.SGL(1024, 5000)}, verbs.Request{ID: 2})
		same(t, data, l.message().payload, "a Send of many segments")
		require.Empty(t, l.message().payload, "a Send of nothing")
		completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpSend, verbs.StatusSuccess))
		// The digest. The stream is marked, carries nothing more, and is closed.
		f := l.peer.Frame(aWrite(uint32(l.mr.STag()), l.mr.Base(), []byte("bad")))
		f[len(f)-9] ^= 4
		first := l.mr.Bytes()[0]
		require.NoError(t, l.peer.Raw(f))
		l.expect(aTerminate(0x2002, nil, false))
		require.Error(t, second(l.peer.Next()), "behind the Terminate Message")
		_ = l.peer.Close()
		l.remains(verbs.StateError, verbs.EventBadCRC)
		require.Equal(t, first, l.mr.Bytes()[0])
		// A loss. TCP itself is the queue pair's alone: there it is the peer that ends it.
		l, near := join()
		post(t, l.qp, l.aRead(7))
		l.expect(l.asks(1))
		event := verbs.EventLLPLost
		if _, ok := near.(*net.TCPConn); ok {
			event = verbs.EventLLPReset
			require.NoError(t, l.peer.Reset())
		} else {
			require.NoError(t, near.Close())
		}
		l.remains(verbs.StateError, event)
		completes(t, l.sq, l.sentAs(7, verbs.OpRead, verbs.StatusFlushed))
	}
}

// measuredConn is a connection whose path is either its own or one whose segments'
// size the system cannot tell, which stands for 1460 octets.
type measuredConn struct {
	*net.TCPConn
	unknown atomic.Bool
}

func (c *measuredConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.TCPConn.SyscallConn()
	return &measured{raw, c}, err
}

type measured struct {
	syscall.RawConn
	c *measuredConn
}

func (m *measured) Control(f func(uintptr)) error {
	if m.c.unknown.Load() {
		return errors.New("not known at present")
	}
	return m.RawConn.Control(f)
}

// mulpduChanges: the path gets narrow, and wide again, while messages wait for a peer
// that is slow. What has been cut stays as it is; what is cut later fits.
func mulpduChanges(t *conformance.T) {
	const size, count, narrow = 60_000, 100, 1454
	n := newHost(t, hostConfig{})
	l := n.idleLink(verbs.QPConfig{SendDepth: 2 * count})
	x, y := tcpPair(t)
	c := &measuredConn{TCPConn: y.(*net.TCPConn)}
	begin(t, l.qp, verbs.StreamConfig{Conn: c, Role: asInitiator, CRC: true})
	stream := mpa.Stream{Conn: c, CRC: true}
	l.peer = newPeer(t, x, withCRC)
	posts := func() {
		for range count {
			post(t, l.qp, verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, size), Remote: theirs, Flags: verbs.Unsignaled})
		}
	}
	wide := true // what the last segment was
	for unknown := range inTurn(t, "narrow: %v", []bool{true, false}) {
		var cut []bool // whether each full segment is longer than a narrow path's
		hear := func() {
			p := l.message()
			same(t, n.mr.Bytes()[:size], p.payload, "a message")
			for _, u := range p.segments[:len(p.segments)-1] {
				cut = append(cut, u > narrow)
			}
		}
		posts()
		hear()
		require.NotContains(t, cut, !wide, "before the change")
		c.unknown.Store(unknown)
		require.Equal(t, unknown, stream.MULPDU() == narrow, "what the LLP says: %d", stream.MULPDU())
		posts()
		for range 2*count - 1 {
			hear()
		}
		changes := 0
		for _, x := range cut {
			if x != wide {
				wide = x
				changes++
			}
		}
		require.Equal(t, 1, changes, "changes of what segments have")
		post(t, l.qp, verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, 500), Remote: theirs, Flags: verbs.Unsignaled})
		require.Equal(t, []int{514}, l.message().segments)
	}
}
