package rawpeer

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func pair(t *testing.T) (a, b net.Conn) {
	a, b, err := Pair()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func TestPeersTalk(t *testing.T) {
	for _, o := range []Options{{}, {CRC: true}, {CRC: true, MarkersIn: true, MarkersOut: true}} {
		c, d := pair(t)
		a, b := New(c, o), New(d, o)
		require.True(t, b.Silent(time.Millisecond))
		want := Send(1, make([]byte, 600)).Octets()
		require.NoError(t, a.Send(want))
		require.NoError(t, a.Send(ReadRequest(1, rdmap.ReadRequestHeader{Size: 3}).Octets()))
		got, err := b.Next()
		require.NoError(t, err)
		assert.Equal(t, want, got)
		s, err := b.Segment()
		require.NoError(t, err)
		assert.Equal(t, rdmap.ReadRequest, rdmap.OpcodeOf(s.RsvdULP()))
		require.NoError(t, a.Send([]byte{1}))
		_, err = b.Segment()
		require.Error(t, err, "no DDP segment")
		require.NoError(t, a.Send(nil))
		require.NoError(t, a.CloseWrite())
		end, n, err := b.End()
		require.NoError(t, err)
		assert.Equal(t, FIN, end)
		assert.Equal(t, 1, n)
	}
}

func TestEnds(t *testing.T) {
	for want, do := range map[End]func(*Peer) error{
		FIN: (*Peer).CloseWrite,
		Cut: func(p *Peer) error {
			if err := p.Raw([]byte{0, 20, 1}); err != nil {
				return err
			}
			return p.Close()
		},
		Reset: (*Peer).Reset,
	} {
		c, d := pair(t)
		require.NoError(t, do(New(c, Options{})))
		end, _, err := New(d, Options{}).End()
		require.NoError(t, err)
		assert.Equal(t, want, end)
	}
	c, _ := pair(t)
	_, _, err := New(c, Options{Patience: time.Millisecond}).End()
	require.Error(t, err, "it has not ended")
}

func TestStartup(t *testing.T) {
	c, d := pair(t)
	peer := make(chan *Peer, 1)
	go func() {
		p, _, err := Respond(d, mpa.Startup{Rev: 2, Markers: true, PrivateData: []byte("hi")})
		assert.NoError(t, err)
		peer <- p
	}()
	a, rep, err := Initiate(c, mpa.Startup{Rev: 2, CRC: true})
	require.NoError(t, err)
	assert.Equal(t, "hi", string(rep.PrivateData))
	b := <-peer
	require.NotNil(t, b)
	want := Write(1, 2, make([]byte, 1000)).Octets()
	require.NoError(t, a.Send(want))
	got, err := b.Next()
	require.NoError(t, err)
	assert.Equal(t, want, got, "CRC and markers as agreed")
}

func TestStartupFails(t *testing.T) {
	c, d := pair(t)
	_, err := d.Write([]byte("GET / HTTP/1.1\r\n\r\n\r\n"))
	require.NoError(t, err)
	_, _, err = Initiate(c, mpa.Startup{Rev: 1})
	var bad *mpa.Error
	require.ErrorAs(t, err, &bad)

	c, d = pair(t)
	require.NoError(t, d.Close())
	_, _, err = Respond(c, mpa.Startup{Rev: 1})
	require.ErrorIs(t, err, io.EOF)
}
