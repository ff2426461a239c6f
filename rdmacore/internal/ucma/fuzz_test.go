//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// FuzzCommands writes commands one after the other, of octets that come as they like; addresses of
// responses are led to memory that is there, or not. Whatever is asked, the device answers, and what is left can
// be closed.
func FuzzCommands(f *testing.F) {
	seed := func(cmds ...[]byte) {
		var all []byte
		for _, c := range cmds {
			all = append(all, c...)
		}
		f.Add(all)
	}
	a := sockaddr(netip.MustParseAddrPort("127.0.0.1:0"))
	d := sockaddr(netip.MustParseAddrPort("127.0.0.1:9"))
	create := fuzzed(uabi.CMCreateID, &uabi.CreateID{PS: uabi.PSTCP})
	seed(create, fuzzed(uabi.CMBindIP, &uabi.BindIP{Addr: a, ID: 1}), fuzzed(uabi.CMListen, &uabi.Listen{ID: 1}),
		fuzzed(uabi.CMDestroyID, &uabi.DestroyID{ID: 1}))
	seed(create, fuzzed(uabi.CMResolveIP, &uabi.ResolveIP{Dst: d, ID: 1}), fuzzed(uabi.CMGetEvent, &uabi.GetEvent{}),
		fuzzed(uabi.CMResolveRoute, &uabi.ResolveRoute{ID: 1, TimeoutMS: 1}), fuzzed(uabi.CMQueryRoute, &uabi.CMQueryCmd{ID: 1}),
		fuzzed(uabi.CMConnect, &uabi.Connect{ConnParam: param(0, "x"), ID: 1}), fuzzed(uabi.CMMigrateID, &uabi.MigrateID{ID: 1}))
	seed(create, fuzzed(uabi.CMSetOption, &uabi.SetOption{ID: 1, OptLen: 1}), fuzzed(uabi.CMQuery, &uabi.CMQueryCmd{ID: 1, Option: 2}),
		fuzzed(uabi.CMAccept, &uabi.Accept{ConnParam: param(0, ""), ID: 1}), fuzzed(uabi.CMReject, &uabi.Reject{ID: 1, PrivateDataLen: 255}))
	datagrams := fuzzed(uabi.CMCreateID, &uabi.CreateID{PS: uabi.PSUDP})
	seed(datagrams, fuzzed(uabi.CMListen, &uabi.Listen{ID: 1}), datagrams, fuzzed(uabi.CMResolveIP, &uabi.ResolveIP{Dst: d, ID: 2}),
		fuzzed(uabi.CMResolveRoute, &uabi.ResolveRoute{ID: 2, TimeoutMS: 1}), fuzzed(uabi.CMConnect, &uabi.Connect{ConnParam: param(0, "x"), ID: 2}),
		fuzzed(uabi.CMReject, &uabi.Reject{ID: 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		dev := newDevice(t)
		dev.ucm.Shorten(0, 1)
		p := dev.program()
		qp := p.qp()
		for n := 0; len(b) > 4 && n < 64; n++ {
			// A command is its number, its length, how much room there is for the response, and a
			// way to spoil it.
			cmd, in, out, how := uint32(b[0]), int(b[1])*2, uint16(b[2])*2, b[3]
			b = b[4:]
			in = min(in, len(b))
			binary.NativeEndian.PutUint32(p.arena, cmd)
			binary.NativeEndian.PutUint16(p.arena[4:], uint16(in))
			binary.NativeEndian.PutUint16(p.arena[6:], out)
			body := p.arena[8 : 8+in]
			copy(body, b[:in])
			b = b[in:]
			lead(p, cmd, body, how, qp)
			length := 8 + in
			if how&1 != 0 {
				length -= int(how >> 4)
			}
			m, err := p.file.Write(p.at(0), length)
			if err == nil && m != length || err != nil && m != 0 {
				t.Fatalf("%d of %d octets, and %v", m, length, err)
			}
		}
		p.file.Close()
		if n := dev.ucm.IDs(); n != 0 {
			t.Fatalf("%d ids are left", n)
		}
	})
}

// stay keeps a destination on this machine.
func stay(dst []byte) {
	if len(dst) < 24 {
		return
	}
	switch binary.NativeEndian.Uint16(dst) {
	case syscall.AF_INET:
		dst[4] = 127
	case syscall.AF_INET6:
		a := netip.IPv6Loopback().As16()
		copy(dst[8:], a[:])
	}
}

// lead puts an address where a command has that of its response, and a queue pair where CONNECT has one.
func lead(p *program, cmd uint32, body []byte, how byte, qp uint32) {
	at := 0
	switch cmd {
	case uabi.CMCreateID:
		at = 8
	case uabi.CMResolveIP:
		stay(body[min(28, len(body)):])
		return
	case uabi.CMResolveAddr:
		stay(body[min(144, len(body)):])
		return
	case uabi.CMConnect:
		if len(body) >= 4 && how&8 == 0 {
			binary.NativeEndian.PutUint32(body, qp)
		}
		return
	case uabi.CMAccept:
		if len(body) >= 12 && how&8 == 0 {
			binary.NativeEndian.PutUint32(body[8:], qp)
		}
		return
	case uabi.CMDestroyID, uabi.CMQueryRoute, uabi.CMQuery, uabi.CMInitQPAttr, uabi.CMGetEvent, uabi.CMMigrateID, uabi.CMSetOption:
	default:
		return
	}
	if len(body) < at+8 {
		return
	}
	addr := p.resp()
	if how&2 != 0 {
		addr = uint64(how) << 3
	}
	binary.NativeEndian.PutUint64(body[at:], addr)
}

// fuzzed is a command as the fuzz target reads it.
func fuzzed[T any](cmd byte, q *T) []byte {
	b := append([]byte(nil), umem.Bytes(q)...)
	if len(b)%2 != 0 {
		b = append(b, 0)
	}
	return append([]byte{cmd, byte(len(b) / 2), 255, 0}, b...)
}
