package cm_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

func TestConnectExchangeClose(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			ask, answer := bytes.Repeat([]byte("?"), 508), bytes.Repeat([]byte("!"), 508)
			for range 2 { // a queue pair serves one connection after another
				x, y := connect(t, l, a, b, cm.Config{PrivateData: ask}, cm.Config{PrivateData: answer}, func(r *cm.Request) {
					assert.Equal(t, ask, r.PrivateData())
					assert.NotNil(t, r.RemoteAddr())
				})
				assert.Equal(t, answer, x.PrivateData())
				assert.Equal(t, ask, y.PrivateData())
				assert.Equal(t, x.LocalAddr().String(), y.RemoteAddr().String())
				assert.Same(t, a.qp, x.QP())
				exchange(t, a, b)
				require.NoError(t, x.Close())
				<-y.Done()
				require.NoError(t, y.Close())
				assert.Equal(t, verbs.StateIdle, a.qp.State())
				assert.Equal(t, verbs.StateIdle, b.qp.State())
			}
		})
	}
}

func TestDialListen(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan *cm.Conn)
	go func() {
		defer close(accepted)
		r, err := l.Accept(t.Context())
		if !assert.NoError(t, err) {
			return
		}
		c, err := r.Accept(t.Context(), b.qp, cm.Config{})
		assert.NoError(t, err)
		accepted <- c
	}()
	x, err := cm.Dial(bounded(t), l.Addr().String(), a.qp, cm.Config{})
	require.NoError(t, err)
	y := <-accepted
	require.NotNil(t, y)
	exchange(t, a, b)
	require.NoError(t, y.Close())
	require.NoError(t, x.Close())
}

// TestCRCAndMarkers: CRCs are off only if both sides can do without (RFC 5044
// 7.1.1), and each side decides on the markers that it receives.
func TestCRCAndMarkers(t *testing.T) {
	for bits := range 16 {
		ca := cm.Config{NoCRC: bits&1 != 0, Markers: bits&2 != 0}
		cb := cm.Config{NoCRC: bits&4 != 0, Markers: bits&8 != 0}
		t.Run(fmt.Sprintf("%04b", bits), func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			x, y := connect(t, tcpLink, a, b, ca, cb, nil)
			for _, c := range []*cm.Conn{x, y} {
				assert.Equal(t, !(ca.NoCRC && cb.NoCRC), c.CRC())
			}
			out, in := x.Markers()
			assert.Equal(t, []bool{cb.Markers, ca.Markers}, []bool{out, in})
			out, in = y.Markers()
			assert.Equal(t, []bool{ca.Markers, cb.Markers}, []bool{out, in})
			exchange(t, a, b)
			require.NoError(t, x.Close())
			require.NoError(t, y.Close())
		})
	}
}

func TestRevisions(t *testing.T) {
	long := bytes.Repeat([]byte{9}, 512) // revision 1 has no enhanced word
	for _, c := range []struct{ a, b, want uint8 }{{0, 0, 2}, {2, 2, 2}, {1, 1, 1}, {1, 2, 1}} {
		t.Run(fmt.Sprint(c.a, c.b), func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			ca, cb := cm.Config{Rev: c.a}, cm.Config{Rev: c.b}
			if c.want == 1 {
				ca.PrivateData, cb.PrivateData = long, long
			}
			x, y := connect(t, tcpLink, a, b, ca, cb, func(r *cm.Request) {
				if c.want == 1 {
					assert.Equal(t, -1, r.PeerIRD())
					assert.Equal(t, -1, r.PeerORD())
				}
			})
			assert.Equal(t, c.want, x.Rev())
			assert.Equal(t, c.want, y.Rev())
			assert.Equal(t, cb.PrivateData, x.PrivateData())
			exchange(t, a, b)
			require.NoError(t, x.Close())
			require.NoError(t, y.Close())
		})
	}
}

// TestReadDepths is the negotiation of RFC 6581 9.1 as a program sees it.
func TestReadDepths(t *testing.T) {
	type depths struct{ ird, ord int }
	for _, c := range []struct {
		name                  string
		qpA, qpB              verbs.QPConfig
		a, b                  cm.Config
		offered, wantA, wantB depths
	}{
		{name: "defaults", offered: depths{16, 16}, wantA: depths{16, 16}, wantB: depths{16, 16}},
		{
			name: "of the queue pairs", qpA: verbs.QPConfig{IRD: 3, ORD: 5}, qpB: verbs.QPConfig{IRD: 4, ORD: 8},
			offered: depths{3, 5}, wantA: depths{3, 4}, wantB: depths{4, 3},
		},
		{
			name: "less than the queue pair's", a: cm.Config{IRD: 2, ORD: 1}, b: cm.Config{IRD: 7, ORD: 7},
			offered: depths{2, 1}, wantA: depths{2, 1}, wantB: depths{7, 2},
		},
		{
			name: "more than the queue pair's", qpA: verbs.QPConfig{IRD: 2, ORD: 2}, a: cm.Config{IRD: 9, ORD: 9},
			offered: depths{2, 2}, wantA: depths{2, 2}, wantB: depths{16, 2},
		},
		{
			name: "no reads", qpA: verbs.QPConfig{NoReads: true},
			offered: depths{0, 0}, wantA: depths{0, 0}, wantB: depths{16, 0},
		},
		{
			name: "none offered", a: cm.Config{IRD: verbs.None, ORD: verbs.None},
			offered: depths{0, 0}, wantA: depths{0, 0}, wantB: depths{16, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newHost(t, c.qpA), newHost(t, c.qpB)
			for range 2 { // what one connection agreed on does not bind the next
				x, y := connect(t, tcpLink, a, b, c.a, c.b, func(r *cm.Request) {
					assert.Equal(t, c.offered, depths{r.PeerIRD(), r.PeerORD()})
				})
				assert.Equal(t, c.wantA, depths{x.IRD(), x.ORD()})
				assert.Equal(t, c.wantB, depths{y.IRD(), y.ORD()})
				require.NoError(t, x.Close())
				require.NoError(t, y.Close())
			}
		})
	}
}

// TestPeerToPeer: the Responder may speak first, whichever frame is agreed on
// (RFC 6581 9.2).
func TestPeerToPeer(t *testing.T) {
	for _, rtr := range []cm.RTR{0, cm.RTRSend, cm.RTRWrite, cm.RTRRead} {
		t.Run(rtr.String(), func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			if rtr == cm.RTRSend {
				b.recv(t, 99)
			}
			x, y := connect(t, tcpLink, a, b, cm.Config{Model: cm.PeerToPeer, RTR: rtr}, cm.Config{RTR: cm.RTRSend | cm.RTRWrite | cm.RTRRead},
				func(r *cm.Request) { assert.True(t, r.P2P()) })
			assert.True(t, x.P2P())
			assert.True(t, y.P2P())
			if rtr == cm.RTRSend {
				b.next(t, verbs.OpRecv, 99)
			}
			exchange(t, b, a) // b is the Responder
			require.NoError(t, y.Close())
			require.NoError(t, x.Close())
		})
	}
}

// TestResponderWaits: without that mode a Responder's request waits until the
// Initiator has sent something (RFC 5044 7.1.2).
func TestResponderWaits(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x, y := connect(t, tcpLink, a, b, cm.Config{Model: cm.ClientServer}, cm.Config{}, nil)
	a.recv(t, 1)
	b.send(t, verbs.Request{ID: 2})
	var c [1]verbs.Completion
	assert.Zero(t, b.cq.Poll(c[:]), "sent ahead of the Initiator")
	a.send(t, verbs.Request{ID: 3, Op: verbs.OpWrite})
	b.next(t, verbs.OpSend, 2)
	var got []verbs.Op // of two queues, so in any order
	for range 2 {
		_, err := a.cq.Wait(bounded(t), c[:])
		require.NoError(t, err)
		got = append(got, c[0].Op)
	}
	assert.ElementsMatch(t, []verbs.Op{verbs.OpWrite, verbs.OpRecv}, got)
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
}
