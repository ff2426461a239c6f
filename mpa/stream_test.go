package mpa

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connect runs a startup between two of us over the two ends of a connection.
func connect(t *testing.T, ci, cr net.Conn, ini, res Config) (*Stream, *Stream) {
	t.Helper()
	type result struct {
		s   *Stream
		err error
	}
	done := make(chan result, 1)
	go func() {
		s, err := Initiate(t.Context(), ci, ini)
		done <- result{s, err}
	}()
	offer, err := Await(t.Context(), cr, Config{Rev: res.Rev})
	require.NoError(t, err)
	rs, err := offer.Accept(res)
	require.NoError(t, err)
	r := <-done
	require.NoError(t, r.err)
	assert.Equal(t, Initiator, r.s.Role)
	assert.Equal(t, Responder, rs.Role)
	assert.Same(t, ci, r.s.Conn)
	assert.Same(t, cr, rs.Conn)
	return r.s, rs
}

func pipe(t *testing.T) (net.Conn, net.Conn) {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestStartupAgrees(t *testing.T) {
	for _, tc := range []struct {
		name     string
		ini, res Config
		is, rs   Stream // Conn and Role aside
	}{
		{
			name: "defaults",
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
		{
			name: "private data both ways",
			ini:  Config{PrivateData: []byte("hello")}, res: Config{PrivateData: []byte("welcome")},
			is: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, PrivateData: []byte("welcome")},
			rs: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, PrivateData: []byte("hello")},
		},
		{
			name: "revision 1 at the Initiator",
			ini:  Config{Rev: 1, PrivateData: []byte("p")},
			is:   Stream{CRC: true, Rev: 1, IRD: 16, ORD: 16, PeerIRD: -1, PeerORD: -1},
			rs:   Stream{CRC: true, Rev: 1, IRD: 16, ORD: 16, PeerIRD: -1, PeerORD: -1, PrivateData: []byte("p")},
		},
		{
			name: "revision 1 at the Responder, unenhanced Request",
			ini:  Config{KeepIRD: true, KeepORD: true}, res: Config{Rev: 1},
			is: Stream{CRC: true, Rev: 1, IRD: 16, ORD: 16, PeerIRD: -1, PeerORD: -1},
			rs: Stream{CRC: true, Rev: 1, IRD: 16, ORD: 16, PeerIRD: -1, PeerORD: -1},
		},
		{
			name: "CRC off needs both: the Initiator alone",
			ini:  Config{NoCRC: true},
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
		{
			name: "CRC off needs both: the Responder alone",
			res:  Config{NoCRC: true},
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
		{
			name: "CRC off",
			ini:  Config{NoCRC: true}, res: Config{NoCRC: true},
			is: Stream{Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs: Stream{Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
		{
			name: "markers to the Initiator",
			ini:  Config{Markers: true},
			is:   Stream{CRC: true, MarkersIn: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs:   Stream{CRC: true, MarkersOut: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
		{
			name: "markers to the Responder",
			res:  Config{Markers: true},
			is:   Stream{CRC: true, MarkersOut: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs:   Stream{CRC: true, MarkersIn: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
		{
			name: "depths",
			ini:  Config{IRD: 3, ORD: 9}, res: Config{IRD: 7, ORD: 5},
			is: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 3, ORD: 7, PeerIRD: 7, PeerORD: 3},
			rs: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 7, ORD: 3, PeerIRD: 3, PeerORD: 9},
		},
		{
			name: "one depth not negotiated",
			ini:  Config{IRD: 3, ORD: 9, KeepORD: true}, res: Config{IRD: 7, ORD: 5},
			is: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 3, ORD: 9, PeerIRD: -1, PeerORD: 3},
			rs: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 7, ORD: 3, PeerIRD: 3, PeerORD: -1},
		},
		{
			name: "no Reads",
			ini:  Config{IRD: -1, ORD: -1}, res: Config{IRD: -1, ORD: -1},
			is: Stream{CRC: true, Rev: 2, Enhanced: true},
			rs: Stream{CRC: true, Rev: 2, Enhanced: true},
		},
		{
			name: "peer-to-peer",
			ini:  Config{P2P: true},
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRRead},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRWrite | RTRRead},
		},
		{
			name: "peer-to-peer, no nudging",
			ini:  Config{P2P: true, NoNudge: true},
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRWrite},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRWrite | RTRRead},
		},
		{
			name: "peer-to-peer if the peer can",
			ini:  Config{P2P: true, P2POptional: true},
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRRead},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRWrite | RTRRead},
		},
		{
			name: "peer-to-peer, a Read",
			ini:  Config{P2P: true}, res: Config{RTR: RTRRead | RTRSend},
			is: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRRead},
			rs: Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16, P2P: true, RTR: RTRRead},
		},
		{
			name: "no nudging",
			ini:  Config{NoNudge: true},
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
		{
			name: "the Responder's P2P has no say",
			res:  Config{P2P: true},
			is:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
			rs:   Stream{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16, PeerIRD: 16, PeerORD: 16},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// In a bubble a goroutine left behind fails the test.
			synctest.Test(t, func(t *testing.T) {
				a, b := pipe(t)
				is, rs := connect(t, a, b, tc.ini, tc.res)
				is.Conn, is.Role, rs.Conn, rs.Role = nil, 0, nil, 0
				assert.Equal(t, is.Request, rs.Request)
				assert.Equal(t, is.Reply, rs.Reply)
				assert.Equal(t, rs.RTR, rs.Reply.RTR)
				is.Request, is.Reply, rs.Request, rs.Reply = nil, nil, nil, nil
				tc.is.Nudge = !tc.ini.NoNudge
				assert.Equal(t, tc.is, *is)
				assert.Equal(t, tc.rs, *rs)
			})
		})
	}
}

func TestOfferSaysWhatWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		go func() {
			_, _ = Initiate(t.Context(), a, Config{IRD: 3, KeepORD: true, P2P: true, Markers: true, PrivateData: []byte("pd")})
		}()
		offer, err := Await(t.Context(), b, Config{})
		require.NoError(t, err)
		assert.Equal(t, Startup{Markers: true, CRC: true, Rev: 2, Enhanced: true, IRD: 3, ORD: NotNegotiated,
			P2P: true, RTR: RTRWrite | RTRRead, PrivateData: []byte("pd")}, offer.Request)
		assert.Equal(t, 3, offer.PeerIRD())
		assert.Equal(t, -1, offer.PeerORD())
	})
}

func TestReject(t *testing.T) {
	for _, tc := range []struct {
		name     string
		ini, res Config
		ird, ord int
	}{
		{"enhanced", Config{IRD: 2}, Config{IRD: 5, ORD: 9}, 5, 9},
		{"depths not negotiated", Config{KeepIRD: true, KeepORD: true, P2P: true}, Config{IRD: 5, ORD: 9}, -1, -1},
		{"unenhanced", Config{Rev: 1}, Config{IRD: 5, ORD: 9}, -1, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipe(t)
				done := make(chan error, 1)
				go func() {
					_, err := Initiate(t.Context(), a, tc.ini)
					done <- err
				}()
				offer, err := Await(t.Context(), b, tc.res)
				require.NoError(t, err)
				assert.Error(t, offer.Reject(make([]byte, 513)), "too long: the Offer stands")
				require.NoError(t, offer.Reject([]byte("no")))
				assert.ErrorIs(t, offer.Reject(nil), errAnswered)
				_, err = offer.Accept(Config{})
				assert.ErrorIs(t, err, errAnswered)

				var rejected *RejectedError
				require.ErrorAs(t, <-done, &rejected)
				assert.Equal(t, &RejectedError{PrivateData: []byte("no"), PeerIRD: tc.ird, PeerORD: tc.ord}, rejected)
				assert.Contains(t, rejected.Error(), "2 octets of private data")

				// R5044-7.1.2-M4, M7: the connection is the ULPs' again.
				go send(b, []byte("still open"))
				buf := make([]byte, 32)
				n, err := a.Read(buf)
				require.NoError(t, err)
				assert.Equal(t, "still open", string(buf[:n]))
			})
		})
	}
}

func TestUnusableConfigSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		for _, cfg := range []Config{{Rev: 3}, {PrivateData: make([]byte, 509)}, {Rev: 1, PrivateData: make([]byte, 513)}} {
			_, err := Initiate(t.Context(), a, cfg)
			assert.Error(t, err)
		}
		_, err := Await(t.Context(), b, Config{Rev: 3})
		assert.Error(t, err)

		done := make(chan error, 1)
		go func() {
			_, err := Initiate(t.Context(), a, Config{})
			done <- err
		}()
		offer, err := Await(t.Context(), b, Config{})
		require.NoError(t, err)
		_, err = offer.Accept(Config{IRD: 1 << 14})
		assert.Error(t, err)
		_, err = offer.Accept(Config{PrivateData: make([]byte, 509)})
		assert.Error(t, err)
		_, err = offer.Accept(Config{Rev: 1}) // Await's revision counts
		require.NoError(t, err, "the Offer stands")
		assert.NoError(t, <-done)
	})
}

// A ULPDU travels both ways with what the Streams say.
func TestStreamFramerAndDeframer(t *testing.T) {
	for _, tc := range []struct{ ini, res Config }{
		{},
		{ini: Config{Markers: true}},
		{res: Config{Markers: true}},
		{ini: Config{NoCRC: true}, res: Config{NoCRC: true, Markers: true}},
	} {
		a, b := pipe(t)
		is, rs := connect(t, a, b, tc.ini, tc.res)
		for _, dir := range []struct{ from, to *Stream }{{is, rs}, {rs, is}} {
			f, d := dir.from.Framer(), dir.to.Deframer()
			d.SetBuffer(make([]byte, MinBuffer))
			ulpdu := make([]byte, 1000)
			fpdu := f.AppendFPDU(nil, ulpdu)
			got, code := deframe(t, &d, fpdu, len(fpdu))
			require.Zero(t, code)
			require.Equal(t, [][]byte{ulpdu}, got)
		}
	}
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		is, rs := connect(t, a, b, Config{}, Config{})
		go func() { assert.NoError(t, is.Abort(t.Context(), CodeLocal)) }()
		ulpdu := unhex(t, terminateHex("2005", ""))[2:]
		assert.Equal(t, (&slowFramer{crc: true}).fpdu(ulpdu), readAll(t, b))
		assert.NoError(t, rs.Abort(t.Context(), CodeLocal))
		assert.ErrorIs(t, rs.Conn.SetDeadline(past), io.ErrClosedPipe, "closed")
	})
	synctest.Test(t, func(t *testing.T) { // a Responder sends no FPDU
		a, b := pipe(t)
		_, rs := connect(t, a, b, Config{}, Config{})
		go func() { assert.NoError(t, rs.Abort(t.Context(), CodeLocal)) }()
		assert.Empty(t, readAll(t, a))
	})
	synctest.Test(t, func(t *testing.T) { // a peer that does not read
		a, b := pipe(t)
		is, _ := connect(t, a, b, Config{}, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, is.Abort(ctx, CodeLocal), context.Canceled)
		assert.Empty(t, readAll(t, b), "closed all the same")
	})
}
