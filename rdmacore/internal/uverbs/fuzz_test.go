//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// FuzzCommands has a program with two connected queue pairs write anything: each step is a command number, how
// many octets its body has and what is in them. Words of the body are made addresses of the program's memory,
// handles and lengths often enough that commands get beyond their checks. Nothing may panic or hang, and a
// refusal is an errno.
func FuzzCommands(f *testing.F) {
	step := func(command byte, body ...byte) []byte { return append([]byte{command, byte(len(body))}, body...) }
	for c := range byte(41) {
		f.Add(join(step(c, 0xf0, 0xf1, 0xf2, 0xf3, 1, 1, 1, 1, 1, 1), step(c|0x80, 0xf0, 1, 2, 3, 4, 5, 6, 7, 8)))
	}
	f.Add(join(step(uabi.CmdPostSend, 0xf0, 0xf4, 0x81, 0xc8, 1, 2, 0xf1, 8), step(uabi.CmdPollCQ, 0xf0, 0x81, 4)))
	f.Add(join(step(uabi.CmdRegMR, 0xf0, 0xf1, 0xe1, 0xf1, 0x81, 7), step(uabi.CmdReregMR, 0xf0, 0x81, 7, 0xf1, 0xe1, 0xf1, 0x81, 7), step(uabi.CmdDeregMR, 0x81)))
	f.Add(join(step(uabi.CmdModifyQP, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0), step(uabi.CmdDestroyQP, 0xf0, 0x81)))
	// A parent domain; an extended queue; windows of both types, bound, bound anew and gone with their queue pair.
	f.Add(join(step(uabi.CmdAllocPD, 0xf0, 0x81, 3), step(uabi.CmdCreateCQ, 0xf0, 0xf1, 16, 0, 0xc3, 0, 0x7f, 0, 1, 3, 0x82, 0), step(uabi.CmdDeallocPD, 0x82), step(uabi.CmdDeallocPD, 0x81)))
	bind := []byte{0xf0, 0x81, 1, 0, 0xc1, 1, 0, 0, 8, 2, 0, 0xf1, 0xe2, 0x81, 2, 0xc6, 1}
	f.Add(join(step(uabi.CmdAllocMW, 0xf0, 0x81, 1), step(uabi.CmdPostSend, bind...), step(uabi.CmdPostSend, bind...), step(uabi.CmdDestroyQP, 0xf0, 0x81)))
	f.Add(join(step(uabi.CmdAllocMW, 0xf0, 0x81, 2), step(uabi.CmdPostSend, bind...), step(uabi.CmdDeallocMW, 0x81), step(uabi.CmdDeregMR, 0x81)))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := pair(t, Config{RoCE: len(data)%2 == 1}, allRights|uabi.AccessMWBind)
		for n := 0; len(data) >= 2 && n < 64; n++ {
			command, words := uint32(data[0]&0x7f), int(data[1])
			if data[0]&0x80 != 0 {
				command |= uabi.FlagExtended
			}
			data = data[2:]
			words = min(words, len(data))
			p := a
			if n%4 == 3 {
				p = b
			}
			p.fuzzed(command, data[:words])
			data = data[words:]
		}
	})
}

// fuzzed writes a command. Each octet is a word of 4 or 8 octets of its body: 0xf0 to 0xff an address within or near the
// program's memory, 0xe0 to 0xef a length, 0xc0 to 0xdf a size, 0x80 to 0xbf a handle (four octets), else itself.
func (s *side) fuzzed(command uint32, words []byte) {
	var body []byte
	for _, w := range words {
		switch {
		case w >= 0xf0:
			addr := [...]uint64{s.alloc(4096), s.mem, s.mem + 64, s.mem + sideBytes - 8, s.mem + sideBytes, 0, 8, 1 << 47, ^uint64(7)}
			body = binary.NativeEndian.AppendUint64(body, addr[int(w&0xf)%len(addr)])
		case w >= 0xe0:
			length := [...]uint64{0, 8, 4096, sideBytes, 1 << 32, 1 << 63, ^uint64(0)}
			body = binary.NativeEndian.AppendUint64(body, length[int(w&0xf)%len(length)])
		case w >= 0xc0:
			size := [...]uint32{16, 56, 72, 0xffffffff, 1 << 28, 1 << 31, s.mr.Lkey, s.qp.QPN}
			body = binary.NativeEndian.AppendUint32(body, size[int(w&0x1f)%len(size)])
		case w >= 0x80:
			body = binary.NativeEndian.AppendUint32(body, uint32(w&0x3f))
		default:
			body = binary.NativeEndian.AppendUint32(body, uint32(w))
		}
	}
	var head []byte
	if command&uabi.FlagExtended != 0 {
		body = append(body, make([]byte, -len(body)&7)...)
		x := uabi.ExCmdHdr{Response: s.alloc(4096)}
		head = join(header(command, len(body)/8, 256/8), umem.Bytes(&x))
	} else {
		head = header(command, (8+len(body))/4, 4096/4)
	}
	_ = errnoOf(s.t, s.raw(join(head, body)))
}

// FuzzPostRing has a program write anything where its posts wait: the ring is its own memory.
func FuzzPostRing(f *testing.F) {
	good := umem.Bytes(&uabi.SendWR{WRID: 1, NumSGE: 1, Opcode: uabi.WRSend})
	f.Add(uint32(1), false, good, make([]byte, 16))
	f.Add(uint32(ringPosts), false, good, []byte{1})
	f.Add(^uint32(0), true, good, []byte{})
	f.Fuzz(func(t *testing.T, put uint32, recv bool, wrs, sges []byte) {
		a, b := waitingPair(t, forGood)
		b.receives(0, 4)
		a.series(0, inARow+1)
		w := &a.verbs().sends
		if recv {
			w = &b.verbs().recvs
		}
		r := w.ring
		require.NotNil(t, r)
		defer func() {
			if w.ring == nil {
				r.giveAway()
			}
		}()
		if len(wrs) > 0 && len(sges) > 0 {
			for i := range r.wrs {
				r.wrs[i] = wrs[i%len(wrs)]
			}
			for i := range r.sges {
				r.sges[i] = sges[i%len(sges)]
			}
			r.put.Store(put)
		}
		a.poll(16)
		b.poll(16)
	})
}
