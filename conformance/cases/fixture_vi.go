package cases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// VI NICs of this process, and pairs of connected VIs.

// The bits of a Descriptor's status (VI Architecture 10.2).
const (
	viDone             = 0x00001
	viFormat           = 0x00002
	viProtection       = 0x00004
	viLength           = 0x00008
	viPartial          = 0x00010
	viFlushed          = 0x00020
	viTransport        = 0x00040
	viRemoteProtection = 0x00080
	viRemoteDescriptor = 0x00100
	viOpReceive        = 0x10000
	viOpWrite          = 0x20000
	viOpRemoteWrite    = 0x30000
	viOpRead           = 0x40000
	viHasImmediate     = 0x80000
)

// viHost is a NIC under test with a protection tag, registered memory, and registered
// Descriptors.
type viHost struct {
	t      *conformance.T
	nic    *vipl.Nic
	ptag   vipl.ProtectionHandle
	mem    []byte
	handle vipl.MemHandle // of mem
	descs  []vipl.Descriptor
	dh     vipl.MemHandle // of descs
	used   int            // of descs
	errors chan vipl.ErrorDescriptor
}

const viMemory = 1 << 16

// newVIHost opens a NIC. The memory is filled with octets that tell places apart.
func newVIHost(t *conformance.T, c vipl.Config) *viHost { return newVIHostAt(t, "127.0.0.1:0", c) }

// newVIHostAt is newVIHost at an address.
func newVIHostAt(t *conformance.T, device string, c vipl.Config) *viHost {
	h := &viHost{t: t, mem: make([]byte, viMemory), descs: make([]vipl.Descriptor, 512), errors: make(chan vipl.ErrorDescriptor, 512)}
	if c.MatchTimeout == 0 {
		c.MatchTimeout = time.Minute // a request may come before the ConnectWait
	}
	for i := range h.mem {
		h.mem[i] = byte(i*7 + i>>8)
	}
	h.nic = must(vipl.OpenNic(device, c))(t, "OpenNic")
	t.Cleanup(func() { _ = h.nic.CloseNic() })
	require.NoError(t, h.nic.ErrorCallback(func(e *vipl.ErrorDescriptor) { h.errors <- *e }))
	h.ptag = h.newPtag()
	h.handle = h.register(h.mem, vipl.MemAttributes{Ptag: h.ptag, EnableRdmaWrite: true, EnableRdmaRead: true})
	h.dh = must(h.nic.RegisterDescriptors(h.descs, h.ptag))(t, "RegisterDescriptors")
	return h
}

func (h *viHost) newPtag() vipl.ProtectionHandle { return must(h.nic.CreatePtag())(h.t, "CreatePtag") }

func (h *viHost) register(mem []byte, a vipl.MemAttributes) vipl.MemHandle {
	return must(h.nic.RegisterMem(mem, &a))(h.t, "RegisterMem")
}

// attributes are those of a VI that allows what its level does.
func (h *viHost) attributes(level vipl.ReliabilityLevel) vipl.ViAttributes {
	return vipl.ViAttributes{
		ReliabilityLevel: level, MaxTransferSize: viMemory, Ptag: h.ptag,
		EnableRdmaWrite: true, EnableRdmaRead: level != vipl.ServiceUnreliable,
	}
}

func (h *viHost) vi(level vipl.ReliabilityLevel, changes ...func(*vipl.ViAttributes)) *vipl.Vi {
	return h.tied(level, nil, nil, changes...)
}

// tied is vi with its queues tied to CQs.
func (h *viHost) tied(level vipl.ReliabilityLevel, send, recv *vipl.CQ, changes ...func(*vipl.ViAttributes)) *vipl.Vi {
	a := h.attributes(level)
	for _, change := range changes {
		change(&a)
	}
	return must(h.nic.CreateVi(&a, send, recv))(h.t, "CreateVi")
}

func (h *viHost) cq(entries int) *vipl.CQ { return must(h.nic.CreateCQ(entries))(h.t, "CreateCQ") }

// desc is an unused Descriptor.
func (h *viHost) desc() *vipl.Descriptor {
	d := &h.descs[h.used%len(h.descs)]
	h.used++
	*d = vipl.Descriptor{}
	return d
}

// data is a data segment of mem.
func (h *viHost) data(off, n int) vipl.DataSegment {
	return vipl.DataSegment{Data: vipl.AddressOf(h.mem) + vipl.Address(off), Handle: h.handle, Length: uint32(n)}
}

// at is mem from off on as a raw peer names it, remote as another VI does.
func (h *viHost) at(off, n int) viRDMA {
	return viRDMA{uint64(vipl.AddressOf(h.mem)) + uint64(off), uint32(h.handle), uint32(n)}
}

func (h *viHost) remote(off int) vipl.AddressSegment {
	return vipl.AddressSegment{Data: vipl.AddressOf(h.mem) + vipl.Address(off), Handle: h.handle}
}

// address is that of a VI at the NIC.
func (h *viHost) address(discriminator string) *vipl.NetAddress {
	a := must(h.nic.QueryNic())(h.t, "QueryNic")
	return &vipl.NetAddress{HostAddress: a.LocalNicAddress, Discriminator: []byte(discriminator)}
}

func (h *viHost) post(v *vipl.Vi, d *vipl.Descriptor) *vipl.Descriptor {
	require.NoError(h.t, v.PostSend(d, h.dh), "PostSend")
	return d
}

// sends posts a Send of parts of mem, or of nothing at all; writes and reads what they
// say.
func (h *viHost) sends(v *vipl.Vi, segments ...vipl.DataSegment) *vipl.Descriptor {
	d := h.desc()
	d.SetSend(segments...)
	return h.post(v, d)
}

func (h *viHost) writes(v *vipl.Vi, to vipl.AddressSegment, segments ...vipl.DataSegment) *vipl.Descriptor {
	d := h.desc()
	d.SetRdmaWrite(to, segments...)
	return h.post(v, d)
}

func (h *viHost) reads(v *vipl.Vi, from vipl.AddressSegment, segments ...vipl.DataSegment) *vipl.Descriptor {
	d := h.desc()
	d.SetRdmaRead(from, segments...)
	return h.post(v, d)
}

func (h *viHost) recv(v *vipl.Vi, segments ...vipl.DataSegment) *vipl.Descriptor {
	d := h.desc()
	d.SetRecv(segments...)
	require.NoError(h.t, v.PostRecv(d, h.dh), "PostRecv")
	return d
}

// sent waits for a Descriptor of a send queue and its status.
func (h *viHost) sent(v *vipl.Vi, d *vipl.Descriptor, status uint32) {
	h.completes(v.SendWait, d, status)
}

// received waits for a Descriptor of a receive queue and its status.
func (h *viHost) received(v *vipl.Vi, d *vipl.Descriptor, status uint32) {
	h.completes(v.RecvWait, d, status)
}

func (h *viHost) completes(wait func(context.Context) (*vipl.Descriptor, error), d *vipl.Descriptor, status uint32) {
	got := must(wait(h.t.Context()))(h.t, "waiting for a completion")
	require.Same(h.t, d, got, "the Descriptor at the head")
	require.Equal(h.t, vipl.Status(status), d.Control.Status, "the status")
}

// notDone says that the head of a queue has not completed.
func (h *viHost) notDone(done func() (*vipl.Descriptor, error)) {
	require.ErrorIs(h.t, second(done()), vipl.ErrNotDone)
}

// state is that of a VI.
func (h *viHost) state(v *vipl.Vi) vipl.ViState {
	s, _, err := v.QueryVi()
	require.NoError(h.t, err, "QueryVi")
	return s
}

// becomes waits until a VI is in a state.
func (h *viHost) becomes(v *vipl.Vi, s vipl.ViState) {
	require.Eventually(h.t, func() bool { return h.state(v) == s }, patience(h.t), time.Millisecond, "%v", s)
}

// reported is the next asynchronous error, one of that VI that no Descriptor belongs to: all of what the handler is
// told.
func (h *viHost) reported(v *vipl.Vi, code vipl.ErrorCode, op vipl.Status) {
	h.told(vipl.ErrorDescriptor{ViHandle: v, OpCode: op, ResourceCode: vipl.ResourceVi, ErrorCode: code})
}

// told is the next asynchronous error, whatever it belongs to on the NIC.
func (h *viHost) told(want vipl.ErrorDescriptor) {
	want.NicHandle = h.nic
	e := receive(h.t, h.errors, "nothing came")
	codes := func(e *vipl.ErrorDescriptor) string {
		return fmt.Sprintf("%v (%v, %v)", e.ErrorCode, e.ResourceCode, e.OpCode)
	}
	require.Equal(h.t, codes(&want), codes(&e), "error code, resource code and operation")
	for name, same := range map[string]bool{
		"NIC": want.NicHandle == e.NicHandle, "VI": want.ViHandle == e.ViHandle,
		"CQ": want.CQHandle == e.CQHandle, "Descriptor": want.DescriptorPtr == e.DescriptorPtr,
	} {
		require.True(h.t, same, "the %s of %v", name, &e)
	}
}

// usage is what is in use on the NIC.
func (h *viHost) usage() vipl.Usage {
	u := must(h.nic.QuerySystemManagementInfo(vipl.SystemInfoUsage))(h.t)
	return *u.(*vipl.Usage)
}

// viCode says that an error is of a code of the appendix.
func viCode(t *conformance.T, want vipl.Return, err error, what string) {
	require.True(t, errors.Is(err, want), "%s: %v, want %v", what, err, want)
}

// viPair is two connected VIs, each of a NIC of its own.
type viPair struct {
	a, b   *viHost
	va, vb *vipl.Vi
}

func newVIPair(t *conformance.T, level vipl.ReliabilityLevel) *viPair {
	p := &viPair{a: newVIHost(t, vipl.Config{}), b: newVIHost(t, vipl.Config{})}
	p.va, p.vb = p.a.vi(level), p.b.vi(level)
	connectVIs(p.a, p.va, p.b, p.vb)
	return p
}

// connectVIs connects two VIs, the second one being the server.
func connectVIs(a *viHost, va *vipl.Vi, b *viHost, vb *vipl.Vi) {
	done := serveVI(b, vb, "server")
	require.NoError(a.t, second(va.ConnectRequest(a.t.Context(), a.address("client"), b.address("server"))), "ConnectRequest")
	require.NoError(a.t, <-done, "ConnectAccept")
}

// viTransfer is what SetSend, SetRdmaWrite and SetRdmaRead make of a Descriptor.
var viTransfers = []struct {
	name string
	op   uint32 // in the status
	set  func(d *vipl.Descriptor, at vipl.AddressSegment, data ...vipl.DataSegment)
}{
	{"Send", 0, func(d *vipl.Descriptor, _ vipl.AddressSegment, data ...vipl.DataSegment) { d.SetSend(data...) }},
	{"RDMA Write", viOpWrite, (*vipl.Descriptor).SetRdmaWrite},
	{"RDMA Read", viOpRead, (*vipl.Descriptor).SetRdmaRead},
}
