package tap

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// FuzzRelay: whatever goes through a proxy, its capture has as many octets each way as came.
func FuzzRelay(f *testing.F) {
	startup := func(s mpa.Startup) []byte {
		b, err := s.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	req := startup(mpa.Startup{Rev: 1, CRC: true, PrivateData: []byte("private")})
	rep := startup(mpa.Startup{Rev: 1, CRC: true, Reply: true, Markers: true})
	framer := mpa.NewFramer(true, true)
	send := ddp.AppendUntagged(nil, true, rdmap.Control(rdmap.Send), 0, ddp.QNSend, 1, 0)
	fpdu := framer.AppendFPDU(nil, send, make([]byte, 100))
	f.Add(append(req, fpdu...), rep, uint16(7), false)
	f.Add(append(req, fpdu[:50]...), rep, uint16(1000), true)
	f.Add(req[:10], startup(mpa.Startup{Rev: 1, Reply: true, Reject: true}), uint16(1), false)
	f.Add([]byte("GET / HTTP/1.1"), []byte("no"), uint16(3), false)
	f.Fuzz(func(t *testing.T, out, in []byte, step uint16, payload bool) {
		if len(out)+len(in) > 1<<17 {
			return
		}
		var capture bytes.Buffer
		tp := New(&capture, Config{Payload: payload})
		client, server := net.Pipe()
		st := tp.between(client, server)
		before := [2]uint32{st.dirs[0].seq, st.dirs[1].seq}
		rest := [2][]byte{in, out}
		for len(rest[0])+len(rest[1]) > 0 {
			for i, b := range rest {
				d := interpose.Direction(i)
				n := min(len(b), int(step)+1)
				st.Carry(d, b[:n])
				rest[d] = b[n:]
			}
		}
		st.End(1, false)
		st.End(0, false)
		require.NoError(t, tp.Close())
		require.Zero(t, tp.Lost())
		sent := uint32(0)
		for _, n := range blocks(t, capture.Bytes()).sent {
			sent += n
		}
		require.EqualValues(t, len(in)+len(out)+4, sent, "what came, and a SYN and a FIN each way")
		for d, b := range [2][]byte{in, out} {
			require.EqualValues(t, len(b)+1, st.dirs[d].seq-before[d], "direction %d", d) // and a FIN
		}
	})
}
