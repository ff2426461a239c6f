package qp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// over is a connection that something stands over, as a capture does.
type over struct{ net.Conn }

func (c over) NetConn() net.Conn { return c.Conn }

// TestBoundaries: what stands over a TCP connection leaves the FPDUs of its stream as they are: those of long messages, of a
// burst and of RDMA Read Responses, copied or not.
func TestBoundaries(t *testing.T) {
	fpdus := func(crc bool, wrap func(*testing.T, net.Conn, net.Conn) (net.Conn, net.Conn)) (sizes []int) {
		r := newIdleRig(t, setup{crc: crc})
		big := r.big(1 << 20)
		a, b, err := rawpeer.Pair()
		require.NoError(t, err)
		r.start(wrap(t, a, b))
		take := func(last int) []int {
			var sizes []int
			for len(sizes) == 0 || sizes[len(sizes)-1] != last {
				sizes = append(sizes, len(r.next()))
			}
			return sizes
		}
		r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{big}}, wr.Request{ID: 2}) // TCP settles its segment size
		take(ddp.UntaggedHeader)
		r.postSend(
			wr.Request{ID: 3, SGL: []wr.SGE{big}},
			wr.Request{ID: 4, Op: wr.OpWrite, SGL: []wr.SGE{{STag: big.STag, TO: big.TO, Length: 300_000}}, Remote: wr.Remote{STag: 5}},
			wr.Request{ID: 5, SGL: r.full.sgl(0, 100)}, wr.Request{ID: 6},
		)
		sizes = take(ddp.UntaggedHeader)
		r.send(readRequest(1, 200_000, big.STag, big.TO).Octets(), readRequest(2, 1, big.STag, big.TO).Octets())
		return append(sizes, take(ddp.TaggedHeader+1)...)
	}
	for name, wrap := range map[string]func(*testing.T, net.Conn, net.Conn) (net.Conn, net.Conn){
		"wrapped": func(_ *testing.T, a, b net.Conn) (net.Conn, net.Conn) { return over{a}, b },
		"TLS":     tlsOver,
	} {
		for _, crc := range []bool{false, true} {
			bare := fpdus(crc, func(_ *testing.T, a, b net.Conn) (net.Conn, net.Conn) { return a, b })
			require.Greater(t, len(bare), 40)
			require.Equal(t, bare, fpdus(crc, wrap), "%s, CRC %t", name, crc)
		}
	}
}
