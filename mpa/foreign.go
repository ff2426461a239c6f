package mpa

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// Protocols that a peer may speak where MPA is due, as Error.Speaks has them.
const (
	SpeaksHTTP = "HTTP"
	SpeaksTLS  = "TLS"
	SpeaksSSH  = "SSH"
)

// methods begin a Request of HTTP; the last is the preface of HTTP/2.
var methods = [...]string{"GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "CONNECT ", "OPTIONS ", "TRACE ", "PATCH ", "PRI * HTTP/2"}

// speaks is the protocol whose first octets b looks like; "" if none is known.
func speaks(b []byte) string {
	s := string(b)
	switch {
	case strings.HasPrefix(s, "HTTP/"), slices.ContainsFunc(methods[:], func(m string) bool { return strings.HasPrefix(s, m) }):
		return SpeaksHTTP
	case strings.HasPrefix(s, "SSH-"):
		return SpeaksSSH
	case len(b) >= 3 && (b[0] == 21 || b[0] == 22) && b[1] == 3 && b[2] <= 4: // RFC 8446 5.1: an alert, a handshake
		return SpeaksTLS
	}
	return ""
}

// unknownKey is the error of octets that begin no startup frame (R5044-7.1.2-M9).
func unknownKey(b []byte) *Error {
	e := malformed("the key is %q", b[:min(len(b), keyLen)])
	e.Speaks = speaks(b)
	return e
}

// stranger is err, of octets that are no frame of that kind, in words that fit. A peer that has begun is told what Config.Answer says.
func (x *exchange) stranger(want frameKind, err error) error {
	var e *Error
	switch {
	case !errors.As(err, &e) || e.Speaks == "":
	case want == reply:
		e.Detail = "the peer answered with " + e.Speaks + ": it is no RDMA listener"
	default:
		e.Detail = "the peer speaks " + e.Speaks + ", and this port iWARP"
		if x.answer != nil {
			x.say(x.answer(e.Speaks))
		}
	}
	return err
}

const (
	// farewell is how long a peer of another protocol may take to read its answer and to close.
	farewell = time.Second
	// farewellOctets is how much it may send meanwhile.
	farewellOctets = 64 << 10
)

// say sends b to a peer of another protocol, in its own words. The FIN goes out behind b, at once (R5044-8-M2). Then what the peer
// sends is read to the end: a close before that would be a reset, which may overtake b. It takes farewell at most, and less if the context ends.
func (x *exchange) say(b []byte) {
	if len(b) == 0 || x.conn.SetDeadline(time.Now().Add(farewell)) != nil || x.ctx.Err() != nil { // whose end may have come before that deadline
		return
	}
	if _, err := x.conn.Write(b); err != nil {
		return
	}
	if half, ok := x.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, x.conn, farewellOctets)
	}
}
