package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// va9 is what the error handler is told: VI Architecture 9.9.1, 9.10.3.
var va9 = []conformance.Case{
	apiCase("9.9.1/error-descriptors", viErrorDescriptors, "VA-7-S1", "PA-9.9.1-M1", "PA-9.9.1-M2"),
}

// viErrorDescriptors has each asynchronous error that can be made to happen tell the handler all of its descriptor:
// the NIC, the VI, the Descriptor if it is about one, the operation, the resource and the error.
func viErrorDescriptors(t *conformance.T) {
	for c := range inTurn(t, "%s", []struct {
		name   string
		happen func(*viRig) *vipl.Descriptor
		op     vipl.Status
		what   vipl.ResourceCode
		code   vipl.ErrorCode
	}{
		{"a message without a receive", func(r *viRig) *vipl.Descriptor {
			r.send("")
			return nil
		}, viOpReceive, vipl.ResourceVi, vipl.ErrorRecvQEmpty},
		{"an RDMA Write to nowhere", func(r *viRig) *vipl.Descriptor {
			r.rdmaWrite(viRDMA{1, 1, 8}, "no right")
			return nil
		}, viOpRemoteWrite, vipl.ResourceVi, vipl.ErrorRdmaWProt},
		{"an RDMA Write in part", func(r *viRig) *vipl.Descriptor {
			r.put(r.message(viSegment{kind: viWrite, rdma: r.at(0, 8), payload: []byte("half")}))
			r.put(viSegment{kind: viWrite, flags: viLast | viError, number: r.number, offset: 4, rdma: r.at(0, 8)})
			return nil
		}, viOpRemoteWrite, vipl.ResourceVi, vipl.ErrorRdmaWAbort},
		{"an RDMA Read from nowhere", func(r *viRig) *vipl.Descriptor {
			r.rdmaRead(viRDMA{1, 1, 8})
			return nil
		}, viOpRead, vipl.ResourceVi, vipl.ErrorRdmaRProt},
		{"a lost connection", func(r *viRig) *vipl.Descriptor {
			_ = r.conn.Close()
			return nil
		}, 0, vipl.ResourceVi, vipl.ErrorConnLost},
		{"a Send too many", func(r *viRig) *vipl.Descriptor {
			return r.tooMany(r.v.PostSend, func(d *vipl.Descriptor) { d.SetSend() })
		}, 0, vipl.ResourceVi, vipl.ErrorViOverrun},
		{"an RDMA Write too many", func(r *viRig) *vipl.Descriptor {
			return r.tooMany(r.v.PostSend, func(d *vipl.Descriptor) { d.SetRdmaWrite(vipl.AddressSegment{}) })
		}, viOpWrite, vipl.ResourceVi, vipl.ErrorViOverrun},
		{"a receive too many", func(r *viRig) *vipl.Descriptor {
			return r.tooMany(r.v.PostRecv, func(d *vipl.Descriptor) { d.SetRecv() })
		}, viOpReceive, vipl.ResourceVi, vipl.ErrorViOverrun},
		{"a Send that is not in registered memory", func(r *viRig) *vipl.Descriptor {
			d := new(vipl.Descriptor)
			d.SetSend()
			viCode(t, vipl.ErrInvalidParameter, r.v.PostSend(d, r.dh), "PostSend")
			return d
		}, 0, vipl.ResourceDescriptor, vipl.ErrorPostDesc},
		{"a receive that is not in registered memory", func(r *viRig) *vipl.Descriptor {
			d := new(vipl.Descriptor)
			d.SetRecv()
			viCode(t, vipl.ErrInvalidParameter, r.v.PostRecv(d, r.dh), "PostRecv")
			return d
		}, viOpReceive, vipl.ResourceDescriptor, vipl.ErrorPostDesc},
	}) {
		r := newVIRig(t, viSetup{level: vipl.ServiceReliableDelivery, nic: vipl.Config{MaxDescriptorsPerQueue: 2}})
		d := c.happen(r)
		got := receive(t, r.errors, "the error handler is not called")
		got.LocalAddr, got.RemoteAddr, got.Err = nil, nil, nil // what the document does not know
		require.Equal(t, []any{c.code, c.what, c.op}, []any{got.ErrorCode, got.ResourceCode, got.OpCode}, "what the error is")
		want := vipl.ErrorDescriptor{
			NicHandle: r.nic, ViHandle: r.v, DescriptorPtr: d, OpCode: c.op, ResourceCode: c.what, ErrorCode: c.code,
		}
		require.True(t, got == want, "the handles: NIC %v, VI %v, no CQ %v, Descriptor %v",
			got.NicHandle == r.nic, got.ViHandle == r.v, got.CQHandle == nil, got.DescriptorPtr == d)
	}
}

// tooMany posts three Descriptors to a queue for two.
func (r *viRig) tooMany(post func(*vipl.Descriptor, vipl.MemHandle) error, set func(*vipl.Descriptor)) (d *vipl.Descriptor) {
	for i := range 3 {
		d = r.desc()
		set(d)
		err := post(d, r.dh)
		require.Equal(r.t, i < 2, err == nil, "Descriptor %d: %v", i, err)
	}
	return d
}
