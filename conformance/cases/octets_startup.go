package cases

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// startup is a good Request or Reply frame of MPA (RFC 5044 7.1.1, RFC 6581 9): see
// aFrame. What a good frame cannot say is made as octets.
type startup struct {
	Reply    bool  // else a Request
	Markers  bool  // M
	CRC      bool  // C
	Reject   bool  // R
	Rev      uint8 // protocol revision
	Enhanced bool  // S: there is the word of IRD and ORD
	// IRD and ORD are the word's depths, P2P its A, and RTR its B (1), C (2) and D (4).
	IRD, ORD uint16
	P2P      bool
	RTR      uint8
	// PrivateData is what stands behind the word.
	PrivateData []byte
}

// octets are those of the frame.
func (s startup) octets() []byte {
	key, flags := requestKey, byte(0)
	if s.Reply {
		key = replyKey
	}
	for bit, set := range map[byte]bool{frameM: s.Markers, frameC: s.CRC, frameR: s.Reject, frameS: s.Enhanced} {
		if set {
			flags |= bit
		}
	}
	rest := s.PrivateData
	if s.Enhanced {
		first, second := kinds(int(s.RTR))
		if s.P2P {
			first |= flagA
		}
		rest = aWord(first|s.IRD, second|s.ORD, string(s.PrivateData))
	}
	return aFrame(key, flags, s.Rev, rest)
}

// parseStartup reads a whole frame.
func parseStartup(b []byte) (startup, error) {
	key, flags, rest := string(b[:16]), b[16], b[20:]
	s := startup{
		Reply: key == replyKey, Markers: flags&frameM != 0, CRC: flags&frameC != 0,
		Reject: flags&frameR != 0, Enhanced: flags&frameS != 0, Rev: b[17],
	}
	switch {
	case key != requestKey && key != replyKey:
		return s, fmt.Errorf("a startup frame with the key %q", key)
	case s.Enhanced && len(rest) < 4:
		return s, fmt.Errorf("an enhanced startup frame with %d octets behind PD_Length", len(rest))
	case s.Enhanced:
		first, second := binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
		s.IRD, s.ORD, s.P2P = first&depthBits, second&depthBits, first&flagA != 0
		for set := range uint8(8) {
			if b, cd := kinds(int(set)); first&flagB == b && second&(flagC|flagD) == cd {
				s.RTR = set
			}
		}
		rest = rest[4:]
	}
	s.PrivateData = rest
	return s, nil
}

// readStartup reads one frame and no octet more. Errors: for what is no frame, io.EOF,
// io.ErrUnexpectedEOF, or the connection's.
func readStartup(c net.Conn) (startup, error) {
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	head := make([]byte, 20)
	if _, err := io.ReadFull(c, head); err != nil {
		return startup{}, err
	}
	rest := make([]byte, binary.BigEndian.Uint16(head[18:]))
	if _, err := io.ReadFull(c, rest); err != nil {
		return startup{}, err
	}
	return parseStartup(append(head, rest...))
}

// replyTo is the Reply that grants what a Request asks for.
func replyTo(req startup) startup {
	return startup{Reply: true, CRC: true, Rev: req.Rev, Enhanced: req.Enhanced, IRD: req.ORD, ORD: req.IRD}
}
