package rawpeer

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/softrnic/softrnic/mpa"
)

// ReadStartup reads one Request or Reply frame and no octet more. Errors: a
// *mpa.Error for what is no frame, io.EOF, or the connection's.
func ReadStartup(c net.Conn) (mpa.Startup, error) {
	_ = c.SetReadDeadline(time.Now().Add(DefaultPatience))
	var b []byte
	for {
		s, need, err := mpa.ParseStartup(b)
		if !errors.Is(err, mpa.ErrShort) {
			return s, err
		}
		have := len(b)
		b = append(b, make([]byte, need-have)...)
		if _, err := io.ReadFull(c, b[have:]); err != nil {
			return mpa.Startup{}, err
		}
	}
}

// WriteStartup sends a frame. What a good frame cannot say is to be written to
// the connection as octets.
func WriteStartup(c net.Conn, s mpa.Startup) error {
	b, err := s.Append(nil)
	if err != nil {
		return err
	}
	_ = c.SetWriteDeadline(time.Now().Add(DefaultPatience))
	_, err = c.Write(b)
	return err
}

// Initiate plays the Initiator's startup with the given Request and returns the
// peer that follows from the Reply, a refusal included.
func Initiate(c net.Conn, req mpa.Startup) (*Peer, mpa.Startup, error) {
	if err := WriteStartup(c, req); err != nil {
		return nil, mpa.Startup{}, err
	}
	rep, err := ReadStartup(c)
	if err != nil {
		return nil, rep, err
	}
	return New(c, agreed(req, rep)), rep, nil
}

// Respond plays the Responder's startup: it reads the Request and sends rep.
func Respond(c net.Conn, rep mpa.Startup) (*Peer, mpa.Startup, error) {
	req, err := ReadStartup(c)
	if err != nil {
		return nil, req, err
	}
	rep.Reply = true
	if err := WriteStartup(c, rep); err != nil {
		return nil, req, err
	}
	return New(c, agreed(rep, req)), req, nil
}

// agreed is what two frames agree on, for the side that sent mine (RFC 5044
// 7.1.1): a CRC if either wants it, markers for the side that asked.
func agreed(mine, theirs mpa.Startup) Options {
	return Options{
		CRC:        mine.CRC || theirs.CRC,
		MarkersOut: theirs.Markers,
		MarkersIn:  mine.Markers,
	}
}
