package qp

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// FuzzLiveQP feeds octets to a queue pair in RTS that has work on both queues.
// The first octet chooses the role, CRC, markers, whether the rest is a stream or
// ULPDUs for good FPDUs, how the peer ends, and whether RFC 7306 is spoken. Whatever comes, the queue pair
// ends in Idle or Error when the peer does, every request completes once, and no
// octet outside of what the peer may write changes.
func FuzzLiveQP(f *testing.F) {
	r := newIdleRig(f, setup{closeTimeout: 10 * time.Second, cqe: 1 << 10})
	// STags are drawn at random, so a seed has marks that stand for them.
	for mode := range byte(64) {
		add := func(ulpdus ...[]byte) { f.Add(mode, r.seed(mode, ulpdus...)) }
		for i, a := range attacks() {
			if i%64 == int(mode) { // each one in some mode
				add(a.bad(r))
			}
		}
		add(
			readRequest(1, 64, r.full.stag, r.full.base).Octets(), rawpeer.Send(1, filled(64)).Octets(),
			rawpeer.Write(uint32(r.writable.stag), r.writable.base, filled(9)).Octets(),
			rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO), filled(readSize)).Octets(),
			sendInvalidate(2, uint32(r.full.stag), nil).Octets(),
		)
		add(rawpeer.Immediate(1, 0xdeadbeef).Octets(), rawpeer.Send(2, nil).Octets())
		add(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO), filled(readSize)).Octets(), atomicResponse(1, 1, 7).Octets())
		add(terminate(0, echoNone, nil))
	}
	f.Fuzz(func(t *testing.T, mode byte, in []byte) {
		r := newIdleRig(t, setup{
			role: mpa.Role(mode & 1), crc: mode&2 != 0, markers: mode&4 != 0, closeTimeout: 10 * time.Second,
			config: func(c *Config) { c.Extensions = mode&32 != 0 },
		})
		for _, s := range []*slab{r.full, r.writable} { // the peer may write here
			s.free = true
		}
		r.connect()
		r.postRecv(
			wr.Recv{ID: 1, SGL: []wr.SGE{r.full.sge(0, 40), {}, r.full.sge(512, 24)}},
			wr.Recv{ID: 2, SGL: r.private.sgl(64, 0)},
		)
		r.postSend(
			wr.Request{ID: 10, Op: wr.OpRead, Local: r.full.sge(readTO, readSize), Remote: wr.Remote{STag: 0x77, TO: 0x99}},
			wr.Request{ID: 11, Flags: wr.ReadFence, SGL: r.full.sgl(0, 8)},
		)
		ids := []uint64{10, 11}
		if mode&32 != 0 {
			r.postSend(
				wr.Request{ID: 12, Op: wr.OpWriteImmediate, SGL: r.full.sgl(0, 8), Remote: wr.Remote{STag: 0x77}, Immediate: 5},
				wr.Request{ID: 13, Op: wr.OpFetchAdd, Remote: wr.Remote{STag: 0x77, TO: 8}, Atomic: wr.FetchAdd(3)},
			)
			ids = append(ids, 12, 13)
		}
		read := make(chan struct{})
		go func() { // what the queue pair sends may be much: a Read of it all
			defer close(read)
			_, _ = io.Copy(io.Discard, r.peer.Conn)
		}()
		in = r.resolve(in)
		if mode&8 == 0 {
			_ = r.peer.Raw(in) // it may be reset meanwhile
		} else {
			for len(in) > 0 {
				n := min(int(in[0])+1, len(in))
				_ = r.peer.Send(in[1:n])
				in = in[n:]
			}
		}
		if mode&16 == 0 {
			_ = r.peer.CloseWrite()
		} else {
			_ = r.peer.Reset()
		}
		r.over()
		<-read
		require.Contains(t, []wr.State{wr.StateIdle, wr.StateError}, r.q.State())
		requireIDs(t, ids, r.all(r.scq))
		requireIDs(t, []uint64{1, 2}, r.all(r.rcq))
		r.requireMemory()
		require.NoError(t, r.q.Destroy())
	})
}

// requireIDs checks that each request completed once, in order.
func requireIDs(t *testing.T, want []uint64, got []comp) {
	t.Helper()
	var ids []uint64
	for _, c := range got {
		ids = append(ids, c.ID)
	}
	require.Equal(t, want, ids)
}

// The regions that a fuzz input can name: a mark is four octets that no STag of a
// small table is likely to be.
func (r *rig) marks() []*slab {
	return []*slab{r.full, r.readable, r.writable, r.private, r.foreign, r.scoped, r.pinned}
}

// seed makes an input of ULPDUs that were made for this rig.
func (r *rig) seed(mode byte, ulpdus ...[]byte) (in []byte) {
	p := rawpeer.New(nil, rawpeer.Options{CRC: mode&2 != 0, MarkersOut: mode&4 != 0})
	for _, u := range ulpdus {
		for i, s := range r.marks() {
			u = bytes.ReplaceAll(u, binary.BigEndian.AppendUint32(nil, uint32(s.stag)), []byte{0xFE, 0xED, 0xFA, byte(i)})
		}
		if mode&8 == 0 {
			in = append(in, p.Frame(u)...)
			continue
		}
		u = u[:min(len(u), 255)]
		in = append(append(in, byte(len(u))), u...)
	}
	return in
}

// resolve puts this rig's STags in place of marks.
func (r *rig) resolve(in []byte) []byte {
	out := append([]byte(nil), in...)
	for i := 0; i+4 <= len(out); i++ {
		if out[i] == 0xFE && out[i+1] == 0xED && out[i+2] == 0xFA && int(out[i+3]) < len(r.marks()) {
			s := uint32(r.marks()[out[i+3]].stag)
			out[i], out[i+1], out[i+2], out[i+3] = byte(s>>24), byte(s>>16), byte(s>>8), byte(s)
			i += 3
		}
	}
	return out
}
