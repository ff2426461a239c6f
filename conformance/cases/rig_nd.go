package cases

import (
	"encoding/binary"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// ndRig is a host whose queue pair is connected with a raw peer: what it asks for is
// answered when the case says so.
type ndRig struct {
	*ndHost
	peer *rig
	t    *conformance.T
}

func newNDRig(t *conformance.T, s ndShape) *ndRig {
	h := newNDHost(t, s)
	addr, accepted := h.listen(h.qp, h.conn)
	var d net.Dialer
	nc := must(d.DialContext(t.Context(), "tcp", addr.String()))(t, "a TCP connection to the adapter")
	t.Cleanup(func() { _ = nc.Close() })
	p := &rig{subject: &subject{t: t}, play: conformance.Initiator, conn: t.Trace().Conn(nc)}
	p.initiate(startup{CRC: true, Rev: 2, Enhanced: true, IRD: 64, ORD: 64})
	require.NoError(t, accepted.GetOverlappedResult(true), "Accept")
	p.settled() // the queue pair may send from here on, and does so at once
	return &ndRig{ndHost: h, peer: p, t: t}
}

// ndPeerMemory is what the peer says it has.
var ndPeerMemory = ndRemote{0x1000, 0x0BADCAFE}

// pendingRead posts a Read of 8 octets into mem from off on, and returns what answers
// it. The octets there are cleared: those of the answer differ.
func (r *ndRig) pendingRead(context any, off int) (answer []byte) {
	clear(r.mem[off : off+8])
	require.NoError(r.t, r.qp.Read(context, r.list(off, 8), ndPeerMemory.at, ndPeerMemory.token, 0), "Read")
	return r.readRequest("fetched!")
}

// readRequest reads the request for a Read of so many octets, and is the answer.
func (r *ndRig) readRequest(payload string) (answer []byte) {
	u := r.peer.next()
	require.Len(r.t, u, 46, "an RDMA Read Request")
	require.Equal(r.t, byte(opReadRequest), u[1], "an RDMA Read Request")
	be := binary.BigEndian
	require.Equal(r.t, uint32(len(payload)), be.Uint32(u[30:]), "its size")
	require.Equal(r.t, ndPeerMemory, ndRemote{be.Uint64(u[38:]), be.Uint32(u[34:])}, "its source")
	return aReadResponse(be.Uint32(u[18:]), be.Uint64(u[22:]), []byte(payload))
}

// fetch has the peer read n octets.
func (r *ndRig) fetch(from ndRemote, n int) []byte {
	r.asks(from, n)
	got, _ := r.peer.taggedMessage(opReadResponse, nowhere, nowhereTO)
	return got
}

// asks has the peer send a request to read.
func (r *ndRig) asks(from ndRemote, n int) {
	r.peer.send(aReadRequest(r.peer.nextRead(), read{nowhere, nowhereTO, uint32(n), from.token, from.at}))
}

// opened is what ndBind opens.
func (r *ndRig) opened() ndRemote { return ndRemote{r.at(ndOpen), r.window.GetRemoteToken()} }

// canceled waits for results of requests that were flushed: of the Initiator queue, and
// then of Receives.
func (r *ndRig) canceled(requests []nd2.RequestType, receives int) {
	for i, typ := range requests {
		r.done(i, typ, nd2.ErrCanceled)
	}
	for i := range receives {
		r.done(i, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	r.none()
}
