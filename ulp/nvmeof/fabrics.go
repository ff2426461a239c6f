package nvmeof

import (
	"bytes"
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

func (r *request) fabrics(c *controller) (uint64, Status) {
	switch r.cmd.fctype() {
	case typeConnect:
		return r.connect()
	case typePropertyGet:
		if r.q.hello.qid != 0 || r.cmd[40]&7 > 1 {
			return 0, InvalidField | DNR
		}
		return c.property(r.cmd.dw(11), r.cmd[40]&7 == 1)
	case typePropertySet:
		if r.q.hello.qid != 0 || r.cmd[40]&7 != 0 || r.cmd.dw(11) != regCC {
			return 0, InvalidField | DNR
		}
		c.setCC(r.cmd.dw(12))
		return 0, Success
	}
	return 0, InvalidOpcode | DNR
}

// Where the fields of Connect are: in its command, and in its data, which begin with the host's identifier.
const (
	connectQID    = 42
	connectSQSize = 44
	connectID     = 16
	connectNQN    = 256
	connectHost   = 512
	connectInData = 1 << 16 // of a refusal: the offset is in the data

	maxNQN = 223 // octets
)

// connectRefusal is the result of a Connect with ConnectParameter: where the wrong field is, in the command or the data.
func connectRefusal(offset uint64, inData bool) (uint64, Status) {
	if inData {
		offset |= connectInData
	}
	return offset, ConnectParameter | DNR
}

// connect joins the queue to a controller, which it makes for the admin queue.
func (r *request) connect() (uint64, Status) {
	q := r.q
	switch {
	case le.Uint16(r.cmd[40:]) != 0:
		return 0, ConnectFormat | DNR
	case !q.reserve():
		return 0, SequenceError | DNR
	}
	defer q.unreserve()
	if le.Uint16(r.cmd[connectQID:]) != q.hello.qid {
		return connectRefusal(connectQID, false)
	}
	if size := le.Uint16(r.cmd[connectSQSize:]); size == 0 || size > q.hello.hsqsize {
		return connectRefusal(connectSQSize, false)
	}
	data, status := r.connectData()
	if status != Success {
		return 0, status
	}
	if !q.target.settle(q.seat) {
		return 0, ConnectBusy
	}
	c, result, status := q.target.join(q, data, r.cmd.dw(12))
	if status != Success {
		q.target.unsettle(q.seat)
		return result, status
	}
	q.mu.Lock()
	q.ctrl, q.noFlow = c, r.cmd[46]&4 != 0
	q.mu.Unlock()
	return uint64(c.id), Success
}

// reserve keeps the queue for one Connect, from before it waits for the host's data: a queue has one controller at most,
// and one buffer for the data of Connect.
func (q *queue) reserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.joining {
		return false
	}
	q.joining = true
	return true
}

// unreserve lets a host try again that was refused.
func (q *queue) unreserve() {
	q.mu.Lock()
	q.joining = q.ctrl != nil
	q.mu.Unlock()
}

// connectData is a copy of the data of Connect. No controller bounds its memory yet.
func (r *request) connectData() ([]byte, Status) {
	if r.sgl.inline || r.sgl.length != connectSize {
		b, status := r.fetch(connectSize)
		return bytes.Clone(b), status
	}
	mr, err := r.q.target.pd.Register(make([]byte, connectSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return nil, InternalError
	}
	defer func() { _ = mr.Deregister() }()
	status := r.read(mr, connectSize)
	return bytes.Clone(mr.Bytes()), status
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// join finds or makes the controller that the data of a Connect ask for.
func (t *Target) join(q *queue, data []byte, kato uint32) (c *controller, result uint64, status Status) {
	id, subsysNQN, hostNQN := le.Uint16(data[connectID:]), text(data[connectNQN:connectHost]), text(data[connectHost:768])
	refuse := func(offset uint64) (*controller, uint64, Status) {
		result, status := connectRefusal(offset, true)
		return nil, result, status
	}
	s := t.subsystems[subsysNQN]
	switch {
	case s == nil && subsysNQN != DiscoveryNQN:
		return refuse(connectNQN)
	case hostNQN == "" || len(hostNQN) > maxNQN:
		return refuse(connectHost)
	case s != nil && len(s.hosts) > 0 && !slices.Contains(s.hosts, hostNQN):
		return nil, connectHost | connectInData, ConnectHost | DNR
	}
	if q.hello.qid == 0 {
		if id != anyController {
			return refuse(connectID)
		}
		c = &controller{
			target: t, subsys: s, nqn: subsysNQN, hostNQN: hostNQN, hostID: [16]byte(data), shares: newShares(),
			queues: map[uint16]*queue{0: q}, changed: map[uint32]bool{},
		}
		if !t.associate(c) {
			return nil, 0, ConnectBusy
		}
		c.setKATO(kato)
		return c, 0, Success
	}
	c = t.controller(id)
	if c == nil || c.nqn != subsysNQN || c.hostNQN != hostNQN || c.hostID != [16]byte(data) {
		return refuse(connectID)
	}
	if result, status = c.attach(q); status != Success {
		return nil, result, status
	}
	return c, 0, Success
}
