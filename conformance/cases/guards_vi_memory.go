package cases

import (
	"context"
	"errors"
	"net"
	"runtime"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	viend "github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/vipl"
	"github.com/softrnic/softrnic/wr"
)

// guardsVIMemory are of messages of VIs that come or go in part when something happens to them.
var guardsVIMemory = []conformance.Case{
	apiCase("3.2.1/vi-memory-goes-within-a-message", eachLevel(viMemoryGoes), "VA-3.2.1-M1"),
	apiCase("2.2.2.2.5/vi-memory-goes-within-an-answer", viMemoryOfAnswerGoes, "VT-2.2.2.2.5-S2", "VT-3.2-M3"),
	apiCase("3.6/vi-damaged-within-a-message", eachLevel(viDamagedWithin), "VT-3.6-M5"),
	apiCase("2.5/vi-cannot-be-written-to", viCannotWrite, "VT-2.2.2.2.2-M2"),
	apiCase("2.5/vi-straight-to-memory", viStraight, "VT-2.2.2.2.2-M2"),
}

// viSyncs has all that the peer has sent be taken, within a message: it allows a Send that waits for it.
func (r *viRig) viSyncs() {
	r.nop(viSegment{posted: 1})
	r.get(viSend)
}

// viMemoryGoes deregisters memory when part of a message has come for it.
func viMemoryGoes(t *conformance.T, l viLevel) {
	for kind := range inTurn(t, "type %d", []byte{viSend, viWrite, viReadResponse}) {
		if kind == viReadResponse && l.level != vipl.ServiceReliableDelivery {
			continue // there are none; or no Send passes a Read
		}
		r := newVIRig(t, viSetup{level: l.level, vi: func(a *vipl.ViAttributes) { a.FlowControl = true }})
		mem := make([]byte, 16)
		handle := r.register(mem, vipl.MemAttributes{Ptag: r.ptag, EnableRdmaWrite: true})
		at := vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: 16}
		s := viSegment{kind: kind, posted: 1, payload: []byte("the half")}
		var d *vipl.Descriptor
		switch kind {
		case viSend:
			d = r.recv(r.v, at)
			s = r.message(s)
		case viWrite:
			s.rdma = viRDMA{uint64(at.Data), uint32(handle), 16}
			s = r.message(s)
		default:
			d = r.reads(r.v, r.remote(0), at)
			s.number = r.get(viReadRequest).number
		}
		after := r.recv(r.v, r.data(0, 8))
		sent := r.sends(r.v)
		r.put(s)
		r.viSyncs()
		require.Equal(t, "the half", string(mem[:8]))
		require.NoError(t, r.nic.DeregisterMem(at.Data, handle))
		s.offset, s.flags = 8, viLast
		r.put(s)
		switch kind {
		case viSend:
			r.received(r.v, d, viDone|viProtection|viOpReceive)
		case viReadResponse:
			r.sent(r.v, d, viDone|viProtection|viOpRead)
		}
		if l.level != vipl.ServiceReliableReception {
			r.sent(r.v, sent, viDone)
		}
		if l.level == vipl.ServiceUnreliable {
			r.takes("goes on", after, viDone|viOpReceive)
			n := either[uint64](kind == viWrite, 1, 0)
			require.Equal(t, []uint64{n, n}, []uint64{r.usage().Untold, r.usage().Misdirected})
			require.Equal(t, vipl.StateConnected, r.state(r.v))
			continue
		}
		if l.level == vipl.ServiceReliableReception {
			code := either[uint32](kind == viSend, viDescriptorCode, viProtectionCode)
			require.Equal(t, []uint32{s.number, code}, acked(r.last()))
		} else {
			r.over()
		}
		switch kind {
		case viSend:
			r.reported(r.v, vipl.ErrorConnLost, vipl.StatusOpReceive)
		case viWrite:
			r.reported(r.v, vipl.ErrorRdmaWProt, vipl.StatusOpRemoteRdmaWrite)
		default:
			r.reported(r.v, vipl.ErrorConnLost, vipl.StatusOpRdmaRead)
		}
		require.Equal(t, vipl.StateError, r.state(r.v))
		r.received(r.v, after, viDone|viFlushed|viOpReceive)
	}
}

// viMemoryOfAnswerGoes deregisters memory that a peer reads, when part of the answer has left.
func viMemoryOfAnswerGoes(t *conformance.T) {
	const all = 1 << 20
	for l := range inTurn(t, "%s", viLevels[1:]) {
		r := newVIRig(t, viSetup{
			level: l.level, pipe: true, vi: func(a *vipl.ViAttributes) { a.MaxTransferSize = all }, ce: func(c *viCE) { c.mtu = all },
			nic: vipl.Config{Linger: time.Minute}, // the last word is cut off then, and a machine may stop for a second
		})
		mem := make([]byte, all)
		handle := r.register(mem, vipl.MemAttributes{Ptag: r.ptag, EnableRdmaRead: true})
		number := r.rdmaRead(viRDMA{uint64(vipl.AddressOf(mem)), uint32(handle), all})
		require.Equal(t, byte(0), r.get(viReadResponse).flags)
		require.NoError(t, r.nic.DeregisterMem(vipl.AddressOf(mem), handle))
		s := r.next()
		for s.flags == 0 {
			s = r.next()
		}
		require.Equal(t, []any{byte(viReadResponse), byte(viLast | viError), number, 0}, []any{s.kind, s.flags, s.number, len(s.payload)}, "%v", &s)
		require.Less(t, s.offset, uint32(all))
		if l.level == vipl.ServiceReliableReception {
			require.Equal(t, []uint32{number, viProtectionCode}, acked(r.last()))
		} else {
			r.over()
		}
		r.reported(r.v, vipl.ErrorRdmaRProt, vipl.StatusOpRdmaRead)
		require.Equal(t, vipl.StateError, r.state(r.v))
	}
}

// viDamagedWithin damages a segment that is not the first of its message, and one that finds no receive.
func viDamagedWithin(t *conformance.T, l viLevel) {
	reliable := l.level != vipl.ServiceUnreliable
	ends := func(r *viRig, number uint32) {
		if l.level == vipl.ServiceReliableReception {
			require.Equal(t, []uint32{number, viTransportCode}, acked(r.last()))
		} else {
			r.over()
		}
		require.Equal(t, vipl.StateError, r.state(r.v))
	}
	for kind := range inTurn(t, "type %d", []byte{viSend, viWrite}) {
		r := newCRCRig(t, l.level, 2)
		s := r.message(viSegment{kind: kind, payload: []byte("the half"), rdma: r.at(0, 16)})
		r.put(s)
		s.offset, s.flags = 8, viLast
		r.says(spoilt(s, 6))
		if kind == viSend {
			r.received(r.v, r.receives[0], viDone|viTransport|viOpReceive)
		}
		if reliable {
			ends(r, s.number)
			op := either[vipl.Status](kind == viSend, vipl.StatusOpReceive, vipl.StatusOpRemoteRdmaWrite)
			r.reported(r.v, either(kind == viSend, vipl.ErrorConnLost, vipl.ErrorRdmaWData), op)
			continue
		}
		r.takes("goes on", r.receives[either(kind == viSend, 1, 0)], viDone|viOpReceive)
		require.Equal(t, []uint64{either[uint64](kind == viSend, 0, 1), 0}, []uint64{r.usage().Untold, r.usage().Misdirected})
	}
	t.Part("no receive")
	r := newCRCRig(t, l.level, 0)
	s := r.message(viSegment{kind: viSend, flags: viLast, payload: []byte("for nobody")})
	r.says(spoilt(s, 6))
	if reliable {
		ends(r, s.number)
		r.reported(r.v, vipl.ErrorConnLost, 0)
		return
	}
	eventually(t, func() bool { return r.usage().Untold == 1 }, "it is counted")
	d := r.recv(r.v, r.data(0, 8))
	r.takes("goes on", d, viDone|viOpReceive)
	require.Equal(t, []uint64{1, 0}, []uint64{r.usage().Untold, r.usage().Misdirected})
}

// viCannotWrite has the connection of a VI take no more, as if its own half were closed: what the peer says is heard, for
// a while.
func viCannotWrite(t *conformance.T) {
	if runtime.GOOS == "windows" { // a socket has no second descriptor there
		return
	}
	for l := range inTurn(t, "%s", viLevels) {
		for closes := range inTurn(t, "the peer closes: %v", []bool{true, false}) {
			if l.level == vipl.ServiceReliableReception && !closes {
				continue // a second at least, for an error code of the peer
			}
			near, far := loopbackPair(t)
			file := must(near.(*net.TCPConn).File())(t)
			also := must(net.FileConn(file))(t)
			require.NoError(t, file.Close())
			r := newIdleVI(t, viSetup{level: l.level, receives: 2, nic: vipl.Config{
				Linger: either(closes, hour, 20*time.Millisecond),
				Dial:   func(context.Context, string, string) (net.Conn, error) { return near, nil },
			}})
			r.viPeer = newVIPeer(t, far)
			r.callsServer()
			require.NoError(t, r.answers(r.agrees()))
			require.NoError(t, errors.Join(also.(*net.TCPConn).CloseWrite(), also.Close()))
			r.sends(r.v)
			if closes {
				r.takes("heard", r.receives[0], viDone|viOpReceive)
				require.NoError(t, r.conn.Close())
			}
			e := receive(t, r.errors, "the connection goes on")
			require.Equal(t, vipl.ErrorConnLost, e.ErrorCode)
			var end *viend.EndError
			require.ErrorAs(t, e.Err, &end)
			require.Equal(t, either(closes, viend.CausePeerClosed, viend.CauseLost), end.Cause)
			if !closes {
				require.ErrorIs(t, e.Err, syscall.EPIPE)
			}
			require.Equal(t, vipl.StateError, r.state(r.v))
		}
	}
}

// viStraight has long messages come for memory that stays, straight to where they belong: in pieces, with others right
// behind, and for memory that goes meanwhile.
func viStraight(t *conformance.T) {
	const long, short = 60000, 100
	for goes := range inTurn(t, "the memory goes: %v", []bool{false, true}) {
		for op := range inTurn(t, "type %d", []byte{viSend, viWrite, viReadResponse}) {
			near, far := loopbackPair(t)
			h := viStraightHandler{make(chan viend.Result, 8), make(chan viend.Event, 8)}
			p, table := newVIPeer(t, far), stag.NewTable(stag.Config{})
			e := must(viend.New(near, viend.Config{
				Level: segment.ReliableDelivery, MTU: 2 * long, STags: table, User: stag.User{PD: 1}, Handler: h,
				AllowWrite: true, OutboundReads: 1, PeerNumber: p.number,
			}))(t, "an endpoint")
			t.Cleanup(func() {
				e.Close()
				table.Close()
			})
			var both [2][]byte
			var spans []viend.Span
			for i := range both {
				both[i] = make([]byte, long/2+short*i)
				info := must(table.Register(stag.RegionConfig{PD: 1, Memory: both[i], Access: wr.LocalWrite | wr.RemoteWrite}))(t)
				spans = append(spans, viend.Span{Addr: info.Base, Handle: info.STag, Length: uint32(len(both[i]))})
			}
			e.Start()
			data := fill(make([]byte, long+short), 5)
			s := viSegment{kind: op, flags: viLast, payload: data}
			switch op {
			case viSend:
				require.NoError(t, e.PostReceive(&viend.Receive{Spans: spans}))
				s = p.message(s)
			case viWrite:
				s.payload = data[:len(both[1])]
				s.rdma = viRDMA{spans[1].Addr, uint32(spans[1].Handle), uint32(len(s.payload))}
				s = p.message(s)
			default:
				require.NoError(t, e.PostSend(&viend.Request{Op: viend.OpRead, Spans: spans}))
				s.number = p.get(viReadRequest).number
			}
			require.NoError(t, e.PostReceive(&viend.Receive{Index: 1, Spans: spans[:1]}))
			if op != viReadResponse { // within a message comes what is to be in turn
				require.NoError(t, e.PostSend(&viend.Request{Op: viend.OpSend, Index: 2}))
				p.get(viSend)
				h.is(t, 2, viend.OpSend, 0)
			}
			b := s.octets(false)
			cut := len(b) / 3 * 2
			if goes {
				p.says(b[:cut])
				for _, s := range spans {
					require.NoError(t, table.Deallocate(s.Handle))
				}
				p.says(b[cut:])
				switch op {
				case viSend:
					h.is(t, 0, viend.OpReceive, viend.FlawProtection)
				case viWrite:
					require.Equal(t, viend.EventWriteProtection, receive(t, h.events, "nothing is told"))
				default:
					h.is(t, 0, viend.OpRead, viend.FlawProtection)
				}
				h.is(t, 1, viend.OpReceive, viend.FlawFlushed)
				p.over()
				continue
			}
			next := p.message(viSegment{kind: viSend, flags: viLast, payload: data[7:9]})
			p.says(b[:50])
			p.says(b[50:cut])
			p.says(append(b[cut:], next.octets(false)...))
			switch op {
			case viSend:
				h.is(t, 0, viend.OpReceive, 0)
			case viReadResponse:
				h.is(t, 0, viend.OpRead, 0)
			}
			h.is(t, 1, viend.OpReceive, 0)
			e.Close()
			want := append([]byte{}, s.payload...)
			got := append(append([]byte{}, both[0]...), both[1]...)
			if op == viWrite {
				got = both[1]
			} else {
				copy(want, data[7:9])
			}
			same(t, want, got, "what came for type %d", op)
		}
	}
}

// viStraightHandler hands on what it is told.
type viStraightHandler struct {
	results chan viend.Result
	events  chan viend.Event
}

func (h viStraightHandler) SendDone(r *viend.Result)    { h.results <- *r }
func (h viStraightHandler) ReceiveDone(r *viend.Result) { h.results <- *r }
func (h viStraightHandler) Event(e viend.Event)         { h.events <- e }
func (h viStraightHandler) Ended(*viend.EndError)       {}

// is says what the next result is.
func (h viStraightHandler) is(t *conformance.T, index int, op viend.Op, flaws viend.Flaws) {
	r := receive(t, h.results, "no result of %v", op)
	require.Equal(t, []any{index, op, flaws}, []any{r.Index, r.Op, r.Flaws})
}
