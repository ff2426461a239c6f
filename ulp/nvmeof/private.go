package nvmeof

import (
	"cmp"
	"errors"
	"fmt"
)

// hello is the private data of a connection's request (nvme_rdma_cm_req), 32 octets.
type hello struct {
	qid     uint16
	hrqsize uint16 // receives for responses
	hsqsize uint16 // 0-based
}

const (
	rejectInvalidLen     = 1
	rejectInvalidRecfmt  = 2
	rejectInvalidQID     = 3
	rejectInvalidHSQSize = 4
	rejectInvalidHRQSize = 5
	rejectNoResources    = 6

	helloSize  = 32
	adminDepth = 32
)

// decodeHello reads it, and gives the status of a reject if it is not good, else 0.
func decodeHello(b []byte, c *Config) (h hello, reject uint16) {
	if len(b) < helloSize {
		return h, rejectInvalidLen
	}
	if le.Uint16(b) != 0 {
		return h, rejectInvalidRecfmt
	}
	h = hello{qid: le.Uint16(b[2:]), hrqsize: le.Uint16(b[4:]), hsqsize: le.Uint16(b[6:])}
	depth := c.Depth
	if h.qid == 0 {
		depth = adminDepth
	}
	switch {
	case int(h.qid) > c.Queues:
		return h, rejectInvalidQID
	case h.hsqsize == 0 || int(h.hsqsize) >= depth:
		return h, rejectInvalidHSQSize
	case h.hrqsize == 0 || h.hrqsize < h.hsqsize:
		return h, rejectInvalidHRQSize
	}
	return h, 0
}

// request is the private data that decodeHello reads.
func (h hello) request() []byte {
	b := make([]byte, helloSize)
	le.PutUint16(b[2:], h.qid)
	le.PutUint16(b[4:], h.hrqsize)
	le.PutUint16(b[6:], h.hsqsize)
	return b
}

// accepted is the private data of the reply (nvme_rdma_cm_rep).
func (h hello) accepted() []byte {
	b := make([]byte, helloSize)
	le.PutUint16(b[2:], h.hsqsize+1)
	return b
}

// rejected is that of a reject (nvme_rdma_cm_rej).
func rejected(status uint16) []byte {
	return []byte{0, 0, byte(status), byte(status >> 8)}
}

// decodeAccepted reads the reply, for a host that has hsqsize commands outstanding at most.
func decodeAccepted(b []byte, h hello) error {
	switch {
	case len(b) < helloSize:
		return fmt.Errorf("its reply has %d octets of private data, want %d: is an NVMe over Fabrics target there?",
			len(b), helloSize)
	case le.Uint16(b) != 0:
		return fmt.Errorf("its reply has private data of format %d, want 0", le.Uint16(b))
	case le.Uint16(b[2:]) < h.hsqsize:
		return fmt.Errorf("it has receives for %d commands, want %d: ask for a smaller Depth", le.Uint16(b[2:]), h.hsqsize)
	}
	return nil
}

var rejectWords = map[uint16]string{
	rejectInvalidLen:     "the length of the private data",
	rejectInvalidRecfmt:  "the format of the private data",
	rejectInvalidQID:     "the queue's number: it has fewer",
	rejectInvalidHSQSize: "the size of the submission queue: ask for a smaller Depth",
	rejectInvalidHRQSize: "the number of receives",
	rejectNoResources:    "no resources: it has as many queues as it may",
}

// decodeRejected says what the private data of a reject mean.
func decodeRejected(b []byte) error {
	if len(b) < 4 || le.Uint16(b) != 0 {
		return errors.New("its program refuses, and not as an NVMe target does: is one there?")
	}
	status := le.Uint16(b[2:])
	words := cmp.Or(rejectWords[status], "a reason that this host does not know")
	return fmt.Errorf("the target refuses the queue: transport status %d, %s", status, words)
}
