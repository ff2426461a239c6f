package udwire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Setup is one side of the exchange by which rdma_cm's port space for datagrams finds a queue pair, as the CM of
// InfiniBand does it (SIDR, IBA 12.11): a Request to a port, and a Reply with a queue pair number and its Q_Key.
//
//	octets   0 to   3  magic, "SRUC"
//	         4         version, 1
//	         5         0 a Request, 1 a Reply
//	         6         status, of a Reply
//	         7         length of the private data
//	         8 to  15  transaction
//	        16 to  19  queue pair number, of a Reply that accepts
//	        20 to  23  Q_Key, likewise
//	        24 to 203  private data, then zeros
//	       204 to 207  CRC32C of all before
//
// Both are of one length, so that nobody gets more octets than he has sent.
type Setup struct {
	Reply       bool
	Status      uint8 // 0: accepted
	Transaction uint64
	QPN, QKey   uint32
	Private     []byte // at most MaxRequestPrivate or MaxReplyPrivate octets
}

const (
	// SetupSize is the length of a Setup, in octets.
	SetupSize = setupPrivate + MaxRequestPrivate + crcSize
	// MaxRequestPrivate is as much private data as Linux's rdma_cm has room for (IBA 12.11.1), in octets.
	MaxRequestPrivate = 180
	// MaxReplyPrivate is the same of a Reply.
	MaxReplyPrivate = 136
	// SetupRejected is the status of a Reply of a program that has rejected the Request (IBA 12.11.2.2).
	SetupRejected = 2

	setupPrivate = 24
	setupMagic   = 0x53525543
)

// Append appends the exchange's datagram to b. The private data has to fit.
func (s *Setup) Append(b []byte) []byte {
	at := len(b)
	kind := byte(0)
	if s.Reply {
		kind = 1
	}
	b = binary.BigEndian.AppendUint32(b, setupMagic)
	b = append(b, version, kind, s.Status, uint8(len(s.Private)))
	b = binary.BigEndian.AppendUint64(b, s.Transaction)
	b = binary.BigEndian.AppendUint32(b, s.QPN)
	b = binary.BigEndian.AppendUint32(b, s.QKey)
	b = append(b, s.Private...)
	b = append(b, make([]byte, MaxRequestPrivate-len(s.Private))...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// DecodeSetup takes one apart; the private data is a part of b. What has no meaning has to be zero. Errors: ErrFormat, ErrLength, ErrCRC, and
// ErrNumbers of a Reply whose queue pair number is none.
func DecodeSetup(b []byte) (s Setup, err error) {
	if len(b) != SetupSize || binary.BigEndian.Uint32(b) != setupMagic || b[4] != version || b[5] > 1 {
		return s, ErrFormat
	}
	if crc32.Checksum(b[:SetupSize-crcSize], castagnoli) != binary.BigEndian.Uint32(b[SetupSize-crcSize:]) {
		return s, ErrCRC
	}
	s = Setup{
		Reply: b[5] == 1, Status: b[6], Transaction: binary.BigEndian.Uint64(b[8:]),
		QPN: binary.BigEndian.Uint32(b[16:]), QKey: binary.BigEndian.Uint32(b[20:]),
	}
	n, most := int(b[7]), MaxRequestPrivate
	if s.Reply {
		most = MaxReplyPrivate
	}
	if n > most {
		return Setup{}, ErrLength
	}
	s.Private = b[setupPrivate:][:n]
	if len(bytes.TrimLeft(b[setupPrivate+n:SetupSize-crcSize], "\x00")) > 0 {
		return Setup{}, ErrFormat
	}
	switch accepts := s.Reply && s.Status == 0; {
	case accepts && (s.QPN>>24 != 0 || Port(s.QPN) == 0):
		return Setup{}, ErrNumbers
	case !accepts && (s.QPN != 0 || s.QKey != 0), !s.Reply && s.Status != 0:
		return Setup{}, ErrFormat
	}
	return s, nil
}
