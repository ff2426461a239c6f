package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

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
