package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/conformance/uppertester"
)

// Startup is what a target's MPA startup looks like before any case has run.
type Startup struct {
	// Trouble is what is wrong with it, in one line; empty if nothing is.
	Trouble string
	// Broken says that no stream begins: a case that needs one cannot pass.
	Broken bool
	// Trace is what was sent and received, if there is trouble.
	Trace []Mark
}

// The startup frame (RFC 5044 7.1.1): 16 octets of key, flags, revision, PD_Length.
const (
	requestKey  = "MPA ID Req Frame"
	replyKey    = "MPA ID Rep Frame"
	headLen     = 20
	mostPrivate = 512
	flagCRC     = 0x40
	flagReject  = 0x20
	flagWord    = 0x10 // S: IRD and ORD stand in front of the private data (RFC 6581 9)
)

// aMoment is how long the probe looks for octets that must not come.
const aMoment = 200 * time.Millisecond

// Probe goes through the MPA startup once, or twice if the target hangs up on revision 2, on the
// side that cases play which do not care. It waits patience for each frame.
func Probe(ctx context.Context, target Target, patience time.Duration) Startup {
	p := &probe{target: target, patience: patience, trace: newTrace()}
	err := p.run(ctx)
	s := Startup{}
	var broken *brokenStartup
	switch {
	case errors.As(err, &broken):
		s.Trouble, s.Broken = broken.Error(), true
	case err != nil:
		s.Trouble = err.Error()
	default:
		return s
	}
	s.Trace = p.trace.Marks()
	return s
}

// brokenStartup is why no stream begins.
type brokenStartup struct {
	text   string
	hungUp bool // the other side ended the connection without a frame
}

func (e *brokenStartup) Error() string { return e.text }

func broken(format string, args ...any) error {
	return &brokenStartup{text: fmt.Sprintf(format, args...)}
}

type probe struct {
	target   Target
	patience time.Duration
	trace    *Trace
}

func (p *probe) run(ctx context.Context) error {
	if p.target.Role() == Responder {
		return p.respond(ctx)
	}
	err := p.initiate(ctx, startupFrame(requestKey, flagCRC|flagWord, 2, []byte{0, 16, 0, 16}))
	var b *brokenStartup
	if !errors.As(err, &b) || !b.hungUp {
		return err
	}
	// RFC 6581 10: a Responder that does not know revision 2 hangs up.
	if err := p.initiate(ctx, startupFrame(requestKey, flagCRC, 1, nil)); err != nil {
		return err
	}
	return errors.New(b.text + " of revision 2, and with revision 1 the startup works: what needs RFC 6581 cannot pass")
}

// initiate plays the Initiator.
func (p *probe) initiate(ctx context.Context, request []byte) error {
	c, done, err := p.connect(ctx)
	if err != nil {
		return broken("%v", err)
	}
	defer done()
	if err := p.write(c, request); err != nil {
		return broken("sending the Request: %v", err)
	}
	f, err := p.read(c, "Reply", replyKey, "after the Request")
	switch {
	case err != nil:
		return err
	case f[16]&flagReject != 0:
		return broken("the Reply rejects the Request (R is 1)")
	}
	if err := p.quiet(c); err != nil {
		return err
	}
	if asked := request[17]; f[17] != asked {
		return fmt.Errorf("the Reply has revision %d, the Request %d (RFC 5044 7.1.1, RFC 6581 10)", f[17], asked)
	}
	return nil
}

// respond plays the Responder.
func (p *probe) respond(ctx context.Context) error {
	c, done, err := p.connect(ctx)
	if err != nil {
		return broken("%v", err)
	}
	defer done()
	f, err := p.read(c, "Request", requestKey, "without a Request")
	if err != nil {
		return err
	}
	reply := startupFrame(replyKey, flagCRC, f[17], nil)
	if f[16]&flagWord != 0 {
		ird, ord := binary.BigEndian.Uint16(f[20:])&0x3FFF, binary.BigEndian.Uint16(f[22:])&0x3FFF
		word := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, ord), ird)
		reply = startupFrame(replyKey, flagCRC|flagWord, f[17], word)
	}
	if err := p.write(c, reply); err != nil {
		return broken("sending the Reply: %v", err)
	}
	if err := p.first(c); err != nil {
		return err
	}
	if f[17] != 1 && f[17] != 2 {
		return fmt.Errorf("the Request has revision %d; there are 1 and 2 (RFC 5044 7.1.1, RFC 6581 9)", f[17])
	}
	return nil
}

// connect is a connection without an octet, and done its end.
func (p *probe) connect(ctx context.Context) (c net.Conn, done func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	end := func() {}
	if p.target.Lacks(NeedUpper) != "" {
		c, err = p.target.Stream(bounded, p.target.Role())
	} else {
		var u uppertester.Tester
		if u, err = p.target.Upper(ctx); err == nil {
			end = func() { _ = u.Close() }
			c, err = connectQP(bounded, u, p.target)
		}
	}
	switch {
	case err == nil:
		return p.trace.Conn(c), func() { _ = c.Close(); end() }, nil
	case errors.Is(err, context.DeadlineExceeded) && p.target.Role() == Responder:
		err = fmt.Errorf("no client connected within %v", p.patience)
	default:
		err = fmt.Errorf("no connection to begin on: %w", err)
	}
	end()
	return nil, nil, err
}

// connectQP has a queue pair of an upper tester listen or dial, and is the connection.
func connectQP(ctx context.Context, u uppertester.Tester, target Target) (net.Conn, error) {
	var o uppertester.Opened
	if err := u.Open(uppertester.OpenArgs{}, &o); err != nil {
		return nil, fmt.Errorf("the upper tester's Open: %w", err)
	}
	if target.Role() != Responder {
		var at uppertester.Listening
		if err := u.Listen(uppertester.ConnectArgs{QP: o.QP}, &at); err != nil {
			return nil, fmt.Errorf("the upper tester's Listen: %w", err)
		}
		return dialTCP(ctx, at.Addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(target.Here(), "0"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	if err := u.Dial(uppertester.ConnectArgs{QP: o.QP, Addr: l.Addr().String()}, &uppertester.None{}); err != nil {
		return nil, fmt.Errorf("the upper tester's Dial: %w", err)
	}
	return acceptTCP(ctx, l)
}

func (p *probe) write(c net.Conn, b []byte) error {
	_ = c.SetWriteDeadline(time.Now().Add(p.patience))
	_, err := c.Write(b)
	return err
}

// read reads the startup frame of the target, a Request or a Reply.
func (p *probe) read(c net.Conn, what, key, when string) ([]byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(p.patience))
	f := make([]byte, headLen, headLen+mostPrivate)
	n, err := io.ReadFull(c, f)
	switch {
	case n >= len(key) && string(f[:len(key)]) != key:
		return nil, broken("the %s's key is %q, not '%s' (RFC 5044 7.1.1)", what, f[:len(key)], key)
	case n == 0 && late(err):
		return nil, broken("no %s came within %v", what, p.patience)
	case n == 0:
		return nil, &brokenStartup{"the connection was " + ending(err) + " " + when, true}
	case err != nil:
		return nil, broken("the %s breaks off: %d of its first %d octets came (% x), then %s", what, n, headLen, f[:n], stop(err))
	}
	private := int(binary.BigEndian.Uint16(f[18:]))
	switch {
	case private > mostPrivate:
		return nil, broken("the %s's PD_Length is %d; it is %d at most (RFC 5044 7.1.1)", what, private, mostPrivate)
	case f[16]&flagWord != 0 && private < 4:
		return nil, broken("the %s has S, and a PD_Length of %d: IRD and ORD alone are 4 octets (RFC 6581 9)", what, private)
	}
	f = f[:headLen+private]
	if n, err := io.ReadFull(c, f[headLen:]); err != nil {
		return nil, broken("the %s says %s of private data, and %d came, then %s", what, octets(private), n, stop(err))
	}
	return f, nil
}

// quiet says that nothing comes behind the Reply: the Responder has to wait for the first FPDU
// (RFC 5044 7.1.2). A Responder that does not is wrong, but its stream works.
func (p *probe) quiet(c net.Conn) error {
	_ = c.SetReadDeadline(time.Now().Add(min(aMoment, p.patience)))
	b := make([]byte, 4<<10)
	n, err := io.ReadAtLeast(c, b, 8)
	switch {
	case n == 0 && late(err):
		return nil
	case n == 0:
		return broken("the connection was %s after the Reply", ending(err))
	case isFPDU(b[:n]):
		return errors.New("an FPDU came behind the Reply, before the Initiator's first one (RFC 5044 7.1.2)")
	}
	return broken("%s came behind the Reply (% x): its PD_Length is too small, or it is not the Responder's turn to send (RFC 5044 7.1.2)",
		octets(n), b[:min(n, 16)])
}

// first waits for the first octets behind this side's Reply. A program that is told nothing has
// none; rping's client sends at once.
func (p *probe) first(c net.Conn) error {
	wait, told := p.patience, p.target.Lacks(NeedUpper) == ""
	if told {
		wait = min(aMoment, p.patience)
	}
	_ = c.SetReadDeadline(time.Now().Add(wait))
	n, err := c.Read(make([]byte, 1))
	switch {
	case n > 0 || late(err) && told:
		return nil
	case late(err):
		return broken("nothing came behind this side's Reply within %v: the Initiator sends the first FPDU (RFC 5044 7.1.2)", p.patience)
	}
	return broken("the connection was %s after this side's Reply", ending(err))
}

// isFPDU reports whether octets begin with a whole FPDU, without markers and with its CRC.
func isFPDU(b []byte) bool {
	if len(b) < 2 {
		return false
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	n += -n & 3
	return n > 4 && len(b) >= n+4 &&
		crc32.Checksum(b[:n], crc32.MakeTable(crc32.Castagnoli)) == binary.LittleEndian.Uint32(b[n:])
}

func startupFrame(key string, flags, rev byte, private []byte) []byte {
	b := append([]byte(key), flags, rev)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(private))), private...)
}

func octets(n int) string {
	if n == 1 {
		return "1 octet"
	}
	return fmt.Sprintf("%d octets", n)
}

func late(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// stop is why no more came.
func stop(err error) string {
	if late(err) {
		return "nothing more in time"
	}
	return "the connection was " + ending(err)
}

// ending is how a connection ended.
func ending(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	return fmt.Sprintf("lost (%v)", err)
}
