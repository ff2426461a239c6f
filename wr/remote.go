package wr

import (
	"encoding/binary"
	"fmt"
)

// Remote is the address of a buffer at the peer, as the peer advertised it. How
// long the buffer is and what may be done with it the programs tell one another.
type Remote struct {
	STag STag
	TO   uint64
}

// RemoteLen is how many octets AppendBinary adds.
const RemoteLen = 12

// AppendBinary appends r as programs may send it to a peer: the STag, then the TO,
// RemoteLen octets in network order. The error is always nil
// (encoding.BinaryAppender).
func (r Remote) AppendBinary(dst []byte) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.STag))
	return binary.BigEndian.AppendUint64(dst, r.TO), nil
}

// MarshalBinary is AppendBinary to nothing (encoding.BinaryMarshaler).
func (r Remote) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// ParseRemote reads what AppendBinary wrote from the beginning of b, which may be
// longer: what follows is the program's. It fails if b is shorter than RemoteLen.
func ParseRemote(b []byte) (Remote, error) {
	if len(b) < RemoteLen {
		return Remote{}, fmt.Errorf("an advertised address is %d octets, here are %d: did the peer send it?", RemoteLen, len(b))
	}
	return Remote{STag: STag(binary.BigEndian.Uint32(b)), TO: binary.BigEndian.Uint64(b[4:])}, nil
}
