package tap

import (
	"errors"
	"net"

	"github.com/softrnic/softrnic/mpa"
)

// Conn puts the tap between the caller and server, on which an MPA startup is to come: what the caller writes is what
// client, the Initiator, has sent. It is for a proxy.
func (t *Tap) Conn(client, server net.Conn) net.Conn {
	st := t.begin(ends{server, client})
	if st == nil {
		return server
	}
	st.initiator, st.begun = true, true
	if !t.payload {
		s := &startup{}
		st.dirs[0].startup, st.dirs[1].startup = s, s
	}
	st.handshake(1)
	return offered(&conn{Conn: server, st: st})
}

// ends is a connection between the client of a proxy and its server.
type ends struct {
	net.Conn // to the server
	client   net.Conn
}

func (e ends) LocalAddr() net.Addr { return e.client.RemoteAddr() }

// startup is what a proxy has seen of one.
type startup struct {
	frames [2]*mpa.Startup // the Reply, the Request
	heads  [2][]byte       // octets that wait for their frame to be whole, or for the other one
}

// maxEarly is how many octets behind one frame wait for the other, as in package fault.
const maxEarly = 64 << 10

// begins takes octets of direction d until both frames are known, and has the redactors begin then; mu is held.
func (st *stream) begins(d int, b []byte) {
	s := st.dirs[d].startup
	s.heads[d] = append(s.heads[d], b...)
	if s.frames[d] == nil {
		f, n, err := mpa.ParseStartup(s.heads[d])
		if errors.Is(err, mpa.ErrShort) {
			return
		}
		if err != nil || f.Reject {
			st.noIWARP()
			return
		}
		f.PrivateData = make([]byte, len(f.PrivateData))
		s.frames[d], s.heads[d] = &f, s.heads[d][n:]
		st.frame(d, f)
	}
	reply, request := s.frames[0], s.frames[1]
	if reply == nil || request == nil {
		if len(s.heads[d]) > maxEarly {
			st.noIWARP()
		}
		return
	}
	crc := request.CRC || reply.CRC
	st.dirs[0].redact, st.dirs[1].redact = newRedactor(crc, request.Markers), newRedactor(crc, reply.Markers)
	for i := range st.dirs {
		st.dirs[i].startup = nil
		st.octets(i, s.heads[i])
	}
}

// noIWARP says that what is still to come of both ends is none; mu is held.
func (st *stream) noIWARP() {
	s := st.dirs[0].startup
	for i := range st.dirs {
		st.dirs[i].startup, st.dirs[i].redact = nil, newRedactor(false, false)
		st.dirs[i].redact.lost = true
		st.octets(i, s.heads[i])
	}
}
