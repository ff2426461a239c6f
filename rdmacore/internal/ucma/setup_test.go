//go:build linux && (amd64 || arm64)

package ucma_test

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

const rdmaUDPQKey = 0x01234567

func (p *program) createUD(uid uint64) uint32 {
	p.t.Helper()
	must(p, uabi.CMCreateID, &uabi.CreateID{UID: uid, Response: p.resp(), PS: uabi.PSUDP, QPType: uabi.QPTUD}, 4)
	return got[uabi.CreateIDResp](p).ID
}

// listenUD is an id for datagrams that listens on any address, which is the device's alone.
func (p *program) listenUD(uid uint64, backlog uint32) (num uint32, at netip.AddrPort) {
	p.t.Helper()
	num = p.createUD(uid)
	require.NoError(p.t, p.bind(num, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	must(p, uabi.CMListen, &uabi.Listen{ID: num, Backlog: backlog}, 0)
	return num, netip.AddrPortFrom(loopback, p.port(num))
}

// udQP is a queue pair for datagrams, brought up as librdmacm does.
func (p *program) udQP(num uint32) uint32 {
	p.t.Helper()
	uv(p, uabi.CmdCreateQP, &uabi.CreateQP{Response: p.resp(), QPConfig: uabi.QPConfig{
		PDHandle: p.pd, SendCQHandle: p.cq, RecvCQHandle: p.cq, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, QPType: uabi.QPTUD,
	}}, 32)
	r := got[uabi.CreateQPResp](p)
	must(p, uabi.CMInitQPAttr, &uabi.InitQPAttr{Response: p.resp(), ID: num, QPState: uabi.QPSInit}, 144)
	a := got[uabi.QPAttr](p)
	require.EqualValues(p.t, uabi.QPState|uabi.QPPkeyIndex|uabi.QPPort|uabi.QPQkey, a.QPAttrMask)
	require.EqualValues(p.t, rdmaUDPQKey, a.Qkey)
	modify := func(mask uint32, state uint8) {
		uv(p, uabi.CmdModifyQP, &uabi.ModifyQP{QPHandle: r.QPHandle, AttrMask: mask, QPState: state, PortNum: a.PortNum, Qkey: a.Qkey}, 0)
	}
	modify(a.QPAttrMask, uabi.QPSInit)
	modify(uabi.QPState, uabi.QPSRTR)
	modify(uabi.QPState|uabi.QPSQPSN, uabi.QPSRTS)
	return r.QPN
}

// asker is an id with a route to a listener for datagrams.
func (p *program) asker(uid uint64, at netip.AddrPort) uint32 {
	p.t.Helper()
	c := p.createUD(uid)
	p.resolve(c, at)
	return c
}

func udPrivate(e uabi.EventResp) string {
	u := e.UDParam()
	return string(u.PrivateData[:u.PrivateDataLen])
}

// TestDatagrams: a client is told the server's queue pair, and can send to it, from the address that it is bound to; also when the
// listener has gone meanwhile.
func TestDatagrams(t *testing.T) {
	further := netip.MustParseAddr("127.0.0.4")
	for gid, early := range []bool{false, true} {
		d := newDevice(t, func(c *uverbs.Config) { c.GIDs = []netip.Addr{further} })
		client, server := d.program(), d.program()
		l, at := server.listenUD(0x1111, 0)
		c := client.createUD(0xc)
		if gid > 0 {
			require.NoError(t, client.bind(c, netip.AddrPortFrom(further, 0)))
		}
		client.resolve(c, at)
		require.NoError(t, client.connect(c, client.udQP(c), "a request"))
		e := server.expect(uabi.CMEventConnectRequest)
		assert.EqualValues(t, 0x1111, e.UID, "the listener's")
		assert.Equal(t, "a request", udPrivate(e))
		s := e.ID
		assert.Equal(t, client.route(c).Src, server.route(s).Dst)
		assert.Equal(t, sockaddr(at), server.route(s).Src)
		if early {
			assert.EqualValues(t, 1, server.destroy(l))
		}
		sqp := server.udQP(s)
		require.NoError(t, server.accept(s, 0x5e, sqp, "a reply"))
		assert.Equal(t, syscall.EINVAL, refused(t, server.accept(s, 0x5e, sqp, "")), "twice")
		e = client.expect(uabi.CMEventEstablished)
		assert.EqualValues(t, 0xc, e.UID)
		assert.Zero(t, e.Status)
		assert.Equal(t, "a reply", udPrivate(e))
		u := e.UDParam()
		assert.Equal(t, sqp, u.QPNum)
		assert.EqualValues(t, rdmaUDPQKey, u.QKey)
		assert.Equal(t, uabi.GID(loopback.As16()), u.AH.GRH.DGID)
		assert.EqualValues(t, gid, u.AH.GRH.SGIDIndex)
		uv(client, uabi.CmdCreateAH, &uabi.CreateAH{Response: client.resp(), PDHandle: client.pd, Attr: u.AH}, 4)
		assert.Zero(t, server.tokens(), "nothing is established at the server")
		assert.Equal(t, syscall.EINVAL, refused(t, client.connect(c, 0, "")), "twice")
		assert.Equal(t, syscall.EINVAL, refused(t, do(client, uabi.CMDisconnect, &uabi.Disconnect{ID: c}, 0)), "there is no connection")
		assert.EqualValues(t, 3, client.destroy(c))
		assert.Zero(t, server.destroy(s))
		if !early {
			assert.EqualValues(t, 1, server.destroy(l))
		}
		assert.Zero(t, d.ucm.IDs())
	}
}

// TestDatagramsRejected: by the program, or because it has destroyed what it would have answered with.
func TestDatagramsRejected(t *testing.T) {
	const private = "go away"
	for name, reject := range map[string]func(server *program, l uint32) string{
		"REJECT": func(server *program, _ uint32) string {
			q := uabi.Reject{ID: server.expect(uabi.CMEventConnectRequest).ID, PrivateDataLen: uint8(len(private))}
			copy(q.PrivateData[:], private)
			must(server, uabi.CMReject, &q, 0)
			return private
		},
		"DESTROY_ID": func(server *program, _ uint32) string {
			server.destroy(server.expect(uabi.CMEventConnectRequest).ID)
			return ""
		},
		"DESTROY_ID of the listener": func(server *program, l uint32) string {
			server.token()
			server.destroy(l)
			return ""
		},
		"close": func(server *program, _ uint32) string {
			server.expect(uabi.CMEventConnectRequest)
			server.file.Close()
			return ""
		},
	} {
		d := newDevice(t)
		client, server := d.program(), d.program()
		l, at := server.listenUD(1, 0)
		c := client.asker(2, at)
		require.NoError(t, client.connect(c, 0, ""))
		want := reject(server, l)
		e := client.expect(uabi.CMEventUnreachable)
		assert.EqualValues(t, udwire.SetupRejected, e.Status, name)
		assert.Equal(t, want, udPrivate(e), name)
	}
}

// TestDatagramsToNobody: a port that is not there, and one that says nothing.
func TestDatagramsToNobody(t *testing.T) {
	d := newDevice(t)
	d.ucm.Shorten(0, 50*time.Millisecond)
	p := d.program()
	deaf := peer(t)
	c := p.asker(1, deaf.at())
	require.NoError(t, p.connect(c, 0, ""))
	assert.Equal(t, minus(syscall.ETIMEDOUT), p.expect(uabi.CMEventUnreachable).Status)
	at := deaf.at()
	require.NoError(t, deaf.Close())
	d.ucm.Shorten(0, time.Minute)
	c = p.asker(2, at)
	require.NoError(t, p.connect(c, 0, ""))
	assert.EqualValues(t, 1, p.expect(uabi.CMEventUnreachable).Status, "IB_SIDR_UNSUPPORTED")
	gone := p.asker(3, peer(t).at())
	require.NoError(t, p.connect(gone, 0, ""))
	assert.EqualValues(t, 2, p.destroy(gone), "while it asks")
}

// raw is a peer's socket.
type raw struct {
	*net.UDPConn
	t *testing.T
}

func peer(t *testing.T) raw {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return raw{c, t}
}

func (r raw) at() netip.AddrPort { return r.LocalAddr().(*net.UDPAddr).AddrPort() }

func (r raw) say(to netip.AddrPort, b []byte) {
	r.t.Helper()
	_, err := r.WriteToUDPAddrPort(b, to)
	require.NoError(r.t, err)
}

func (r raw) hear() ([]byte, netip.AddrPort) {
	r.t.Helper()
	require.NoError(r.t, r.SetReadDeadline(time.Now().Add(30*time.Second)))
	b := make([]byte, 1<<16)
	n, from, err := r.ReadFromUDPAddrPort(b)
	require.NoError(r.t, err)
	return b[:n], from
}

// TestHostileRequests: what is no Request is not answered and not told of; a Request that comes again is told of
// once, and each has at most one Reply, no longer than itself.
func TestHostileRequests(t *testing.T) {
	d := newDevice(t)
	server := d.program()
	_, at := server.listenUD(1, 0)
	stranger := peer(t)
	request := func(n uint64) []byte { s := udwire.Setup{Transaction: n}; return s.Append(nil) }
	reply := udwire.Setup{Reply: true, Transaction: 1, QPN: 1 << 8}
	broken := request(1)
	broken[20]++
	for _, b := range [][]byte{{}, []byte("hello"), broken, reply.Append(nil), append(request(1), 0), request(1)[:udwire.SetupSize-1], make([]byte, 9000)} {
		stranger.say(at, b)
	}
	for range 3 {
		stranger.say(at, request(2))
	}
	e := server.expect(uabi.CMEventConnectRequest)
	stranger.say(at, request(3))
	last := server.expect(uabi.CMEventConnectRequest) // so all before has been seen
	assert.Zero(t, server.tokens())
	require.NoError(t, server.accept(e.ID, 2, server.udQP(e.ID), "yes"))
	first, from := stranger.hear()
	assert.Equal(t, at, from)
	assert.Len(t, first, len(request(2)))
	got, err := udwire.DecodeSetup(first)
	require.NoError(t, err)
	assert.EqualValues(t, 2, got.Transaction)
	stranger.say(at, broken)
	stranger.say(at, request(3)) // is told of, has no answer
	stranger.say(at, request(2))
	again, _ := stranger.hear()
	assert.Equal(t, first, again)
	must(server, uabi.CMReject, &uabi.Reject{ID: last.ID}, 0)
	b, _ := stranger.hear()
	got, err = udwire.DecodeSetup(b)
	require.NoError(t, err)
	assert.EqualValues(t, 3, got.Transaction)
	assert.EqualValues(t, udwire.SetupRejected, got.Status)
	another := peer(t)
	another.say(at, request(2))
	assert.NotEqual(t, e.ID, server.expect(uabi.CMEventConnectRequest).ID, "another's is another")
	assert.Zero(t, server.tokens())
}

// TestManyRequests: beyond the backlog they are dropped, and as many answers are kept as that has places.
func TestManyRequests(t *testing.T) {
	d := newDevice(t)
	server := d.program()
	_, at := server.listenUD(1, 1)
	stranger := peer(t)
	var first []byte
	const answers = 1024
	for n := range uint64(answers + 1) {
		s := udwire.Setup{Transaction: n}
		stranger.say(at, s.Append(nil))
		e := server.expect(uabi.CMEventConnectRequest)
		must(server, uabi.CMReject, &uabi.Reject{ID: e.ID}, 0)
		server.destroy(e.ID)
		if b, _ := stranger.hear(); n == 1 {
			first = b
		}
	}
	one := udwire.Setup{Transaction: 1}
	stranger.say(at, one.Append(nil))
	b, _ := stranger.hear()
	assert.Equal(t, first, b, "it is known")
	forgotten := udwire.Setup{Transaction: 0}
	stranger.say(at, forgotten.Append(nil))
	server.token()
	waits := udwire.Setup{Transaction: answers + 7}
	stranger.say(at, waits.Append(nil))
	stranger.say(at, one.Append(nil))
	stranger.hear() // it has been seen
	require.NoError(t, server.getEvent())
	assert.Zero(t, server.tokens(), "the backlog was one")
	stranger.say(at, waits.Append(nil))
	server.expect(uabi.CMEventConnectRequest)
}

// TestHostileReplies: a client takes the Reply of its Request from the peer that it asks, and nothing else; it asks again
// until that is there.
func TestHostileReplies(t *testing.T) {
	d := newDevice(t)
	p := d.program()
	server, stranger := peer(t), peer(t)
	c := p.asker(1, server.at())
	require.NoError(t, p.connect(c, 0, "who?"))
	first, client := server.hear()
	again, _ := server.hear()
	assert.Equal(t, first, again)
	r, err := udwire.DecodeSetup(first)
	require.NoError(t, err)
	assert.Equal(t, "who?", string(r.Private))
	good := udwire.Setup{Reply: true, Transaction: r.Transaction, QPN: 5 << 8, QKey: 7}
	other, status, none := good, good, good
	other.Transaction++
	status.Status = 1 // has no queue pair
	none.QPN = 1 << 24
	broken := good.Append(nil)
	broken[udwire.SetupSize-1]++
	server.say(client, first)
	for _, b := range [][]byte{{}, other.Append(nil), status.Append(nil), none.Append(nil), broken, make([]byte, 9000)} {
		server.say(client, b)
	}
	stolen := good
	stolen.QPN = 6 << 8
	stranger.say(client, stolen.Append(nil))
	server.say(client, good.Append(nil))
	e := p.expect(uabi.CMEventEstablished)
	assert.EqualValues(t, 5<<8, e.UDParam().QPNum)
	assert.EqualValues(t, 7, e.UDParam().QKey)
	assert.Zero(t, p.tokens())
}

// TestDatagramsRefused: what ids for datagrams do not do.
func TestDatagramsRefused(t *testing.T) {
	d := newDevice(t)
	p := d.program()
	no := func(err error) syscall.Errno { t.Helper(); return refused(t, err) }
	l, at := p.listenUD(1, 0)
	id := p.createUD(2)
	assert.Equal(t, syscall.EADDRNOTAVAIL, no(p.bind(id, netip.MustParseAddrPort("127.0.0.2:0"))))
	assert.Equal(t, syscall.EADDRINUSE, no(p.bind(id, at)))
	assert.Equal(t, syscall.ENODEV, no(do(p, uabi.CMResolveIP, &uabi.ResolveIP{Dst: sockaddr(netip.MustParseAddrPort("[::1]:1")), ID: id, TimeoutMS: 1}, 0)))
	p.resolve(id, netip.AddrPortFrom(netip.AddrFrom16(loopback.As16()), at.Port())) // IPv4-mapped
	long := strings.Repeat("x", udwire.MaxRequestPrivate+1)
	assert.Equal(t, syscall.EINVAL, no(p.connect(id, 0, long)))
	assert.Equal(t, syscall.EINVAL, no(do(p, uabi.CMConnect, &uabi.Connect{ID: id}, 0)), "not valid")
	require.NoError(t, p.connect(id, 0, long[1:]))
	e := p.expect(uabi.CMEventConnectRequest)
	assert.Equal(t, long[1:], udPrivate(e))
	qp := p.udQP(e.ID)
	assert.Equal(t, syscall.EINVAL, no(p.accept(e.ID, 1, p.qp(), "")), "for a connection")
	assert.Equal(t, syscall.EINVAL, no(p.accept(e.ID, 1, qp+1, "")), "there is none")
	assert.Equal(t, syscall.EINVAL, no(p.accept(e.ID, 1, qp, long[:udwire.MaxReplyPrivate+1])))
	assert.Equal(t, syscall.EINVAL, no(p.accept(l, 1, qp, "")), "a listener")
	assert.Equal(t, syscall.EINVAL, no(do(p, uabi.CMAccept, &uabi.Accept{ID: e.ID}, 0)), "not valid")
	assert.Equal(t, syscall.EINVAL, no(do(p, uabi.CMReject, &uabi.Reject{ID: e.ID, PrivateDataLen: udwire.MaxReplyPrivate + 1}, 0)))
	require.NoError(t, p.accept(e.ID, 1, qp, long[:udwire.MaxReplyPrivate]))
	assert.Equal(t, long[:udwire.MaxReplyPrivate], udPrivate(p.expect(uabi.CMEventEstablished)))

	uv(p, uabi.CmdCreateQP, &uabi.CreateQP{Response: p.resp(), QPConfig: uabi.QPConfig{
		PDHandle: p.pd, SendCQHandle: p.cq, RecvCQHandle: p.cq, MaxSendWR: 1, MaxRecvWR: 1, QPType: uabi.QPTUD,
	}}, 32)
	fresh := got[uabi.CreateQPResp](p).QPN
	_, tcp := p.listen(3, netip.AddrPortFrom(loopback, 0))
	c := p.create(4)
	p.resolve(c, tcp)
	assert.Equal(t, syscall.EINVAL, no(p.connect(c, fresh, "")), "a queue pair for datagrams is not connected")
	assert.Equal(t, syscall.EOPNOTSUPP, no(do(p, uabi.CMCreateID, &uabi.CreateID{Response: p.resp(), PS: uabi.PSIPoIB}, 4)))
	assert.Equal(t, syscall.ENOSYS, no(do(p, uabi.CMJoinIPMcast, &uabi.JoinIPMcast{ID: id}, 4)))
}

// TestLoopbackIsHere: the loopback reaches a device that has another address, in whatever family.
func TestLoopbackIsHere(t *testing.T) {
	d := newDevice(t, func(c *uverbs.Config) { c.Addr = netip.MustParseAddr("192.0.2.1") })
	for from, want := range map[string]string{
		"127.0.0.1:7": "192.0.2.1:7", "[::1]:7": "192.0.2.1:7", "192.0.2.9:7": "192.0.2.9:7", "[::ffff:192.0.2.9]:7": "192.0.2.9:7",
	} {
		assert.Equal(t, netip.MustParseAddrPort(want), d.ucm.Here(netip.MustParseAddrPort(from)), from)
	}
}

// TestDatagramsTrace: what --strace shows of them.
func TestDatagramsTrace(t *testing.T) {
	var lines []string
	p := newDevice(t, func(c *uverbs.Config) { c.Trace = func(s string) { lines = append(lines, s) } }).program()
	_, at := p.listenUD(1, 0)
	c := p.asker(2, at)
	require.NoError(t, p.connect(c, 0, "four"))
	p.expect(uabi.CMEventConnectRequest)
	assert.Contains(t, lines, "rdma_cm GET_EVENT() = 0 (CONNECT_REQUEST, id=3, qpn=0x0, private_data_len=4)")
}
