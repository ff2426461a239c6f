package stress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
)

// Parts of the promises, in KiB.
const (
	startup    = 8 * stacks    // a connection, a goroutine, a Request of 532 octets
	queuePair  = 60            // one as verbs has it without configuration, with its program's goroutine
	fpdu       = 64            // an FPDU or a segment that is not whole
	batch      = 900           // what is framed for a peer that does not read
	buffers    = 64 * 260      // the receive buffers that the first 64 streams keep
	tiny       = 16            // of a socket: what is managed for an octet
	unread     = 1024          // of a socket whose peer does not read
	unaccepted = 288           // of one whose Request is not answered: 128 KiB, and what manages them
	ring       = 256 + 64 + 64 // of rsocket
	nvmeQueue  = 520 + 140     // the receives of 128 commands, and what manages them
	command    = 6 * stacks    // of NVMe, under way
	carried    = 640           // the proxy's, for both directions
)

// worstOf are the worst that a peer can do.
var worstOf = []worst{
	{"cm", "says nothing", startCM, nothing, startup, 0, 0, some},
	{"cm", "keeps back the last octet of a Request with 508 of private data", startCM, short(droppedpeer.MPA(make([]byte, 508)).Request), startup, 0, tiny, some},
	{"cm", "sends such a Request and 256 KiB behind it, to a program that does not answer", startUndecided, flood, startup, 0, unaccepted, some},
	{"verbs", "is accepted, and says nothing", startIdle, join(nil), queuePair, 0, 0, 0},
	{"verbs", "one octet of an FPDU", startReceiving, join(begun(1)), queuePair + 1, buffers, tiny, 0},
	{"verbs", "an FPDU of 64 KiB but the last octet", startReceiving, join(begun(-1)), queuePair + fpdu, buffers, tiny, 0},
	{"verbs", "does not read what is sent to it", startSending, join(whole(rawpeer.Write(0, 0, nil))), queuePair + batch, 0, unread, 0},
	{"verbs", "16 Read Requests of 1 MiB, and does not read", startIdle, join(reads), queuePair + batch, 0, unread, 0},
	{"verbs, S-RQ", "half a Send", startShared, join(whole(rawpeer.Segment{More: true, Op: rdmap.Send, QN: ddp.QNSend, MSN: 1, Payload: make([]byte, 512)})), queuePair, 0, tiny, 0},
	{"nd2", "one octet of an FPDU", startND, join(begun(1)), queuePair + 1, buffers, tiny, 0},
	{"vitcp", "says nothing", startVI, nothing, startup, 0, 0, some},
	{"vitcp", "keeps back the last octet of a ConnectRequest", startVI, short(droppedpeer.VI("siege", segment.Unreliable).Request), startup + fpdu, 0, tiny, some},
	{"vitcp", "asks for a discriminator that nobody waits for", startVI, send(droppedpeer.VI("nobody", segment.Unreliable).Request), startup + fpdu, 0, tiny, some},
	{"vipl", "a segment of 64 KiB but the last octet, and does not read", startVIPL, joinVI(65534), queuePair + fpdu + batch, 0, unread, 0},
	{"rsocket", "fills the ring of a program that does not read, and does not read", startUnread, fillRing, queuePair + ring + batch, 0, unread, 0},
	{"NVMe", "is accepted, and sends no Connect", startNVMe, joinAs(nvmeHello, nil), queuePair + nvmeQueue, 0, tiny, some | oneHost},
	{"NVMe", "half a capsule", startNVMe, joinAs(nvmeHello, capsuleHalf), queuePair + nvmeQueue, buffers, tiny, some | oneHost},
	{"NVMe", "128 Connects whose data it keeps back", startNVMe, joinAs(nvmeHello, connects), queuePair + nvmeQueue + 128*command, 0, tiny, some | oneHost},
	{"proxy", "one octet of an FPDU", startProxy, join(begun(1)), queuePair + carried, buffers, tiny, fewer},
	{"proxy", "does not read what the target sends", startProxySending, join(whole(rawpeer.Write(0, 0, nil))), queuePair + batch + carried, 0, unread, fewer},
}

func nothing(net.Conn) error { return nil }

func send(b []byte) func(net.Conn) error {
	return func(nc net.Conn) error {
		_, err := nc.Write(b)
		return err
	}
}

func short(b []byte) func(net.Conn) error { return send(b[:len(b)-1]) }

// flood sends a Request, and more behind it until nothing more is taken.
func flood(nc net.Conn) error {
	_ = nc.(*net.TCPConn).SetWriteBuffer(4 << 10) // what it has itself is not what it costs the server
	_ = nc.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	err := send(append(droppedpeer.MPA(make([]byte, 508)).Request, make([]byte, 256<<10)...))(nc)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // nothing more is taken
	}
	return err
}

// joined is an established stream, and what the server said of itself.
type joined struct {
	*rawpeer.Peer
	private []byte
}

// join connects, and does then what is to be done.
func join(then func(joined) error) func(net.Conn) error { return joinAs(nil, then) }

func joinAs(private []byte, then func(joined) error) func(net.Conn) error {
	return func(nc net.Conn) error {
		_ = nc.(*net.TCPConn).SetReadBuffer(4 << 10) // what it has not read waits at the server
		p, rep, err := rawpeer.Initiate(nc, mpa.Startup{Rev: 2, Enhanced: true, CRC: true, IRD: 16, ORD: 16, PrivateData: private})
		switch {
		case err != nil:
			return err
		case rep.Reject:
			_ = nc.Close()
			return net.ErrClosed
		case then == nil:
			return nil
		}
		return then(joined{p, rep.PrivateData})
	}
}

// begun sends an FPDU of the longest Send up to an octet; negative: but for so many.
func begun(n int) func(joined) error {
	return func(p joined) error {
		b := p.Frame(rawpeer.Send(1, make([]byte, 64000)).Octets())
		if n < 0 {
			return p.Raw(b[:len(b)+n])
		}
		return p.Raw(b[:n])
	}
}

func whole(s rawpeer.Segment) func(joined) error {
	return func(p joined) error { return p.Send(s.Octets()) }
}

// reads asks for all that it may.
func reads(p joined) error {
	if len(p.private) < 12 {
		return fmt.Errorf("the server has told no memory: % x", p.private)
	}
	h := rdmap.ReadRequestHeader{
		SinkSTag: 1, Size: programMemory, SourceTO: binary.BigEndian.Uint64(p.private), SourceSTag: binary.BigEndian.Uint32(p.private[8:]),
	}
	for msn := range uint32(16) {
		if err := p.Send(rawpeer.ReadRequest(msn+1, h).Octets()); err != nil {
			return err
		}
	}
	return nil
}

// joinVI connects to a VI, and sends so much of a segment of 64 KiB.
func joinVI(n int) func(net.Conn) error {
	return func(nc net.Conn) error {
		_ = nc.(*net.TCPConn).SetReadBuffer(4 << 10)
		s := droppedpeer.VI("siege", segment.Unreliable)
		if _, err := nc.Write(s.Request); err != nil {
			return err
		}
		accepted, err := s.Answer(nc)
		if err != nil || !accepted {
			return fmt.Errorf("accepted: %v, %w", accepted, err)
		}
		h := segment.Header{Type: segment.Send, Number: 8, Length: segment.MaxSegment}
		_, err = nc.Write(append(h.Append(nil), make([]byte, segment.MaxSegment)...)[:n])
		return err
	}
}

// fillRing writes what it may into the ring of rsocket's other end; its own ring has no end.
func fillRing(nc net.Conn) error {
	hello := append([]byte{}, rsocketHello...)
	binary.BigEndian.PutUint32(hello[36:], 1<<30)
	return joinAs(hello, func(p joined) error {
		if len(p.private) < 40 {
			return fmt.Errorf("the server has told no ring: % x", p.private)
		}
		to, key, n := binary.BigEndian.Uint64(p.private[24:]), binary.BigEndian.Uint32(p.private[32:]), binary.BigEndian.Uint32(p.private[36:])
		for at := uint32(0); at < n; at += 32 << 10 {
			if err := p.Send(rawpeer.Write(key, to+uint64(at), make([]byte, min(32<<10, n-at))).Octets()); err != nil {
				return err
			}
		}
		return p.Send(rawpeer.Send(1, binary.LittleEndian.AppendUint32(nil, n)).Octets())
	})(nc)
}

func capsuleHalf(p joined) error {
	b := p.Frame(rawpeer.Send(1, make([]byte, 64)).Octets())
	return p.Raw(b[:len(b)/2])
}

// connects are as many commands as the queue takes, each a Connect with its data where the target has to read them.
func connects(p joined) error {
	for i := range 127 {
		c := make([]byte, 64)
		c[0], c[1], c[4] = 0x7f, 0x40, 1
		binary.LittleEndian.PutUint16(c[2:], uint16(i))
		binary.LittleEndian.PutUint32(c[32:], 1024)
		binary.LittleEndian.PutUint32(c[35:], 0x101)
		c[39], c[42], c[44] = 0x40, 1, 127
		if err := p.Send(rawpeer.Send(uint32(i+1), c).Octets()); err != nil {
			return err
		}
	}
	return nil
}
