package nvmeof_test

import (
	"context"
	"encoding/binary"
	"log"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

var le = binary.LittleEndian

// host has a controller: two queues, each a connection. It has one command outstanding at a time.
type host struct{ admin, io *queue }

// queue is a connection, and the memory for a command, its data and its answer.
type queue struct {
	ctx           context.Context
	nic           *verbs.RNIC
	qp            *verbs.QP
	out, data, in *verbs.MR
}

// connect makes the association: Connect, enable the controller (CC), and Connect of an I/O queue.
func connect(ctx context.Context, addr, name string) host {
	var h host
	var controller uint64
	h.admin, controller = join(ctx, addr, name, 0, 0xffff)
	h.admin.do(0x7f, 0, func(c []byte) { // Property Set
		le.PutUint32(c[44:], 0x14)
		le.PutUint32(c[48:], 0x00460001)
	})
	h.admin.do(0x09, 0, func(c []byte) { c[40] = 7 }) // Set Features: one queue
	h.io, _ = join(ctx, addr, name, 1, uint16(controller))
	return h
}

// join makes a queue, and sends its Connect.
func join(ctx context.Context, addr, name string, id, controller uint16) (*queue, uint64) {
	q := &queue{ctx: ctx, nic: get(verbs.Open(verbs.Config{}))}
	q.qp = get(q.nic.CreateEndpoint(verbs.QPConfig{SendDepth: 2, RecvDepth: 2}))
	memory := func(n int, a verbs.Access) *verbs.MR { return get(q.qp.PD().Register(make([]byte, n), a)) }
	q.out, q.in = memory(64, verbs.LocalRead), memory(16, verbs.LocalWrite)
	q.data = memory(1024, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite) // the target reads and writes it
	hello := make([]byte, 32)
	le.PutUint16(hello[2:], id)
	le.PutUint16(hello[4:], 2) // receives
	le.PutUint16(hello[6:], 1) // commands, less one
	get(cm.Dial(ctx, addr, q.qp, cm.Config{PrivateData: hello, IRD: 1}))
	le.PutUint16(q.data.Bytes()[16:], controller)
	copy(q.data.Bytes()[256:], name)
	copy(q.data.Bytes()[512:], "nqn.2026-01.org.softrnic:host")
	result := q.do(0x7f, 1024, func(c []byte) {
		c[4] = 1 // Connect
		le.PutUint16(c[42:], id)
		le.PutUint16(c[44:], 1)
	})
	return q, result
}

// do runs a command of 64 octets, with n octets of data, and returns the result in its answer of 16.
func (q *queue) do(opcode byte, n int, fill func(command []byte)) uint64 {
	c, where := q.out.Bytes(), q.data.Remote(0)
	clear(c)
	c[0], c[1] = opcode, 0x40
	le.PutUint64(c[24:], where.TO) // a keyed SGL
	le.PutUint32(c[32:], uint32(n))
	le.PutUint32(c[35:], uint32(where.STag))
	c[39] = 0x40
	fill(c)
	get(q.qp.PostRecv(verbs.Recv{SGL: q.in.All()}))
	get(q.qp.PostSend(verbs.Request{SGL: q.out.All()}))
	get(q.qp.SendCQ().WaitOne(q.ctx))
	get(q.qp.RecvCQ().WaitOne(q.ctx))
	if status := le.Uint16(q.in.Bytes()[14:]) >> 1; status != 0 {
		log.Fatalf("opcode %#x: status %#x", opcode, status)
	}
	return le.Uint64(q.in.Bytes())
}

// block is a command for one block of namespace 1.
func block(lba uint64) func([]byte) {
	return func(c []byte) {
		le.PutUint32(c[4:], 1)
		le.PutUint64(c[40:], lba)
	}
}

func (h host) write(lba uint64, text string) {
	clear(h.io.data.Bytes())
	copy(h.io.data.Bytes(), text)
	h.io.do(0x01, 512, block(lba))
}

func (h host) read(lba uint64) []byte {
	clear(h.io.data.Bytes())
	h.io.do(0x02, 512, block(lba))
	return h.io.data.Bytes()[:512]
}

func (h host) close() {
	check(h.io.nic.Close())
	check(h.admin.nic.Close())
}
