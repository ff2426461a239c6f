package vitcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// tie makes the context's end end blocked reads and writes of nc, until release
// is called. A deadline that it set is lifted then.
func tie(ctx context.Context, nc net.Conn) (release func()) {
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(fired)
		if nc.SetDeadline(tcpsock.Past) != nil {
			_ = nc.Close() // nothing else unblocks it
		}
	})
	return func() {
		if !stop() {
			<-fired
			_ = nc.SetDeadline(time.Time{}) // of no use if it has been closed
		}
	}
}

// readConnect reads one segment of establishment from nc, and not one octet
// past it. An error that is not the transport's is a ParseFault or wraps
// ErrUnexpected, and broken is set.
func readConnect(nc net.Conn) (s segment.Segment, broken bool, err error) {
	b := make([]byte, segment.SegmentHeader, segment.SegmentHeader+segment.CEHeader+segment.Trailer+16)
	if _, err := io.ReadFull(nc, b); err != nil {
		return s, false, err
	}
	var fault segment.ParseFault
	if s.Header, fault = segment.ParseHeader(b); fault != segment.FaultNone {
		return s, true, fault
	}
	if !s.Type.IsConnect() { // before memory is spent on it
		return s, true, fmt.Errorf("%w: %v", ErrUnexpected, s.Type)
	}
	b = append(b, make([]byte, int(s.Length)-len(b))...)
	if _, err := io.ReadFull(nc, b[segment.SegmentHeader:]); err != nil {
		return s, false, err
	}
	s, err = parseConnect(b)
	return s, err != nil, err
}

// parseConnect reads one segment of establishment, which is all of b. The error is a
// ParseFault or wraps ErrUnexpected.
func parseConnect(b []byte) (s segment.Segment, err error) {
	if len(b) < segment.SegmentHeader {
		return s, segment.FaultFrame
	}
	h, fault := segment.ParseHeader(b)
	switch {
	case fault != segment.FaultNone:
		return s, fault
	case int(h.Length) != len(b):
		return s, segment.FaultFrame
	case !h.Type.IsConnect():
		return s, fmt.Errorf("%w: %v", ErrUnexpected, h.Type)
	}
	if s, fault = segment.Parse(b, false); fault != segment.FaultNone {
		return s, fmt.Errorf("%v: %w", s.Type, fault)
	}
	return s, nil
}

// receive reads a segment of establishment and says what event it is. The error
// is what to tell about an event that is not a segment. nc is tied to ctx.
func receive(ctx context.Context, nc net.Conn) (segment.Segment, trigger, error) {
	s, broken, err := readConnect(nc)
	switch {
	case broken:
		return s, trigViolation, err
	case err != nil:
		return s, ended(ctx), transport(ctx, "read", err)
	default:
		return s, trigRequest + trigger(s.Type-segment.ConnectRequest), nil
	}
}

// send writes a segment. nc is tied to ctx.
func send(ctx context.Context, nc net.Conn, b []byte) (trigger, error) {
	if _, err := nc.Write(b); err != nil {
		return ended(ctx), transport(ctx, "write", err)
	}
	return 0, nil
}

// ended is the event of a transport that failed: the context's end makes it fail
// too.
func ended(ctx context.Context) trigger {
	if ctx.Err() != nil {
		return trigTimeout
	}
	return trigTCPClosed
}

// transport is the error of a transport that failed.
func transport(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("vitcp: %s: %w", doing, err)
}

// appendAnswer appends a ConnectReject or ConnectNoMatch to the request req. It
// has a CRC if the request had one (VT-3.6-O2).
func appendAnswer(dst []byte, t segment.Type, req *segment.Segment, reason Reason) []byte {
	h := segment.Header{Type: t, Flags: segment.EndOfMessage, Ack: req.Number, Code: segment.ErrorCode(0).WithIS(uint8(reason))} // VT-3.2-M14
	h.SetLength(0, req.HasTrailer())
	start := len(dst)
	dst = h.Append(dst)
	if req.HasTrailer() {
		dst = segment.AppendCRC(dst, start)
	}
	return dst
}
