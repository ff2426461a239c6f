package vipl

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// long is how long a test waits for what has to come.
const long = 2 * time.Minute

// host is a Nic with a protection tag, a registered region and registered Descriptors.
type host struct {
	t      testing.TB
	nic    *Nic
	addr   []byte // LocalNicAddress
	ptag   ProtectionHandle
	mem    []byte
	handle MemHandle // of mem
	descs  []Descriptor
	dh     MemHandle // of descs
	next   int       // the next of descs
	errors chan ErrorDescriptor
}

const hostMemory = 1 << 20

func newHost(t testing.TB, c Config) *host {
	t.Helper()
	return newHostAt(t, "127.0.0.1:0", c)
}

// newHostAt is newHost at a device.
func newHostAt(t testing.TB, device string, c Config) *host {
	t.Helper()
	h := &host{t: t, mem: make([]byte, hostMemory), descs: make([]Descriptor, 4096), errors: make(chan ErrorDescriptor, 4096)}
	if c.MatchTimeout == 0 {
		c.MatchTimeout = long // a ConnectWait that begins late is none that is missing
	}
	var err error
	h.nic, err = OpenNic(device, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.nic.CloseNic() }) // some tests close it
	require.NoError(t, h.nic.ErrorCallback(func(e *ErrorDescriptor) {
		plain := *e // that of the appendix
		plain.LocalAddr, plain.RemoteAddr, plain.Err = nil, nil, nil
		h.errors <- plain
	}))
	attributes, err := h.nic.QueryNic()
	require.NoError(t, err)
	h.addr = attributes.LocalNicAddress
	h.ptag, err = h.nic.CreatePtag()
	require.NoError(t, err)
	h.handle, err = h.nic.RegisterMem(h.mem, &MemAttributes{Ptag: h.ptag, EnableRdmaWrite: true, EnableRdmaRead: true})
	require.NoError(t, err)
	h.dh, err = h.nic.RegisterDescriptors(h.descs, h.ptag)
	require.NoError(t, err)
	return h
}

// attributes are those of a VI that allows all that its level does.
func (h *host) attributes(level ReliabilityLevel) *ViAttributes {
	return &ViAttributes{
		ReliabilityLevel: level, MaxTransferSize: hostMemory, Ptag: h.ptag,
		EnableRdmaWrite: true, EnableRdmaRead: level.reliable(),
	}
}

func (h *host) vi(level ReliabilityLevel, sendCQ, recvCQ *CQ) *Vi {
	h.t.Helper()
	v, err := h.nic.CreateVi(h.attributes(level), sendCQ, recvCQ)
	require.NoError(h.t, err)
	return v
}

func (h *host) cq(entries int) *CQ {
	h.t.Helper()
	q, err := h.nic.CreateCQ(entries)
	require.NoError(h.t, err)
	return q
}

// desc is an unused Descriptor.
func (h *host) desc() *Descriptor {
	d := &h.descs[h.next%len(h.descs)]
	h.next++
	*d = Descriptor{}
	return d
}

// data is a data segment of mem.
func (h *host) data(off, n int) DataSegment {
	return DataSegment{Data: AddressOf(h.mem) + Address(off), Handle: h.handle, Length: uint32(n)}
}

// at is mem as a remote VI names it.
func (h *host) at(off int) AddressSegment {
	return AddressSegment{Data: AddressOf(h.mem) + Address(off), Handle: h.handle}
}

// address is one on the Nic, closed or not: goroutines call it that may be late, and that a
// failure would end without a word.
func (h *host) address(discriminator string) *NetAddress {
	return &NetAddress{HostAddress: h.addr, Discriminator: []byte(discriminator)}
}

func (h *host) postSend(v *Vi, d *Descriptor) *Descriptor {
	h.t.Helper()
	require.NoError(h.t, v.PostSend(d, h.dh))
	return d
}

func (h *host) postRecv(v *Vi, segs ...DataSegment) *Descriptor {
	h.t.Helper()
	d := h.desc()
	d.SetRecv(segs...)
	require.NoError(h.t, v.PostRecv(d, h.dh))
	return d
}

// wait waits for a Descriptor of a queue that no CQ has, and expects it to be want.
func wait(t *testing.T, call func(context.Context) (*Descriptor, error), want *Descriptor) *Descriptor {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	d, err := call(ctx)
	require.NoError(t, err)
	if want != nil {
		require.Same(t, want, d)
	}
	return d
}

// waitError is the next asynchronous error.
func (h *host) waitError() ErrorDescriptor {
	h.t.Helper()
	select {
	case e := <-h.errors:
		return e
	case <-time.After(long):
		require.FailNow(h.t, "no asynchronous error")
		panic("not reached")
	}
}

// noError expects that no asynchronous error has been told, after all that was to be told
// by now has been.
func (h *host) noError() {
	h.t.Helper()
	done := make(chan struct{})
	h.nic.dispatch.do(func() { close(done) })
	<-done
	select {
	case e := <-h.errors:
		require.FailNow(h.t, "asynchronous error", e.String())
	default:
	}
}

func state(t *testing.T, v *Vi) ViState {
	t.Helper()
	s, _, err := v.QueryVi()
	require.NoError(t, err)
	return s
}

// waitState waits until v is in state s.
func waitState(t *testing.T, v *Vi, s ViState) {
	t.Helper()
	require.Eventually(t, func() bool { return state(t, v) == s }, long, time.Millisecond, "%v", s)
}

// connect connects two VIs, client and server.
func connect(t testing.TB, a *host, va *Vi, b *host, vb *Vi) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		c, err := b.nic.ConnectWait(ctx, b.address("server"))
		if err == nil {
			err = c.ConnectAccept(vb)
		}
		accepted <- err
	}()
	_, err := va.ConnectRequest(ctx, a.address("client"), b.address("server"))
	require.NoError(t, err)
	require.NoError(t, <-accepted)
}

// pair is two connected VIs on two Nics.
type pair struct {
	a, b   *host
	va, vb *Vi
}

func newPair(t *testing.T, level ReliabilityLevel, c Config) *pair {
	t.Helper()
	p := &pair{a: newHost(t, c), b: newHost(t, c)}
	p.va, p.vb = p.a.vi(level, nil, nil), p.b.vi(level, nil, nil)
	connect(t, p.a, p.va, p.b, p.vb)
	return p
}

var levels = []ReliabilityLevel{ServiceUnreliable, ServiceReliableDelivery, ServiceReliableReception}
