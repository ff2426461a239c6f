//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// resolved leaves ADDR_RESOLVED of an id unread.
func (p *program) resolved(num uint32) {
	p.t.Helper()
	must(p, uabi.CMResolveIP, &uabi.ResolveIP{Dst: sockaddr(netip.AddrPortFrom(loopback, 9)), ID: num, TimeoutMS: 1}, 0)
}

// TestDestroyTakesEventsBack: an unread event goes with its id, its token too, and it is not counted.
func TestDestroyTakesEventsBack(t *testing.T) {
	p := newDevice(t).program()
	a, b := p.create(1), p.create(2)
	p.resolved(a)
	p.resolved(b)
	assert.Equal(t, 2, p.tokens())
	assert.Zero(t, p.destroy(a))
	assert.Equal(t, 1, p.tokens())
	assert.Equal(t, b, p.expect(uabi.CMEventAddrResolved).ID)
	assert.EqualValues(t, 1, p.destroy(b))
	assert.Zero(t, p.tokens())
}

// TestDroppedUnderTheReader: who has read the token of an event that goes is told to read another, and no token
// too many stays when it finds a later event.
func TestDroppedUnderTheReader(t *testing.T) {
	p := newDevice(t).program()
	a := p.create(1)
	p.resolved(a)
	p.token()
	p.destroy(a)
	assert.Equal(t, syscall.EAGAIN, refused(t, p.getEvent()))
	b := p.create(2)
	p.resolved(b)
	p.token()
	p.destroy(b)
	c := p.create(3)
	p.resolved(c)
	require.NoError(t, p.getEvent(), "with the token of b's")
	assert.Equal(t, c, got[uabi.EventResp](p).ID)
	assert.Zero(t, p.tokens(), "that of c's")
}

// TestEventStays: an event whose response cannot be written is there again.
func TestEventStays(t *testing.T) {
	p := newDevice(t).program()
	a := p.create(1)
	p.resolved(a)
	p.token()
	assert.Equal(t, syscall.ENOSPC, refused(t, do(p, uabi.CMGetEvent, &uabi.GetEvent{Response: p.resp()}, uabi.EventRespMin-1)))
	p.token()
	assert.Equal(t, syscall.EFAULT, refused(t, do(p, uabi.CMGetEvent, &uabi.GetEvent{Response: 64}, 336)))
	p.token()
	_, err := p.file.Write(p.at(0), 8)
	assert.Equal(t, syscall.EINVAL, refused(t, err))
	p.token()
	require.NoError(t, do(p, uabi.CMGetEvent, &uabi.GetEvent{Response: p.resp()}, uabi.EventRespMin), "of an older librdmacm")
	assert.EqualValues(t, 1, p.destroy(a))
}

// TestDestroyListener: a Request that the program was not told of is rejected with it.
func TestDestroyListener(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	l, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	c := client.create(2)
	client.resolve(c, at)
	require.NoError(t, client.connect(c, client.qp(), ""))
	server.token()
	assert.Zero(t, server.destroy(l))
	assert.Equal(t, minus(syscall.ECONNREFUSED), client.expect(uabi.CMEventRejected).Status)
	assert.Equal(t, syscall.EAGAIN, refused(t, server.getEvent()))
	again := server.create(1)
	require.NoError(t, server.bind(again, at), "the port is free at once")
}

// TestDestroyUnanswered: a child that is destroyed without an answer is rejected.
func TestDestroyUnanswered(t *testing.T) {
	p := newDevice(t).program()
	_, at := p.listen(1, netip.AddrPortFrom(loopback, 0))
	c := p.create(2)
	p.resolve(c, at)
	require.NoError(t, p.connect(c, p.qp(), ""))
	assert.Zero(t, p.destroy(p.expect(uabi.CMEventConnectRequest).ID))
	p.expect(uabi.CMEventRejected)
}

// TestDestroyConnected: the peer sees an orderly end, and no event comes of an id that is gone.
func TestDestroyConnected(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	c, s, cqp, sqp := pair(client, server)
	client.destroy(c)
	assert.Equal(t, s, server.expect(uabi.CMEventDisconnected).ID)
	assert.Equal(t, verbs.StateError, server.state(sqp))
	<-d.uv.QP(cqp).Verbs().Done()
	assert.Zero(t, client.tokens())
}

// TestCloseFile: what a program leaves ends with it.
func TestCloseFile(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	_, s, _, _ := pair(client, server)
	l, at := client.listen(1, netip.AddrPortFrom(loopback, 0))
	client.file.Close()
	client.file.Close() // twice is once
	assert.Equal(t, s, server.expect(uabi.CMEventDisconnected).ID)
	assert.Equal(t, syscall.EBADF, refused(t, do(client, uabi.CMCreateID, &uabi.CreateID{Response: client.resp(), PS: uabi.PSTCP}, 4)))
	assert.Equal(t, syscall.ENOENT, refused(t, do(client, uabi.CMDestroyID, &uabi.DestroyID{Response: client.resp(), ID: l}, 4)))
	require.NoError(t, server.bind(server.create(7), at))
}

// TestModifyDisconnects: rdma_disconnect changes the queue pair first, to SQD of an RNIC and to ERR of a CA.
func TestModifyDisconnects(t *testing.T) {
	for _, c := range []struct {
		name  string
		roce  bool
		state uint8
	}{{"iWARP", false, uabi.QPSSQD}, {"RoCE", true, uabi.QPSErr}} {
		t.Run(c.name, func(t *testing.T) {
			d := newDevice(t)
			if c.roce {
				d = newDevice(t, asRoCE)
			}
			client, server := d.program(), d.program()
			_, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
			id, qp := client.create(2), client.qp()
			client.resolve(id, at)
			require.NoError(t, client.connect(id, qp, ""))
			s := server.expect(uabi.CMEventConnectRequest).ID
			require.NoError(t, server.accept(s, 3, server.qp(), ""))
			server.expect(uabi.CMEventEstablished)
			client.token()
			require.NoError(t, client.getEvent())
			uv(client, uabi.CmdModifyQP, &uabi.ModifyQP{QPHandle: client.handle(qp), AttrMask: uabi.QPState, QPState: c.state}, 0)
			must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: id}, 0)
			client.expect(uabi.CMEventDisconnected)
			server.expect(uabi.CMEventDisconnected)
			assert.Equal(t, verbs.StateError, client.state(qp))
			assert.NoError(t, d.uv.QP(qp).Verbs().LLPStream().Err(), "a good close")
		})
	}
}

// TestMigrate: an id takes its events along, and a listener the requests.
func TestMigrate(t *testing.T) {
	d := newDevice(t)
	old, next := d.program(), d.program()
	migrate := func(p *program, num uint32) error {
		return do(p, uabi.CMMigrateID, &uabi.MigrateID{Response: p.resp(), ID: num, FD: uint32(p.event)}, 4)
	}
	a := old.create(1)
	old.resolve(a, netip.AddrPortFrom(loopback, 9))
	b := old.create(2)
	old.resolved(b)
	require.NoError(t, migrate(next, a))
	assert.EqualValues(t, 2, got[uabi.MigrateIDResp](next).EventsReported)
	require.NoError(t, migrate(next, b))
	assert.Zero(t, old.tokens())
	assert.Equal(t, b, next.expect(uabi.CMEventAddrResolved).ID)
	assert.Equal(t, syscall.ENOENT, refused(t, do(old, uabi.CMDestroyID, &uabi.DestroyID{Response: old.resp(), ID: a}, 4)))
	assert.Equal(t, syscall.ENOENT, refused(t, migrate(next, 12345)))
	require.NoError(t, migrate(next, a), "to where it is")

	l, at := old.listen(3, netip.AddrPortFrom(loopback, 0))
	c := next.create(4)
	next.resolve(c, at)
	require.NoError(t, next.connect(c, next.qp(), ""))
	old.token()
	require.NoError(t, migrate(next, l))
	assert.Equal(t, syscall.EAGAIN, refused(t, old.getEvent()))
	e := next.expect(uabi.CMEventConnectRequest)
	assert.EqualValues(t, 3, e.UID)
	must(next, uabi.CMReject, &uabi.Reject{ID: e.ID}, 0)
	next.expect(uabi.CMEventRejected)
}

// TestDestroyLeavesDisconnected: a thread that poll has told of DISCONNECTED reads it though another destroys the id. That one waits
// no longer than has been set, and not at all for an event that has been there for longer, or of another kind.
func TestDestroyLeavesDisconnected(t *testing.T) {
	d := newDevice(t)
	d.ucm.Farewell(time.Hour)
	client, server := d.program(), d.program()
	c, s, _, _ := pair(client, server)
	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)
	require.Eventually(t, func() bool { return client.tokens() == 1 }, time.Minute, time.Millisecond)
	destroyed := make(chan uint32)
	other := client.thread()
	go func() { destroyed <- other.destroy(c) }()
	select {
	case <-destroyed:
		require.Fail(t, "destroyed before the program was told")
	case <-time.After(50 * time.Millisecond):
	}
	assert.Equal(t, c, client.expect(uabi.CMEventDisconnected).ID)
	assert.EqualValues(t, 4, <-destroyed)

	server.expect(uabi.CMEventDisconnected)
	server.destroy(s)
	unread := client.create(9)
	client.resolved(unread)
	assert.Zero(t, client.destroy(unread))
	c, _, _, _ = pair(client, server)
	d.ucm.Farewell(time.Nanosecond)
	must(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)
	require.Eventually(t, func() bool { return client.tokens() == 1 }, time.Minute, time.Millisecond)
	client.destroy(c)
	assert.Zero(t, client.tokens())
}

// TestOwnEvent: a program writes events of its own, and reads them in turn with the others; what is none of its own is refused.
func TestOwnEvent(t *testing.T) {
	p := newDevice(t).program()
	a := p.create(0xa)
	p.resolved(a)
	for _, kind := range []uint32{uabi.CMEventUser, uabi.CMEventInternal} {
		must(p, uabi.CMWriteCMEvent, &uabi.WriteCMEvent{ID: a, Event: kind, Status: 7, Arg: 0x1234567890}, 0)
	}
	p.expect(uabi.CMEventAddrResolved)
	for _, kind := range []int{uabi.CMEventUser, uabi.CMEventInternal} {
		e := p.expect(kind)
		assert.Equal(t, []uint64{0xa, uint64(a), 7}, []uint64{e.UID, uint64(e.ID), uint64(e.Status)})
		assert.EqualValues(t, 0x1234567890, binary.NativeEndian.Uint64(umem.Bytes(&e.Conn)))
	}
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMWriteCMEvent, &uabi.WriteCMEvent{ID: a, Event: uabi.CMEventEstablished}, 0)))
	assert.Equal(t, syscall.ENOENT, refused(t, do(p, uabi.CMWriteCMEvent, &uabi.WriteCMEvent{ID: a + 1, Event: uabi.CMEventUser}, 0)))
	assert.EqualValues(t, 3, p.destroy(a))
}
