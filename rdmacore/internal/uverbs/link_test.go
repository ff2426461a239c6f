//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

func (p *program) port() uabi.QueryPortResp {
	p.t.Helper()
	return must[uabi.QueryPortResp](p, uabi.CmdQueryPort, &uabi.QueryPort{PortNum: 1})
}

// next is the kind of the next asynchronous event, and what it is of.
func (p *program) nextEvent() (kind uint32, element uint64) {
	p.t.Helper()
	e := p.async()
	return e.EventType, e.Element
}

func fileText(t *testing.T, d *Device, file string) string {
	t.Helper()
	s, _, ok := d.Text(file)
	require.True(t, ok, file)
	return s
}

// TestPort: what queries and /sys say of a port, and the events, in order.
func TestPort(t *testing.T) {
	p := started(t, Config{})
	d := p.dev
	var told []Change
	d.OnChange(func(c Change) { told = append(told, c) })
	is := func(state, phys uint8, rate string) {
		t.Helper()
		r := p.port()
		assert.Equal(t, state, r.State)
		assert.Equal(t, phys, r.PhysState)
		assert.Equal(t, string('0'+rune(state)), fileText(t, d, "state")[:1])
		assert.Equal(t, string('0'+rune(phys)), fileText(t, d, "phys_state")[:1])
		assert.Equal(t, rate, fileText(t, d, "rate"))
	}
	event := func(want uint32, port uint64) {
		t.Helper()
		kind, element := p.nextEvent()
		assert.Equal(t, want, kind)
		assert.Equal(t, port, element)
	}
	const full = "100 Gb/sec (4X EDR)"
	is(4, 5, full)
	d.SetLink(Link{Down: true})
	is(1, 3, full)
	d.SetLink(Link{Down: true})
	event(uabi.EventPortErr, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	require.ErrorIs(t, d.AwaitUp(ctx), context.DeadlineExceeded)
	cancel()
	d.SetLink(Link{Rate: 1_250_000_000})
	event(uabi.EventPortActive, 1)
	require.NoError(t, d.AwaitUp(t.Context()))
	is(4, 5, "10 Gb/sec (1X FDR10)")
	r := p.port()
	assert.Equal(t, []uint8{1, 8}, []uint8{r.ActiveWidth, r.ActiveSpeed})
	_, _, ok := d.Text("gids/0")
	assert.False(t, ok, "it is as it was")
	assert.Equal(t, 1, d.MoveGID())
	event(uabi.EventGIDChange, 1)
	assert.EqualValues(t, 2, p.port().GIDTblLen)
	assert.Equal(t, "0000:0000:0000:0000:0000:0000:0000:0000", fileText(t, d, "gids/0"))
	_, entry, ok := d.Text("gids/1")
	assert.True(t, ok)
	assert.Equal(t, "gids/0", entry)
	_, entry, _ = d.Text("gid_attrs/ndevs/1")
	assert.Equal(t, "gid_attrs/ndevs/0", entry)
	d.Quiet()
	event(uabi.EventGIDChange, 1)
	is(4, 5, full)
	assert.Equal(t, []Change{AddressChanged, AddressChanged, AddressChanged}, told)
	d.Fail()
	event(uabi.EventDeviceFatal, 0)
	assert.Equal(t, []Change{AddressChanged, AddressChanged, AddressChanged, Removed}, told)
	is(1, 3, full)
	_, err := write[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPD{})
	assert.Equal(t, syscall.EIO, errnoOf(t, err))
	assert.Equal(t, map[string]uint64{"port down": 1, "port up": 1, "degrade": 2, "gid moved": 2, "fatal": 1}, d.RNIC().Stats().Faults)
}

// TestUnplug: each command of who has the device open is EIO, for good; connections end; another open is whole once it is there again.
func TestUnplug(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	d := a.dev
	d.Unplug()
	kind, _ := a.nextEvent()
	assert.EqualValues(t, uabi.EventDeviceFatal, kind)
	<-a.conn.Done()
	<-b.conn.Done()
	for _, p := range []*program{a.program, b.program} {
		_, err := write[uabi.AllocPDResp](p, uabi.CmdAllocPD, &uabi.AllocPD{})
		assert.Equal(t, syscall.EIO, errnoOf(t, err))
	}
	assert.True(t, d.Unplugged())
	f := d.Open() // by who has just found it plugged in
	assert.True(t, f.gone.Load())
	f.Close()
	d.Quiet()
	assert.False(t, d.Unplugged())
	_, err := write[uabi.AllocPDResp](a.program, uabi.CmdAllocPD, &uabi.AllocPD{})
	assert.Equal(t, syscall.EIO, errnoOf(t, err), "it is the old one to those who had it")
	p := openOf(t, d)
	p.context()
	p.pd()
}

// byHandPair is two queue pairs of a device that are brought up by hand, with a timeout of 4.096 us << timeout.
func byHandPair(t *testing.T, c Config, timeout uint8) (a, b *side) {
	t.Helper()
	return byHandOf(t, started(t, c), timeout)
}

func byHandOf(t *testing.T, p *program, timeout uint8) (a, b *side) {
	t.Helper()
	a, b = newSide(p, allRights), newSide(p, allRights)
	handed(a, b, timeout)
	handed(b, a, timeout)
	return a, b
}

// handed brings the queue pair of s up by hand, with that of the peer, at its device's address.
func handed(s, peer *side, timeout uint8) {
	s.t.Helper()
	modify := func(m uabi.ModifyQP) {
		m.QPHandle = s.qp.QPHandle
		m.AttrMask |= uabi.QPState
		must[uabi.None](s.program, uabi.CmdModifyQP, &m)
	}
	modify(uabi.ModifyQP{QPState: uabi.QPSInit, AttrMask: uabi.QPPkeyIndex | uabi.QPPort | uabi.QPAccessFlags, PortNum: 1, QPAccessFlags: allRights})
	m := uabi.ModifyQP{
		QPState: uabi.QPSRTR, AttrMask: uabi.QPAV | uabi.QPPathMTU | uabi.QPDestQPN | uabi.QPRQPSN | uabi.QPMaxDestRdAtomic | uabi.QPMinRNRTimer,
		PathMTU: 5, DestQPNum: peer.qp.QPN,
	}
	m.Dest.IsGlobal, m.Dest.PortNum, m.Dest.DGID = 1, 1, peer.dev.config.Addr.As16()
	modify(m)
	modify(uabi.ModifyQP{
		QPState: uabi.QPSRTS, AttrMask: uabi.QPTimeout | uabi.QPRetryCnt | uabi.QPRNRRetry | uabi.QPSQPSN | uabi.QPMaxQPRdAtomic,
		Timeout: timeout, RetryCnt: 1, RNRRetry: 7,
	})
}

// TestStalled: what waits for longer than the attributes say ends with RETRY_EXC_ERR, and not before; what waits for nothing stays.
func TestStalled(t *testing.T) {
	for _, roce := range []bool{false, true} {
		a, b := byHandPair(t, Config{RoCE: roce}, 13) // 2 x 33.6 ms
		send := func(id int) {
			a.posted(signaled(uabi.WRSend, id), a.sge(0, 8))
		}
		_, err := b.recv(1, b.sge(0, 64))
		require.NoError(t, err)
		send(1)
		a.one()
		b.one()
		a.dev.SetLink(Link{Down: true})
		time.Sleep(150 * time.Millisecond)
		a.dev.SetLink(Link{})
		_, err = b.recv(2, b.sge(0, 64))
		require.NoError(t, err)
		send(2) // it was idle: it is whole
		a.one()
		b.one()
		a.dev.SetLink(Link{Down: true})
		begun := time.Now()
		send(3)
		send(4)
		got := a.wait(2)
		assert.GreaterOrEqual(t, time.Since(begun), 60*time.Millisecond)
		assert.EqualValues(t, uabi.WCRetryExcErr, got[0].Status)
		assert.EqualValues(t, uabi.WCWRFlushErr, got[1].Status)
		assert.EqualValues(t, []uint64{3, 4}, []uint64{got[0].WRID, got[1].WRID})
	}
}

// TestBegunWhileDown: queue pairs that are brought up while the port is down come up when it is up.
func TestBegunWhileDown(t *testing.T) {
	p := started(t, Config{})
	p.dev.SetLink(Link{Down: true})
	a, b := byHandOf(t, p, 20)
	_, err := b.recv(1, b.sge(0, 64))
	require.NoError(t, err)
	a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, a.poll(1))
	p.dev.SetLink(Link{})
	a.one()
	b.one()
}
