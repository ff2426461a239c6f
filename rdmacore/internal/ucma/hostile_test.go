//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/ucma"
)

// TestCommandsThatAreNone: too short, unmapped, unknown.
func TestCommandsThatAreNone(t *testing.T) {
	p := newDevice(t).program()
	write := func(addr uint64, n int) syscall.Errno {
		_, err := p.file.Write(addr, n)
		return refused(t, err)
	}
	for cmd := range uint32(ucma.Commands) {
		clear(p.arena[:512])
		binary.NativeEndian.PutUint32(p.arena, cmd)
		want := syscall.EINVAL // its struct is missing
		if cmd == uabi.CMGetOption {
			want = syscall.ENOSYS
		}
		assert.Equal(t, want, write(p.at(0), 8), cmd)
		binary.NativeEndian.PutUint16(p.arena[4:], 300)
		if want == syscall.EINVAL {
			assert.Equal(t, want, write(p.at(0), 100), "the header counts more than there is: %d", cmd)
		}
		no := write(p.at(0), 308)
		if cmd != uabi.CMGetEvent {
			assert.NotEqual(t, syscall.EAGAIN, no)
		}
		assert.NotZero(t, no, "zeros name nothing: %d", cmd)
	}
	assert.Equal(t, syscall.EINVAL, write(p.at(0), 7))
	assert.Equal(t, syscall.EINVAL, write(p.at(0), -1))
	binary.NativeEndian.PutUint32(p.arena, uint32(ucma.Commands))
	assert.Equal(t, syscall.EINVAL, write(p.at(0), 8))
	for _, a := range []uint64{0, 4096, 1 << 60, ^uint64(0)} {
		assert.Equal(t, syscall.EFAULT, write(a, 8), a)
	}
	hole := len(p.arena) - 4096
	copy(p.arena[hole-8:], []byte{uabi.CMCreateID, 0, 0, 0, 24, 0, 4, 0})
	require.NoError(t, unix.Mprotect(p.arena[hole:], unix.PROT_NONE))
	assert.Equal(t, syscall.EFAULT, write(p.at(hole-8), 32), "the struct is not there")
	assert.Equal(t, syscall.EFAULT, refused(t, do(p, uabi.CMCreateID, &uabi.CreateID{Response: 1 << 50, PS: uabi.PSTCP}, 4)))
	assert.Equal(t, syscall.ENOSPC, refused(t, do(p, uabi.CMCreateID, &uabi.CreateID{Response: p.resp(), PS: uabi.PSTCP}, 3)))
	assert.Zero(t, p.dev.ucm.IDs(), "nobody was told of those")
}

// TestHandles: what is nothing, or another File's, is ENOENT to every command.
func TestHandles(t *testing.T) {
	d := newDevice(t)
	mine, others := d.program(), d.program()
	a := others.create(1)
	require.NoError(t, others.bind(a, netip.AddrPortFrom(loopback, 0)))
	qp := mine.qp()
	for _, num := range []uint32{a, 0, a + 1, ^uint32(0)} {
		for name, err := range map[string]error{
			"DESTROY_ID":    do(mine, uabi.CMDestroyID, &uabi.DestroyID{Response: mine.resp(), ID: num}, 4),
			"BIND_IP":       mine.bind(num, netip.AddrPortFrom(loopback, 0)),
			"RESOLVE_IP":    do(mine, uabi.CMResolveIP, &uabi.ResolveIP{Dst: sockaddr(netip.AddrPortFrom(loopback, 1)), ID: num}, 0),
			"RESOLVE_ROUTE": do(mine, uabi.CMResolveRoute, &uabi.ResolveRoute{ID: num, TimeoutMS: 1}, 0),
			"QUERY_ROUTE":   do(mine, uabi.CMQueryRoute, &uabi.CMQueryCmd{Response: mine.resp(), ID: num}, 208),
			"QUERY":         do(mine, uabi.CMQuery, &uabi.CMQueryCmd{Response: mine.resp(), ID: num}, 280),
			"CONNECT":       mine.connect(num, qp, ""),
			"LISTEN":        do(mine, uabi.CMListen, &uabi.Listen{ID: num}, 0),
			"ACCEPT":        mine.accept(num, 1, qp, ""),
			"REJECT":        do(mine, uabi.CMReject, &uabi.Reject{ID: num}, 0),
			"DISCONNECT":    do(mine, uabi.CMDisconnect, &uabi.Disconnect{ID: num}, 0),
			"INIT_QP_ATTR":  do(mine, uabi.CMInitQPAttr, &uabi.InitQPAttr{Response: mine.resp(), ID: num, QPState: 1}, 144),
			"NOTIFY":        do(mine, uabi.CMNotify, &uabi.Notify{ID: num}, 0),
			"SET_OPTION":    do(mine, uabi.CMSetOption, &uabi.SetOption{OptVal: mine.resp(), ID: num, OptLen: 1}, 0),
		} {
			assert.Equal(t, syscall.ENOENT, refused(t, err), "%s of %d", name, num)
		}
	}
	others.destroy(a)
}

// TestQueuePairs that cannot be connected.
func TestQueuePairs(t *testing.T) {
	d := newDevice(t)
	p := d.program()
	_, at := p.listen(1, netip.AddrPortFrom(loopback, 0))
	c, qp := p.create(2), p.qp()
	p.resolve(c, at)
	assert.Equal(t, syscall.EINVAL, refused(t, p.connect(c, qp+1, "")), "there is none")
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMConnect, &uabi.Connect{ID: c}, 0)), "not valid")
	require.NoError(t, p.connect(c, qp, ""))
	s := p.expect(uabi.CMEventConnectRequest).ID
	assert.Equal(t, syscall.EINVAL, refused(t, p.accept(s, 3, qp, "")), "it is taken")
	assert.Equal(t, syscall.EINVAL, refused(t, p.accept(c, 3, p.qp(), "")), "nobody asks")
	assert.Equal(t, syscall.EINVAL, refused(t, do(p, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)), "not connected yet")
	require.NoError(t, p.accept(s, 3, p.qp(), ""))
	again := p.create(4)
	p.token()
	p.token()
	require.NoError(t, p.getEvent())
	require.NoError(t, p.getEvent())
	p.resolve(again, at)
	assert.Equal(t, syscall.EINVAL, refused(t, p.connect(again, qp, "")), "connected already")
}

// TestBacklog: a Request waits for room, which GET_EVENT makes.
func TestBacklog(t *testing.T) {
	d := newDevice(t)
	client, server := d.program(), d.program()
	l := server.create(1)
	require.NoError(t, server.bind(l, netip.AddrPortFrom(loopback, 0)))
	must(server, uabi.CMListen, &uabi.Listen{ID: l, Backlog: 1}, 0)
	at := netip.AddrPortFrom(loopback, server.port(l))
	for k := range uint64(3) {
		c := client.create(k + 2)
		client.resolve(c, at)
		require.NoError(t, client.connect(c, client.qp(), ""))
	}
	for range 3 {
		e := server.expect(uabi.CMEventConnectRequest)
		assert.LessOrEqual(t, server.tokens(), 1, "one at a time")
		must(server, uabi.CMReject, &uabi.Reject{ID: e.ID}, 0)
		client.expect(uabi.CMEventRejected)
	}
}

// TestAllAtOnce: threads that connect, disconnect and destroy beside each other, and a listener that goes
// meanwhile.
func TestAllAtOnce(t *testing.T) {
	d := newDevice(t)
	server := d.program()
	l, at := server.listen(1, netip.AddrPortFrom(loopback, 0))
	var wg sync.WaitGroup
	for range 4 {
		client := d.program()
		wg.Go(func() {
			for k := range 20 {
				c := client.create(2)
				client.resolve(c, at)
				_ = client.connect(c, client.qp(), "")
				if k%2 == 0 {
					client.token()
					_ = client.getEvent()
				}
				client.destroy(c)
			}
		})
	}
	stop := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if fds := []unix.PollFd{{Fd: int32(server.event), Events: unix.POLLIN}}; poll(fds) == 0 {
				continue
			}
			server.token()
			if server.getEvent() != nil {
				continue
			}
			if e := got[uabi.EventResp](server); e.Event == uabi.CMEventConnectRequest {
				if server.accept(e.ID, 5, server.qp(), "") != nil {
					server.destroy(e.ID)
				}
			}
		}
	})
	wg.Wait()
	close(stop)
	serving.Wait()
	server.destroy(l)
	server.file.Close()
	assert.Zero(t, d.ucm.IDs())
}

func poll(fds []unix.PollFd) int {
	n, _ := unix.Poll(fds, 10)
	return n
}
