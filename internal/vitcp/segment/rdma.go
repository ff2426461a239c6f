package segment

import (
	"encoding/binary"
	"fmt"
)

// RDMA is the RDMA Header (3.4), which every segment of an RDMA Write, and an
// RDMA Read Request, has:
//
//	+---------------------------------------------------------------+
//	|                                                               |
//	+                         RDMA Address                          +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                   Registered Memory Handle                    |
//	+---------------------------------------------------------------+
//	|                          RDMA Length                          |
//	+---------------------------------------------------------------+
type RDMA struct {
	// Address is where the message begins in the peer's memory, the same in
	// each segment: the segment's place is Address plus Data Offset.
	Address uint64
	// Handle is the peer's handle of that memory.
	Handle uint32
	// Length is that of the whole message in octets.
	Length uint32
}

// Append appends the 16 octets of r to dst.
func (r *RDMA) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, r.Address)
	dst = binary.BigEndian.AppendUint32(dst, r.Handle)
	return binary.BigEndian.AppendUint32(dst, r.Length)
}

func (r RDMA) String() string {
	return fmt.Sprintf("address %#x handle %#x length %d", r.Address, r.Handle, r.Length)
}

// decodeRDMA reads the 16 octets at the start of b.
func decodeRDMA(b []byte) RDMA {
	_ = b[RDMAHeader-1]
	return RDMA{
		Address: binary.BigEndian.Uint64(b),
		Handle:  binary.BigEndian.Uint32(b[8:]),
		Length:  binary.BigEndian.Uint32(b[12:]),
	}
}
