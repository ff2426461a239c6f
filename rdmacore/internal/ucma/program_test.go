//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/ucma"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// A device is what one process has.
type device struct {
	t   *testing.T
	uv  *uverbs.Device
	ucm *ucma.Device
	fds atomic.Int32 // that Own was told of
}

func newDevice(t *testing.T, change ...func(*uverbs.Config)) *device {
	t.Helper()
	d := &device{t: t}
	c := uverbs.Config{Addr: loopback, CRC: true, Own: func(int) { d.fds.Add(1) }}
	for _, f := range change {
		f(&c)
	}
	var err error
	d.uv, err = uverbs.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.uv.Close()) })
	d.ucm = ucma.New(d.uv)
	return d
}

func asRoCE(c *uverbs.Config) { c.RoCE = true }

// A program writes commands to both files, from memory that is not Go's, as librdmacm does.
type program struct {
	t      *testing.T
	dev    *device
	file   *ucma.File
	event  int // a descriptor of the eventfd, as the program has it
	verbs  *uverbs.File
	arena  []byte
	pd, cq uint32
	// handles are those of the queue pairs, by number.
	handles map[uint32]uint32
}

const (
	respAt = 64 << 10 // where responses go
	dataAt = 128 << 10
)

func (d *device) program() *program {
	t := d.t
	t.Helper()
	p := &program{t: t, dev: d, handles: map[uint32]uint32{}}
	var err error
	p.arena, err = unix.Mmap(-1, 0, 256<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(p.arena)) })
	p.event, err = unix.Eventfd(0, unix.EFD_SEMAPHORE|unix.EFD_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(p.event)) })
	engine, err := unix.FcntlInt(uintptr(p.event), unix.F_DUPFD_CLOEXEC, 3)
	require.NoError(t, err)
	p.file, p.verbs = d.ucm.Open(engine), d.uv.Open()
	t.Cleanup(p.verbs.Close)
	t.Cleanup(p.file.Close)
	p.context()
	return p
}

func (p *program) at(off int) uint64 { return uint64(uintptr(unsafe.Pointer(&p.arena[off]))) }

func (p *program) resp() uint64 { return p.at(respAt) }

// got is the response of the last command.
func got[T any](p *program) T {
	var v T
	copy(umem.Bytes(&v), p.arena[respAt:])
	return v
}

// put writes a command of rdma_cm into memory, and returns its length.
func put[T any](p *program, cmd uint32, q *T, out int) int {
	body := umem.Bytes(q)
	binary.NativeEndian.PutUint32(p.arena, cmd)
	binary.NativeEndian.PutUint16(p.arena[4:], uint16(len(body)))
	binary.NativeEndian.PutUint16(p.arena[6:], uint16(out))
	return 8 + copy(p.arena[8:], body)
}

// do writes a command.
func do[T any](p *program, cmd uint32, q *T, out int) error {
	n := put(p, cmd, q, out)
	m, err := p.file.Write(p.at(0), n)
	if err == nil {
		require.Equal(p.t, n, m)
	}
	return err
}

// must writes a command that has to succeed.
func must[T any](p *program, cmd uint32, q *T, out int) {
	p.t.Helper()
	require.NoError(p.t, do(p, cmd, q, out))
}

// refused is the errno of a command that has to fail.
func refused(t *testing.T, err error) syscall.Errno {
	t.Helper()
	var r *uverbs.Refusal
	require.True(t, errors.As(err, &r), "%v", err)
	require.NotEmpty(t, r.Why)
	return r.Errno
}

func (p *program) create(uid uint64) uint32 {
	p.t.Helper()
	must(p, uabi.CMCreateID, &uabi.CreateID{UID: uid, Response: p.resp(), PS: uabi.PSTCP, QPType: uabi.QPTRC}, 4)
	return got[uabi.CreateIDResp](p).ID
}

// destroy returns events_reported.
func (p *program) destroy(num uint32) uint32 {
	p.t.Helper()
	must(p, uabi.CMDestroyID, &uabi.DestroyID{Response: p.resp(), ID: num}, 4)
	return got[uabi.DestroyIDResp](p).EventsReported
}

func sockaddr(a netip.AddrPort) (s uabi.SockaddrIn6) {
	if !a.IsValid() {
		return s
	}
	binary.BigEndian.PutUint16(s.Port[:], a.Port())
	if a.Addr().Is4() {
		s.Family, s.FlowInfo = syscall.AF_INET, a.Addr().As4()
	} else {
		s.Family, s.Addr = syscall.AF_INET6, a.Addr().As16()
	}
	return s
}

func (p *program) bind(num uint32, a netip.AddrPort) error {
	return do(p, uabi.CMBindIP, &uabi.BindIP{Addr: sockaddr(a), ID: num}, 0)
}

func (p *program) route(num uint32) uabi.QueryRouteResp {
	p.t.Helper()
	must(p, uabi.CMQueryRoute, &uabi.CMQueryCmd{Response: p.resp(), ID: num}, 208)
	return got[uabi.QueryRouteResp](p)
}

// port is the TCP port of an id.
func (p *program) port(num uint32) uint16 {
	r := p.route(num)
	return binary.BigEndian.Uint16(r.Src.Port[:])
}

// listen is an id that listens on an address.
func (p *program) listen(uid uint64, a netip.AddrPort) (num uint32, at netip.AddrPort) {
	p.t.Helper()
	num = p.create(uid)
	require.NoError(p.t, p.bind(num, a))
	must(p, uabi.CMListen, &uabi.Listen{ID: num}, 0)
	return num, netip.AddrPortFrom(a.Addr(), p.port(num))
}

// token reads the token of an event as the preload library does, for at most half a minute.
func (p *program) token() {
	p.t.Helper()
	fds := []unix.PollFd{{Fd: int32(p.event), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 30_000)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		require.NoError(p.t, err)
		require.Equal(p.t, 1, n, "no event comes")
		break
	}
	var b [8]byte
	n, err := unix.Read(p.event, b[:])
	require.NoError(p.t, err)
	require.Equal(p.t, 8, n)
}

// tokens is how many there are.
func (p *program) tokens() (n int) {
	p.t.Helper()
	for {
		fds := []unix.PollFd{{Fd: int32(p.event), Events: unix.POLLIN}}
		if k, err := unix.Poll(fds, 0); err != nil || k == 0 {
			break
		}
		var b [8]byte
		_, err := unix.Read(p.event, b[:])
		require.NoError(p.t, err)
		n++
	}
	for range n {
		_, err := unix.Write(p.event, binary.NativeEndian.AppendUint64(nil, 1))
		require.NoError(p.t, err)
	}
	return n
}

func (p *program) getEvent() error {
	return do(p, uabi.CMGetEvent, &uabi.GetEvent{Response: p.resp()}, 336)
}

// expect is the next event, which is of that kind.
func (p *program) expect(kind int) uabi.EventResp {
	p.t.Helper()
	p.token()
	require.NoError(p.t, p.getEvent())
	e := got[uabi.EventResp](p)
	require.Equal(p.t, kind, int(e.Event), "status %d", int32(e.Status))
	return e
}

// resolve brings an id to a route.
func (p *program) resolve(num uint32, dst netip.AddrPort) {
	p.t.Helper()
	must(p, uabi.CMResolveIP, &uabi.ResolveIP{Dst: sockaddr(dst), ID: num, TimeoutMS: 2000}, 0)
	require.Zero(p.t, p.expect(uabi.CMEventAddrResolved).Status)
	must(p, uabi.CMResolveRoute, &uabi.ResolveRoute{ID: num, TimeoutMS: 2000}, 0)
	require.Zero(p.t, p.expect(uabi.CMEventRouteResolved).Status)
}

func param(qpn uint32, private string) uabi.ConnParam {
	c := uabi.ConnParam{QPNum: qpn, PrivateDataLen: uint8(len(private)), ResponderResources: 4, InitiatorDepth: 2, Valid: 1}
	copy(c.PrivateData[:], private)
	return c
}

func private(e uabi.EventResp) string { return string(e.Conn.PrivateData[:e.Conn.PrivateDataLen]) }

func (p *program) connect(num, qpn uint32, private string) error {
	return do(p, uabi.CMConnect, &uabi.Connect{ConnParam: param(qpn, private), ID: num}, 0)
}

func (p *program) accept(num uint32, uid uint64, qpn uint32, private string) error {
	return do(p, uabi.CMAccept, &uabi.Accept{UID: uid, ConnParam: param(qpn, private), ID: num}, 0)
}

// pair is a connection between two programs, which may be one.
func pair(client, server *program) (c, s, cqp, sqp uint32) {
	client.t.Helper()
	l, at := server.listen(0x1111, netip.AddrPortFrom(loopback, 0))
	c, cqp, sqp = client.create(0xc), client.qp(), server.qp()
	client.resolve(c, at)
	require.NoError(client.t, client.connect(c, cqp, ""))
	s = server.expect(uabi.CMEventConnectRequest).ID
	require.NoError(client.t, server.accept(s, 0x5, sqp, ""))
	require.EqualValues(client.t, 0x5, server.expect(uabi.CMEventEstablished).UID)
	require.EqualValues(client.t, 0xc, client.expect(uabi.CMEventEstablished).UID)
	require.EqualValues(client.t, 1, server.destroy(l))
	return c, s, cqp, sqp
}
