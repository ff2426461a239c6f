package nvmeof

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
