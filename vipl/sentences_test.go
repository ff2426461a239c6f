package vipl

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/docgen"
)

// sentence is a mistake, and what the program is told of it.
type sentence struct {
	mistake string
	make    func() error
	code    error
	says    string
}

// TestSentences makes the mistakes that a program can, and reads what it is told: all sentences of this package, but for
// those that are excused with a reason.
func TestSentences(t *testing.T) {
	h, other := newHost(t, Config{}), newHost(t, Config{})
	ptag, err := h.nic.CreatePtag()
	require.NoError(t, err)
	tied := h.cq(4)
	busy := h.vi(ServiceReliableDelivery, tied, tied)
	posted := h.vi(0, nil, nil)
	require.NoError(t, posted.PostRecv(h.desc(), h.dh))
	goneVi, goneCQ := h.vi(0, nil, nil), h.cq(1)
	require.NoError(t, goneVi.DestroyVi())
	require.NoError(t, goneCQ.DestroyCQ())
	closed := newHost(t, Config{})
	require.NoError(t, closed.nic.CloseNic())
	small := newHost(t, Config{MaxDescriptorsPerQueue: 1})
	full := small.vi(0, nil, nil)
	require.NoError(t, full.PostRecv(small.desc(), small.dh))
	p := newPair(t, ServiceReliableDelivery, Config{})
	here := h.address("x")
	open := func(device string, c Config) error { return second(OpenNic(device, c)) }
	vi := func(change func(a *ViAttributes)) func() error {
		return func() error {
			a := h.attributes(ServiceReliableDelivery)
			change(a)
			return second(h.nic.CreateVi(a, nil, nil))
		}
	}
	ask := func(local, remote *NetAddress) error {
		return second(h.vi(0, nil, nil).ConnectRequest(within(t), local, remote))
	}
	var errs []error
	for _, s := range []sentence{
		{"a transfer size that is too small", func() error { return open("127.0.0.1:0", Config{MaxTransferSize: 1}) }, ErrInvalidParameter, "a maximum transfer size of 1 is below 32 KiB"},
		{"a queue of less than nothing", func() error { return open("127.0.0.1:0", Config{MaxDescriptorsPerQueue: -1}) }, ErrInvalidParameter, "a queue has 1 to 32768 descriptors, not -1"},
		{"a segment that is too short", func() error { return open("127.0.0.1:0", Config{Segment: 1}) }, ErrInvalidParameter, "a segment has "},
		{"no such port", func() error { return open("127.0.0.1:x!", Config{}) }, ErrInvalidParameter, `"127.0.0.1:x!": lookup`},
		{"no such device", func() error { return open("no such device", Config{}) }, ErrInvalidParameter, `"no such device" is neither an address nor an interface nor a host`},
		{"no port to connect to", func() error { return second(ResolveNetAddress(t.Context(), "localhost:0", nil)) }, ErrInvalidParameter, `"localhost:0": "0" is no port to connect to`},
		{"a closed NIC", func() error { return second(closed.nic.CreatePtag()) }, ErrInvalidParameter, "the NIC is closed"},
		{"a tag that is none", func() error { return h.nic.DestroyPtag(ptag + 1000) }, ErrInvalidParameter, "there is no protection tag "},
		{"a tag in use", func() error { return h.nic.DestroyPtag(h.ptag) }, ErrInUse, "VIs and memory regions have protection tag "},
		{"a VI of a tag that is none", vi(func(a *ViAttributes) { a.Ptag += 1000 }), ErrInvalidPtag, "there is no protection tag "},
		{"no memory", func() error { return second(h.nic.RegisterMem(nil, &MemAttributes{Ptag: ptag})) }, ErrInvalidParameter, "a memory region needs an octet at least, and attributes"},
		{"no such memory", func() error { return h.nic.DeregisterMem(AddressOf(h.mem), h.handle+1) }, ErrInvalidParameter, "no memory region 0x"},
		{"no attributes of memory", func() error { return h.nic.SetMemAttributes(AddressOf(h.mem), h.handle, nil) }, ErrInvalidParameter, "no attributes"},
		{"no Descriptors", func() error { return second(h.nic.RegisterDescriptors(nil, ptag)) }, ErrInvalidParameter, "no descriptors"},
		{"RDMA to Descriptors", func() error {
			return h.nic.SetMemAttributes(AddressOf(h.descs), h.dh, &MemAttributes{Ptag: h.ptag, EnableRdmaWrite: true})
		}, ErrInvalidParameter, "no RDMA for memory of descriptors"},
		{"a CQ of nothing", func() error { return second(h.nic.CreateCQ(0)) }, ErrInvalidParameter, "a completion queue of 0 entries"},
		{"a CQ too long", func() error { return second(h.nic.CreateCQ(maxCQEntries + 1)) }, ErrResource, "a completion queue has 1048576 entries at most"},
		{"a CQ in use", tied.DestroyCQ, ErrInUse, "2 work queues are tied to the completion queue: destroy their VIs first"},
		{"a CQ that is gone", goneCQ.DestroyCQ, ErrInvalidParameter, "the completion queue is destroyed"},
		{"no handler of a CQ", func() error { return tied.CQNotify(nil) }, ErrInvalidParameter, "no handler"},
		{"another NIC's CQ", func() error { return second(h.nic.CreateVi(h.attributes(0), other.cq(1), nil)) }, ErrInvalidParameter, "a completion queue that is not of this NIC, or destroyed"},
		{"no attributes of a VI", func() error { return second(h.nic.CreateVi(nil, nil, nil)) }, ErrInvalidParameter, "no attributes"},
		{"no such level", vi(func(a *ViAttributes) { a.ReliabilityLevel = numLevels }), ErrInvalidReliabilityLevel, "there is no "},
		{"a transfer size of nothing", vi(func(a *ViAttributes) { a.MaxTransferSize = 0 }), ErrInvalidMTU, "0, not within 1 to "},
		{"quality of service", vi(func(a *ViAttributes) { a.QoS = 1 }), ErrInvalidQoS, "there is only best effort, 0"},
		{"RDMA Read at Unreliable Delivery", vi(func(a *ViAttributes) { a.ReliabilityLevel = ServiceUnreliable }), ErrInvalidRdmaRead, " at "},
		{"a VI that is connected", p.va.DestroyVi, ErrInUse, "the VI is Connected: Disconnect it first"},
		{"a VI with Descriptors", posted.DestroyVi, ErrInUse, "there are descriptors on the work queues: dequeue them"},
		{"a VI that is gone", goneVi.Disconnect, ErrInvalidParameter, "the VI is destroyed"},
		{"a wait at a queue of a CQ", func() error { return second(busy.RecvWait(t.Context())) }, ErrResource, "the work queue is tied to a completion queue: wait there"},
		{"a Descriptor that is none", func() error { return posted.PostSend(nil, h.dh) }, ErrInvalidParameter, "no descriptor"},
		{"a Descriptor elsewhere", func() error { return posted.PostSend(new(Descriptor), h.dh) }, ErrInvalidParameter, "the descriptor is not in the memory region of the handle, or that is not for this VI"},
		{"a full queue", func() error { return full.PostRecv(small.desc(), small.dh) }, ErrResource, "the work queue is full: dequeue what has completed"},
		{"no address", func() error { return ask(nil, nil) }, ErrInvalidParameter, "no address"},
		{"half an address", func() error { return ask(nil, &NetAddress{HostAddress: []byte{1, 2, 3}}) }, ErrInvalidParameter, "a host address has 4 or 16 octets, and 2 more with a port, not 3"},
		{"a long discriminator", func() error {
			return ask(nil, &NetAddress{HostAddress: here.HostAddress, Discriminator: make([]byte, MaxDiscriminator+1)})
		}, ErrInvalidParameter, "octets at most, not "},
		{"an address of another", func() error { return ask(&NetAddress{HostAddress: []byte{192, 0, 2, 1}}, here) }, ErrInvalidParameter, " is not an address of this NIC"},
		{"a peer that nobody asked for", func() error { return second(goneVi.ConnectPeerDone()) }, ErrInvalidParameter, "no ConnectPeerRequest has been made, or its end has been told"},
		{"no such kind", func() error { return second(h.nic.QuerySystemManagementInfo(SystemInfoUsage + 1)) }, ErrInvalidParameter, "no system management information "},
	} {
		t.Run(s.mistake, func(t *testing.T) {
			err := s.make()
			require.ErrorIs(t, err, s.code)
			assert.Contains(t, err.Error(), s.says)
			assert.Regexp(t, "^vipl: ", err.Error())
			assert.Less(t, len(err.Error()), 300)
			errs = append(errs, err)
		})
	}
	docgen.Provoked(t, docgen.Sentences(t, "invalid", "inUse", "resource"), errs, map[string]string{
		"%d completion queues are in use":               "needs 16,384 of them",
		"%d VIs are in use":                             "needs 16,384 of them",
		"%d protection tags are in use":                 "needs 65,536 of them",
		"%d memory regions are registered":              "needs 65,536 of them",
		"addresses of %s: %v":                           "needs a system that does not tell",
		"interface %s has no address":                   "needs an interface without one",
		"%q is another host: it has %v":                 "needs a name server",
		"pages at %#x are not there, or cannot be read": "TestVanish and TestReadOnly have pages",
		"pages at %#x are read-only: no RDMA Writes":    "the same",
		"there are %d entries on the completion queue":  "needs traffic: TestResizeCQ",
		"the VI was disconnected meanwhile":             "needs two calls at once: TestTwiceAtOnce",
		"the connection request has been answered":      "needs a peer: TestRefused",
		"a VI of another NIC, or none":                  "needs a peer: TestRefused",
	})
}

// second is the error of a call that returns something else as well.
func second[T any](_ T, err error) error { return err }
