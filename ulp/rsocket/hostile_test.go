package rsocket_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/ulp/rsocket"
	"github.com/softrnic/softrnic/verbs"
)

// raw is a peer that does what it likes: a queue pair whose hello is sound.
type raw struct {
	t      *testing.T
	nic    *verbs.RNIC
	qp     *verbs.QP
	own    *verbs.MR // what it sends
	mem    []byte
	open   *verbs.MR // ring and target list
	conn   *cm.Conn
	ring   verbs.Remote // of the other side
	length uint32
}

const rawMessages = 384

func newRaw(t *testing.T) *raw {
	nic, err := verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nic.Close() })
	qp, err := nic.CreateEndpoint(verbs.QPConfig{SendDepth: 4096, RecvDepth: 4096})
	require.NoError(t, err)
	r := &raw{t: t, nic: nic, qp: qp, mem: make([]byte, 1<<16)}
	r.own, err = qp.PD().Register(r.mem, verbs.LocalRead|verbs.LocalWrite)
	require.NoError(t, err)
	r.open, err = qp.PD().Register(make([]byte, 1<<17+32), verbs.LocalWrite|verbs.RemoteWrite)
	require.NoError(t, err)
	for i := range 2000 {
		_, err = qp.PostRecv(verbs.Recv{ID: uint64(i), SGL: r.own.SGL(1<<15, 4)})
		require.NoError(t, err)
	}
	return r
}

func (r *raw) hello() []byte {
	b := []byte{1, 2, rawMessages >> 8, rawMessages & 255, 0, 0, 0, 0}
	for _, off := range []int{1 << 17, 0} {
		at := r.open.Remote(off)
		b = binary.BigEndian.AppendUint64(b, at.TO)
		b = binary.BigEndian.AppendUint32(b, uint32(at.STag))
		if off == 0 {
			b = binary.BigEndian.AppendUint32(b, 1<<16)
		} else {
			b = binary.BigEndian.AppendUint32(b, 2)
		}
	}
	return b
}

// dial connects with private data as hello, changed.
func (r *raw) dial(addr string, change func([]byte) []byte) error {
	hello := r.hello()
	if change != nil {
		hello = change(hello)
	}
	conn, err := cm.Dial(r.t.Context(), addr, r.qp, cm.Config{PrivateData: hello, NoCRC: true, NoNudge: true}) // a nudge might cross a close
	if err != nil {
		return err
	}
	r.take(conn)
	return nil
}

func (r *raw) take(conn *cm.Conn) {
	r.conn = conn
	private := conn.PrivateData()
	if len(private) >= 40 {
		r.ring = verbs.Remote{STag: verbs.STag(binary.BigEndian.Uint32(private[32:])), TO: binary.BigEndian.Uint64(private[24:])}
		r.length = binary.BigEndian.Uint32(private[36:])
	}
}

// say sends a message, and before it a Write of n octets to offset off of the ring, unless n is 0.
func (r *raw) say(m uint32, off, n int) {
	var reqs []verbs.Request
	if n > 0 {
		reqs = append(reqs, verbs.Request{Op: verbs.OpWrite, SGL: r.own.SGL(0, n), Remote: verbs.Remote{STag: r.ring.STag, TO: r.ring.TO + uint64(off)}})
	}
	binary.LittleEndian.PutUint32(r.mem[1<<15+64:], m)
	reqs = append(reqs, verbs.Request{Op: verbs.OpSend, SGL: r.own.SGL(1<<15+64, 4)})
	_, err := r.qp.PostSend(reqs...)
	require.NoError(r.t, err)
	require.NoError(r.t, r.qp.Drain(r.t.Context()))
}

// hear waits for n messages.
func (r *raw) hear(n int) {
	for n > 0 {
		d, err := r.qp.RecvCQ().WaitOne(r.t.Context())
		require.NoError(r.t, err)
		if d.Op == verbs.OpRecv {
			n--
		}
	}
}

// witness is a sound connection of the same listener, and its other end.
func listen(t *testing.T) (*rsocket.Listener, func() *rsocket.Conn) {
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	return l, func() *rsocket.Conn {
		c, ok := <-accepted
		require.True(t, ok)
		t.Cleanup(func() { _ = c.Close() })
		return c.(*rsocket.Conn)
	}
}

// TestBadMessages: what breaks the protocol is that connection's error. Another of the same listener goes on.
func TestBadMessages(t *testing.T) {
	for name, attack := range map[string]func(r *raw){
		"more octets than the half has": func(r *raw) { r.say(r.length+1, 0, 0) },
		"no octets":                     func(r *raw) { r.say(0, 0, 0) },
		"a reserved operation":          func(r *raw) { r.say(1<<29|5, 0, 0) },
		"an internal operation":         func(r *raw) { r.say(2<<29, 0, 0) },
		"another reserved operation":    func(r *raw) { r.say(5<<29, 0, 0) },
		"an unknown state":              func(r *raw) { r.say(7<<29|9, 0, 0) },
		"a mapped buffer too many":      func(r *raw) { r.say(6<<29, 0, 0) },
		"a message of two octets": func(r *raw) {
			_, err := r.qp.PostSend(verbs.Request{SGL: r.own.SGL(0, 2)})
			require.NoError(r.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, accept := listen(t)
			sound, err := rsocket.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer sound.Close()
			other := accept()
			r := newRaw(t)
			require.NoError(t, r.dial(l.Addr().String(), nil))
			c := accept()
			attack(r)
			_, err = io.Copy(io.Discard, c)
			require.ErrorIs(t, err, rsocket.ErrProtocol)
			_, err = c.Write([]byte("x"))
			require.ErrorIs(t, err, rsocket.ErrProtocol)
			require.NoError(t, c.Close())
			<-r.conn.Done()
			_, err = sound.Write([]byte("still"))
			require.NoError(t, err)
			got := make([]byte, 5)
			_, err = io.ReadFull(other, got)
			require.NoError(t, err)
			require.Equal(t, "still", string(got))
		})
	}
}

// TestBadOrder: what is bad only because of what came before, where nobody reads.
func TestBadOrder(t *testing.T) {
	for name, attack := range map[string]func(r *raw){
		"data behind the end": func(r *raw) { r.say(7<<29|2, 0, 0); r.say(5, 0, 5) },
		"more messages than it may": func(r *raw) {
			for range rawMessages + 1 {
				r.say(1, 0, 1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, accept := listen(t)
			r := newRaw(t)
			require.NoError(t, r.dial(l.Addr().String(), nil))
			c := accept()
			attack(r)
			_, err := c.Write(make([]byte, 1<<20)) // waits for room, and so sees all messages
			require.ErrorIs(t, err, rsocket.ErrProtocol)
		})
	}
}

// TestOutOfTheRing: a Write beyond what is registered, and a message longer than its receive, are refused by the RNIC, and end the stream.
func TestOutOfTheRing(t *testing.T) {
	for name, attack := range map[string]func(r *raw){
		"offset": func(r *raw) {
			_, _ = r.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: r.own.SGL(0, 100), Remote: verbs.Remote{STag: r.ring.STag, TO: r.ring.TO + 1<<20}})
		},
		"before": func(r *raw) {
			_, _ = r.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: r.own.SGL(0, 1), Remote: verbs.Remote{STag: r.ring.STag, TO: r.ring.TO - 1}})
		},
		"key": func(r *raw) {
			_, _ = r.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: r.own.SGL(0, 1), Remote: verbs.Remote{STag: r.ring.STag + 256, TO: r.ring.TO}})
		},
		"long message": func(r *raw) { _, _ = r.qp.PostSend(verbs.Request{SGL: r.own.SGL(0, 5)}) },
		"read": func(r *raw) {
			_, _ = r.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: r.open.SGE(0, 8), Remote: r.ring})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, accept := listen(t)
			r := newRaw(t)
			require.NoError(t, r.dial(l.Addr().String(), nil))
			c := accept()
			attack(r)
			_, err := io.Copy(io.Discard, c)
			require.Error(t, err)
			var stream *verbs.StreamError
			require.True(t, errors.As(err, &stream), "%v", err)
			_, err = c.Write([]byte("x"))
			require.Error(t, err)
		})
	}
}

// TestFlood: receives that are not there, because a peer sends what does not count without a pause, end that stream at worst.
func TestFlood(t *testing.T) {
	l, accept := listen(t)
	r := newRaw(t)
	require.NoError(t, r.dial(l.Addr().String(), nil))
	c := accept()
	binary.LittleEndian.PutUint32(r.mem, 4<<29|100)
	for range 3000 {
		if _, err := r.qp.PostSend(verbs.Request{SGL: r.own.SGL(0, 4)}); err != nil {
			break
		}
	}
	<-r.conn.Done()
	_, err := io.Copy(io.Discard, c)
	require.Error(t, err)
}

// TestBadHello: a peer whose private data is not sound is rejected, by the listener, and refused, by who dials.
func TestBadHello(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"none":             func([]byte) []byte { return nil },
		"short":            func(b []byte) []byte { return b[:39] },
		"version":          func(b []byte) []byte { b[0] = 2; return b },
		"big-endian":       func(b []byte) []byte { b[1] |= 1; return b },
		"few messages":     func(b []byte) []byte { b[2], b[3] = 0, 15; return b },
		"one target":       func(b []byte) []byte { b[23] = 1; return b },
		"no target at all": func(b []byte) []byte { b[23] = 0; return b },
	} {
		t.Run(name, func(t *testing.T) {
			l, accept := listen(t)
			var rejected *cm.RejectedError
			require.ErrorAs(t, newRaw(t).dial(l.Addr().String(), change), &rejected)
			sound, err := rsocket.Dial("tcp", l.Addr().String()) // the listener goes on
			require.NoError(t, err)
			require.NoError(t, sound.Close())
			accept()

			cl, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
			require.NoError(t, err)
			defer cl.Close()
			go func() {
				req, err := cl.Accept(t.Context())
				if err != nil {
					return
				}
				r := newRaw(t)
				_, _ = req.Accept(t.Context(), r.qp, cm.Config{PrivateData: change(r.hello()), NoCRC: true})
			}()
			_, err = rsocket.Dial("tcp", cl.Addr().String())
			require.ErrorIs(t, err, rsocket.ErrProtocol)
		})
	}
}

// TestReset: a connection that is reset is an error, and not an end.
func TestReset(t *testing.T) {
	l, accept := listen(t)
	r := newRaw(t)
	require.NoError(t, r.dial(l.Addr().String(), nil))
	c := accept()
	r.say(3, 0, 3)
	require.NoError(t, r.conn.Abort())
	_, err := io.Copy(io.Discard, c)
	require.Error(t, err)
	require.NotErrorIs(t, err, rsocket.ErrProtocol)
}

// TestPeerEnds: a peer that closes TCP without a word is the end, as one that has said so.
func TestPeerEnds(t *testing.T) {
	l, accept := listen(t)
	r := newRaw(t)
	require.NoError(t, r.dial(l.Addr().String(), nil))
	c := accept()
	r.say(3, 0, 3)
	_, err := r.qp.RecvCQ().WaitOne(t.Context()) // the other half of the ring: nothing is on its way then
	require.NoError(t, err)
	require.NoError(t, r.conn.Close())
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Len(t, got, 3)
	_, err = c.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// TestNoGrant: a peer that never lets this side write again holds up a Write until its deadline, and Close not at all.
func TestNoGrant(t *testing.T) {
	l, accept := listen(t)
	r := newRaw(t)
	require.NoError(t, r.dial(l.Addr().String(), nil))
	r.say(7<<29|1, 0, 0) // so that the other side may speak
	c := accept()
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Millisecond)))
	n, err := c.Write(make([]byte, 1<<20))
	require.ErrorContains(t, err, "i/o timeout")
	require.LessOrEqual(t, n, 1<<16)
	require.NoError(t, c.Close())
}

// TestGrantBehindClose: a peer that has not looked yet, and goes on as if there were no end, can say so; nothing is lost or reset when it has seen it.
func TestGrantBehindClose(t *testing.T) {
	l, accept := listen(t)
	r := newRaw(t)
	require.NoError(t, r.dial(l.Addr().String(), nil))
	r.say(3, 0, 3)
	c := accept()
	_, err := c.Write(make([]byte, 1000))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	for range 20 {
		r.say(4<<29|rawMessages, 0, 0)
	}
	r.hear(3) // the other half of the ring, the data, the end
	require.Equal(t, uint32(7<<29), binary.LittleEndian.Uint32(r.mem[1<<15:]))
	require.NoError(t, r.conn.Close())
	<-c.Connection().Done()
	require.NoError(t, c.Connection().Err())
}

// TestCloseIsBounded: a peer that never says anything again is left behind.
func TestCloseIsBounded(t *testing.T) {
	l, err := rsocket.Config{CloseTimeout: 10 * time.Millisecond}.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	r := newRaw(t)
	dialled := make(chan error, 1)
	go func() { dialled <- r.dial(l.Addr().String(), nil) }()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, <-dialled)
	r.say(1, 0, 1)
	_, err = io.ReadFull(c, make([]byte, 1)) // so that the other side may speak, and nothing is on its way
	require.NoError(t, err)
	require.NoError(t, c.Close())
	<-r.conn.Done()
	require.NoError(t, r.conn.Err())
}

// TestNoGrantBehindEnd: a peer that ends TCP's stream at once behind what it says, as librdmacm's do, is told nothing any more, though it could have been
// told that half of the ring is its again.
func TestNoGrantBehindEnd(t *testing.T) {
	l, err := rsocket.Config{RecvBuffer: 16 << 10}.Listen("tcp", "127.0.0.1:0") // so that TCP has room for half of it
	require.NoError(t, err)
	defer l.Close()
	r := newRaw(t)
	dialled := make(chan error, 1)
	go func() { dialled <- r.dial(l.Addr().String(), nil) }()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, <-dialled)
	r.say(r.length, 0, int(r.length))
	got := make([]byte, r.length)
	_, err = io.ReadFull(c, got[:1]) // the whole half is there
	require.NoError(t, err)
	r.hear(1) // the other half
	of := c.(*rsocket.Conn)
	posted := of.Connection().QP().Stats().RecvQueue.Now
	r.say(7<<29, 0, 0)
	closed := make(chan error, 1)
	go func() { closed <- r.conn.Close() }()
	for {
		a, err := r.qp.Query()
		require.NoError(t, err)
		if a.State != verbs.StateRTS && of.Connection().QP().Stats().RecvQueue.Now < posted { // what it has said is there
			break
		}
		runtime.Gosched()
	}
	require.Zero(t, of.Grants())
	_, err = io.ReadFull(c, got[1:])
	require.NoError(t, err)
	_, err = c.Read(got)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, c.Close())
	require.NoError(t, <-closed)
}
