//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
	"github.com/softrnic/softrnic/verbs"
)

const (
	feederSlots = 64 // each way
	feederSlot  = udwire.GRHSize + udwire.MTU
)

// feeder is the other end of the stream of a UD queue pair. Its memory is slots of feederSlot octets: feederSlots for
// what the program sends, and as many for what it gets.
type feeder struct {
	qp    *QP
	conns map[int]sender // as udpConns

	pd   *verbs.PD
	cq   *verbs.CQ
	twin *verbs.QP
	mr   *verbs.MR
	mem  []byte
	free []int // slots of those for what the program gets; guarded by datagrams.mu

	ended  bool // the stream is gone; guarded likewise
	cancel context.CancelFunc
	done   chan struct{}
}

type sender interface {
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
}

// feed starts the feeder of a queue pair that is Idle. Errors: those of resources.
func (d *Device) feed(q *QP) (err error) {
	f := &feeder{qp: q, conns: d.sendersOf(q), mem: make([]byte, 2*feederSlots*feederSlot), done: make(chan struct{})}
	defer func() {
		if err != nil {
			f.free = nil
			f.destroy()
		}
	}()
	if f.pd, err = d.rnic.AllocatePD(); err != nil {
		return err
	}
	if f.cq, err = d.rnic.CreateCQ(verbs.CQConfig{Entries: 4 * feederSlots}); err != nil {
		return err
	}
	if f.mr, err = f.pd.Register(f.mem, verbs.LocalRead|verbs.LocalWrite); err != nil {
		return err
	}
	f.twin, err = d.rnic.CreateQP(verbs.QPConfig{
		PD: f.pd, SendCQ: f.cq, RecvCQ: f.cq, SendDepth: feederSlots, RecvDepth: feederSlots, SendSGE: 1, RecvSGE: 1, NoReads: true, GracefulReceive: true,
	})
	if err != nil {
		return err
	}
	for i := range feederSlots {
		if err = f.receive(i); err != nil {
			return err
		}
		f.free = append(f.free, feederSlots+i)
	}
	a, b, err := d.inside()
	if err != nil {
		return err
	}
	for _, end := range []struct {
		qp   *verbs.QP
		conn net.Conn
	}{{f.twin, a}, {q.qp, b}} {
		// Both may send first: there is no exchange of MPA before (RFC 5044 7.1).
		err = end.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &verbs.StreamConfig{Conn: end.conn, Role: mpa.Initiator, PeerIRD: -1, PeerORD: -1}})
		if err != nil {
			_ = a.Close()
			_ = b.Close()
			return err
		}
	}
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(context.Background())
	go f.run(ctx)
	q.ud.mu.Lock()
	defer q.ud.mu.Unlock()
	q.ud.feeder = f
	return nil
}

// inside makes a stream with both ends in this process.
func (d *Device) inside() (a, b net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ends := [2]net.Conn{}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "ud")
		c, wrong := net.FileConn(f)
		_ = f.Close()
		if wrong != nil {
			err = wrong
			continue
		}
		d.OwnSocket(c)
		ends[i] = c
	}
	if err != nil {
		for _, c := range ends {
			if c != nil {
				_ = c.Close()
			}
		}
	}
	return ends[0], ends[1], err
}

// receive posts the receive of a slot.
func (f *feeder) receive(slot int) error {
	_, err := f.twin.PostRecv(verbs.Recv{ID: uint64(slot), SGL: []verbs.SGE{f.mr.SGE(slot*feederSlot, udwire.MTU)}})
	return err
}

// feed sends a datagram to the program; datagrams.mu is held. It reports false if there is no slot.
func (f *feeder) feed(d *udwire.Datagram, by path) bool {
	if len(f.free) == 0 {
		return false
	}
	slot := f.free[len(f.free)-1]
	b := f.mem[slot*feederSlot:][:feederSlot]
	udwire.PutGRH(b, by.from, by.to, len(d.Payload))
	n := udwire.GRHSize + copy(b[udwire.GRHSize:], d.Payload)
	_, err := f.twin.PostSend(verbs.Request{
		ID: uint64(slot), Op: either(d.Solicited, verbs.OpSendSE, verbs.OpSend), SGL: []verbs.SGE{f.mr.SGE(slot*feederSlot, n)},
	})
	if err != nil {
		return false
	}
	f.free = f.free[:len(f.free)-1]
	return true
}

// run passes on what the program sends, and frees the slots of what it got, until the end.
func (f *feeder) run(ctx context.Context) {
	u := f.qp.ud
	defer func() {
		u.mu.Lock()
		f.ended = true
		u.left.Broadcast()
		u.mu.Unlock()
		close(f.done)
	}()
	var done [16]verbs.Completion
	buf := make([]byte, 0, udwire.MaxDatagram)
	for {
		n, err := f.cq.Wait(ctx, done[:])
		if err != nil {
			return
		}
		for i := range done[:n] {
			c := &done[i]
			if c.Status != verbs.StatusSuccess { // the stream is gone: end will come
				u.mu.Lock()
				f.ended = true
				u.left.Broadcast()
				u.mu.Unlock()
				continue
			}
			slot := int(c.ID)
			if c.Op != verbs.OpRecv {
				u.mu.Lock()
				f.free = append(f.free, slot)
				u.pump()
				u.mu.Unlock()
				continue
			}
			u.mu.Lock()
			if len(u.outgoing) == 0 { // stopped meanwhile
				u.mu.Unlock()
				return
			}
			o := u.outgoing[0]
			u.mu.Unlock()
			d := udwire.Datagram{
				Dest: o.qpn, Source: f.qp.qpn, QKey: o.qkey, Immediate: o.immediate, HasImmediate: o.hasImmediate, Solicited: o.solicited,
				Payload: f.mem[slot*feederSlot:][:c.Bytes],
			}
			buf = d.Append(buf[:0])
			// What cannot be sent is lost, as what the network loses.
			if c := f.conns[o.from]; c != nil {
				_, _ = c.WriteToUDPAddrPort(buf, netip.AddrPortFrom(o.to, udwire.Port(o.qpn)))
			}
			_ = f.receive(slot)
			u.mu.Lock()
			if u.feeder == f {
				u.outgoing = u.outgoing[1:]
				u.left.Broadcast()
			}
			u.mu.Unlock()
		}
	}
}

// end stops the feeder, and waits for it.
func (f *feeder) end() {
	f.cancel()
	<-f.done
	f.destroy()
}

func (f *feeder) destroy() {
	if f.twin != nil {
		_ = f.twin.Destroy()
	}
	if f.mr != nil {
		_ = f.mr.Deregister()
	}
	if f.cq != nil {
		_ = f.cq.Destroy()
	}
	if f.pd != nil {
		_ = f.pd.Deallocate()
	}
}
