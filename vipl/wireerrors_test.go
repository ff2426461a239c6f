package vipl

import (
	"context"
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// filter is a net.Conn whose written segments go through change.
type filter struct {
	net.Conn
	change func(segment []byte) []byte
	buf    []byte
}

func (f *filter) Write(b []byte) (int, error) {
	f.buf = append(f.buf, b...)
	for len(f.buf) >= 4 {
		n := int(binary.BigEndian.Uint16(f.buf[2:]))
		if len(f.buf) < n {
			break
		}
		out := f.change(f.buf[:n:n])
		if _, err := f.Conn.Write(out); err != nil {
			return max(0, len(b)-len(f.buf)), err
		}
		if len(out) < n {
			_ = f.Conn.Close()
		}
		f.buf = f.buf[n:]
	}
	return len(b), nil
}

// data segments are those of messages with payload.
func isData(b []byte) bool {
	typ := segment.Type(b[1] & 0x1f)
	return typ == segment.Send || typ == segment.RDMAWrite
}

// wireCases are what may happen to a message of one segment on its way.
var wireCases = []struct {
	name    string
	crc     bool
	write   bool
	change  func(segment []byte) []byte
	verdict [numLevels]*verdict // nil: not at this level
}{
	{"CRC of a send", true, false, flip, [numLevels]*verdict{ // VT-3.6-M5
		unreliable(verdict{recv: transport, recvOp: opRecv}), // VA-2.5.1-M1
		broken(verdict{recv: transport, recvOp: opRecv, recvError: ErrorConnLost}),
		broken(verdict{recv: transport, recvOp: opRecv, recvError: ErrorConnLost, send: transport}), // VT-3.6-M7
	}},
	{"CRC of a write", true, true, flip, [numLevels]*verdict{
		unreliable(verdict{noRecv: true, sendOp: opWrite}),
		broken(verdict{noRecv: true, sendOp: opWrite, recvError: ErrorRdmaWData}),
		broken(verdict{noRecv: true, sendOp: opWrite, recvError: ErrorRdmaWData, send: transport}),
	}},
	{"transmit error of a send", false, false, abort, [numLevels]*verdict{ // VT-3.2-M3
		unreliable(verdict{recv: StatusPartialError, recvOp: opRecv}),
		broken(verdict{recv: StatusPartialError, recvOp: opRecv, recvError: ErrorConnLost}),
		broken(verdict{recv: StatusPartialError, recvOp: opRecv, recvError: ErrorConnLost, send: transport}),
	}},
	{"transmit error of a write", false, true, abort, [numLevels]*verdict{
		unreliable(verdict{noRecv: true, sendOp: opWrite}),
		broken(verdict{noRecv: true, sendOp: opWrite, recvError: ErrorRdmaWAbort}),
		broken(verdict{noRecv: true, sendOp: opWrite, recvError: ErrorRdmaWAbort, send: transport}),
	}},
	{"unknown type", false, false, func(s []byte) []byte { s[1] |= 0x1f; return s }, [numLevels]*verdict{nil, lostPeer[1], lostPeer[2]}},
	{"not where the message goes on", false, false, func(s []byte) []byte { s[7] = 1; return s },
		[numLevels]*verdict{nil, lostPeer[1], lostPeer[2]}},
	{"version", false, false, func(s []byte) []byte { s[0] = 2; return s }, lostPeer},
	{"length below the header", false, false, func(s []byte) []byte { s[3] = 3; return s }, lostPeer},
	{"cut off in the header", false, false, func(s []byte) []byte { return s[:10] }, lostPeer},
	{"cut off in a send", false, false, func(s []byte) []byte { return s[:50] }, lostPeer},
}

// TestCutOff: the connection is lost between two segments of a message (10.2, bit 4).
func TestCutOff(t *testing.T) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			p := &pair{b: newHost(t, Config{})}
			p.a = newHost(t, Config{Segment: 1024, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return &filter{Conn: conn, change: func(s []byte) []byte {
					if offset := binary.BigEndian.Uint32(s[4:]); isData(s) && offset > 0 {
						return nil
					}
					return s
				}}, err
			}})
			p.va, p.vb = p.a.vi(level, nil, nil), p.b.vi(level, nil, nil)
			connect(t, p.a, p.va, p.b, p.vb)
			r, next := p.b.postRecv(p.vb, p.b.data(0, hostMemory)), p.b.postRecv(p.vb)
			d := p.a.desc()
			d.SetSend(p.a.data(0, hostMemory)) // more than is taken ahead of the connection
			p.a.postSend(p.va, d)
			wait(t, p.vb.RecvWait, r)
			assert.Equal(t, StatusDone|opRecv|transport|StatusPartialError, r.Control.Status)
			assert.Zero(t, r.Control.Length)
			wait(t, p.vb.RecvWait, next)
			assert.Equal(t, StatusDone|opRecv|flushed, next.Control.Status)
			wait(t, p.va.SendWait, d)
			want := StatusDone | flushed | StatusPartialError
			if level == ServiceReliableReception { // 10.2, bit 6: on all types
				want = StatusDone | transport | StatusPartialError
			}
			assert.Equal(t, want, d.Control.Status)
			assert.Equal(t, ErrorConnLost, p.a.waitError().ErrorCode)
			assert.Equal(t, ErrorConnLost, p.b.waitError().ErrorCode)
			assert.Equal(t, StateError, state(t, p.va))
			assert.Equal(t, StateError, state(t, p.vb))
		})
	}
}

// lostPeer is the end of the stream: of the connection at every level (VI/TCP 2.2.2.2.2).
var lostPeer = [numLevels]*verdict{
	broken(verdict{recv: flushed, recvOp: opRecv, recvError: ErrorConnLost}),
	broken(verdict{recv: flushed, recvOp: opRecv, recvError: ErrorConnLost}),
	broken(verdict{recv: flushed, recvOp: opRecv, recvError: ErrorConnLost, send: transport}),
}

func flip(segment []byte) []byte {
	segment[len(segment)-8] ^= 4 // in the payload
	return segment
}

func abort(segment []byte) []byte {
	segment[1] |= 1 << 5
	return segment
}

func TestWireErrors(t *testing.T) {
	for _, c := range wireCases {
		for _, level := range levels {
			if c.verdict[level] == nil {
				continue
			}
			t.Run(c.name+", "+level.String(), func(t *testing.T) {
				change := func(s []byte) []byte { return s }
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, address)
					return &filter{Conn: conn, change: func(s []byte) []byte {
						if isData(s) {
							return change(s)
						}
						return s
					}}, err
				}
				p := &pair{a: newHost(t, Config{CRC: c.crc, Dial: dial}), b: newHost(t, Config{CRC: c.crc})}
				p.va, p.vb = p.a.vi(level, nil, nil), p.b.vi(level, nil, nil)
				others := newBystanders(t, p)
				connect(t, p.a, p.va, p.b, p.vb)
				d := p.a.desc()
				if c.write {
					d.SetRdmaWrite(p.b.at(0), p.a.data(0, 100))
				} else {
					p.b.postRecv(p.vb, p.b.data(0, 100))
					d.SetSend(p.a.data(0, 100))
				}
				change = func(s []byte) []byte { // once
					change = func(s []byte) []byte { return s }
					return c.change(s)
				}
				p.a.postSend(p.va, d)
				p.judge(t, d, c.verdict[level])
				others.check(t)
			})
		}
	}
}

// TestMalformedAtUnreliable: a segment that makes no sense, of which the end is known, is a
// message lost, and nothing else (2.5.1).
func TestMalformedAtUnreliable(t *testing.T) {
	for name, spoil := range map[string]func([]byte){
		"unknown type":                  func(s []byte) { s[1] |= 0x1f },
		"not where the message goes on": func(s []byte) { s[7] = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			first := true
			p := &pair{b: newHost(t, Config{})}
			p.a = newHost(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return &filter{Conn: conn, change: func(s []byte) []byte {
					if isData(s) && first {
						first = false
						spoil(s)
					}
					return s
				}}, err
			}})
			p.va, p.vb = p.a.vi(ServiceUnreliable, nil, nil), p.b.vi(ServiceUnreliable, nil, nil)
			connect(t, p.a, p.va, p.b, p.vb)
			r := p.b.postRecv(p.vb, p.b.data(0, 10))
			for n := 1; n <= 2; n++ {
				d := p.a.desc()
				d.SetSend(p.a.data(0, n))
				p.a.postSend(p.va, d)
				wait(t, p.va.SendWait, d)
				success(t, d, StatusOpSend, n)
			}
			wait(t, p.vb.RecvWait, r)
			success(t, r, opRecv, 2) // the second
			p.idle(t)
		})
	}
}

// TestLostPeer: the peer's Nic goes in the middle of work, on all queues.
func TestLostPeer(t *testing.T) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			a, b := newHost(t, Config{}), newHost(t, Config{})
			attributes := a.attributes(level)
			attributes.FlowControl = true // so that a Send waits
			va, err := a.nic.CreateVi(attributes, nil, nil)
			require.NoError(t, err)
			connect(t, a, va, b, b.vi(level, nil, nil))
			other := newHost(t, Config{}) // not the Nic that goes
			o := &bystanders{pair{a: a, b: other, va: a.vi(level, nil, nil), vb: other.vi(level, nil, nil)}}
			connect(t, a, o.va, other, o.vb)

			var sends, recvs []*Descriptor
			for range 5 {
				d := a.desc()
				d.SetSend(a.data(0, 10))
				sends = append(sends, a.postSend(va, d))
				recvs = append(recvs, a.postRecv(va, a.data(0, 10)))
			}
			require.NoError(t, b.nic.CloseNic())
			waitState(t, va, StateError)
			for i := range sends {
				wait(t, va.SendWait, sends[i])
				assert.Equal(t, StatusDone|flushed, sends[i].Control.Status, "it has not begun")
				wait(t, va.RecvWait, recvs[i])
				assert.Equal(t, StatusDone|flushed|opRecv, recvs[i].Control.Status)
			}
			assert.Equal(t, ErrorConnLost, a.waitError().ErrorCode)
			a.flushes(t, va)
			o.check(t)
			a.noError()
		})
	}
}
