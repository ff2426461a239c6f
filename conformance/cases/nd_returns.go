package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// ndReturns is what the methods return.
var ndReturns = []conformance.Case{
	apiCase("Send/nd-success", ndWith(ndSend, ndSuccess), "ND-Send-R1"),
	apiCase("Write/nd-success", ndWith(ndWrite, ndSuccess), "ND-Write-R1"),
	apiCase("Read/nd-success", ndWith(ndRead, ndSuccess), "ND-Read-R1"),
	apiCase("Bind/nd-success", ndWith(ndBind, ndSuccess), "ND-Bind-R1"),
	apiCase("Invalidate/nd-success", ndWith(ndInvalidate, ndSuccess), "ND-Invalidate-R1"),
	apiCase("Receive/nd-success", ndReceiveSuccess, "ND-Receive-R1"),
	apiCase("Send/nd-not-connected", ndWith(ndSend, ndNotConnected), "ND-Send-R2"),
	apiCase("Write/nd-not-connected", ndWith(ndWrite, ndNotConnected), "ND-Write-R2"),
	apiCase("Read/nd-not-connected", ndWith(ndRead, ndNotConnected), "ND-Read-R2"),
	apiCase("Bind/nd-not-connected", ndWith(ndBind, ndNotConnected), "ND-Bind-R2"),
	apiCase("Invalidate/nd-not-connected", ndWith(ndInvalidate, ndNotConnected), "ND-Invalidate-R2"),
	apiCase("Send/nd-too-much-data", ndTooMuchData, "ND-Send-R3", "ND-Write-R3", "ND-Read-R3", "ND-Receive-R2"),
	apiCase("Send/nd-list-too-long", ndWith(ndSend, ndListTooLong), "ND-Send-R5"),
	apiCase("Write/nd-list-too-long", ndWith(ndWrite, ndListTooLong), "ND-Write-R5"),
	apiCase("Read/nd-list-too-long", ndWith(ndRead, ndListTooLong), "ND-Read-R5"),
	apiCase("Receive/nd-list-too-long", ndReceiveListTooLong, "ND-Receive-R4"),
	{Name: "Send/nd-invalid-flags", Keys: []string{"ND-Send-R6"}, Need: conformance.NeedAPI, Run: func(t *conformance.T) {
		ndInvalidFlags(t, ndSend, nd2.ErrInvalidParameter4, nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite)
	}},
	{Name: "Write/nd-invalid-flags", Keys: []string{"ND-Write-R6"}, Need: conformance.NeedAPI, Run: func(t *conformance.T) {
		ndInvalidFlags(t, ndWrite, nd2.ErrInvalidParameter6, nd2.OpFlagAllowRead, nd2.OpFlagAllowWrite, nd2.OpFlagSendAndSolicitEvent)
	}},
}

// ndSuccess posts a request, and takes its result.
func ndSuccess(t *conformance.T, m ndMethod) {
	a, b := newNDPair(t, ndShape{})
	b.receive(0, 0, 8)
	m.prepare(a)
	context := &struct{ name string }{"mine"}
	require.NoError(t, m.post(a, context, a.list(0, 8), b.remote(0), 0))
	a.done(context, m.typ, nd2.Success)
	a.none()
}

// ndReceiveSuccess receives messages of all sizes that fit, in the order of the Receives.
func ndReceiveSuccess(t *conformance.T) {
	a, b := newNDPair(t, ndShape{})
	for _, n := range []int{0, 1, 99, 100} {
		clear(b.mem[:200])
		b.receive(n, 0, 100)
		b.receive(1000+n, 100, 100)
		require.NoError(t, a.qp.Send(0, a.list(1000, n), nd2.OpFlagSilentSuccess))
		b.received(n, n)
		b.none()
		want := make([]byte, 200)
		copy(want, a.mem[1000:1000+n])
		require.Equal(t, want, b.mem[:200])
		require.NoError(t, a.qp.Send(0, nil, nd2.OpFlagSilentSuccess))
		b.received(1000+n, 0)
	}
}

// ndNotConnected posts before there is a connection, while there is one to be completed,
// and after its end, whoever ended it.
func ndNotConnected(t *conformance.T, m ndMethod) {
	for _, end := range named(t, "%s", map[string]func(a, b *ndHost){
		"the peer disconnects": func(_, b *ndHost) { require.NoError(t, b.conn.Disconnect(t.Context())) },
		"disconnected":         func(a, _ *ndHost) { require.NoError(t, a.conn.Disconnect(t.Context())) },
		"flushed":              func(a, _ *ndHost) { require.NoError(t, a.qp.Flush()) },
	}) {
		a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
		refused := func(when string) {
			require.ErrorIs(t, m.post(a, 1, a.list(0, 8), b.remote(0), 0), nd2.ErrConnectionInvalid, when)
		}
		refused("never connected")
		addr, accepted := b.listen(b.qp, b.conn)
		require.NoError(t, a.conn.Connect(t.Context(), a.qp, addr, 1, 1, nil))
		refused("before CompleteConnect")
		require.NoError(t, a.conn.CompleteConnect(t.Context()))
		require.NoError(t, accepted.GetOverlappedResult(true))
		m.prepare(a)
		end(a, b)
		require.NoError(t, a.conn.NotifyDisconnect(t.Context()))
		refused("after the end")
		a.none()
	}
}

// ndTooMuchData names an octet more than a message can have. Nobody looks at them.
func ndTooMuchData(t *conformance.T) {
	a, b := newNDPair(t, ndShape{sge: 8})
	most := a.adapter.Query().MaxTransferLength
	piece := make([]byte, most/8+1)
	list := make([]nd2.SGE, 8)
	for i := range list {
		list[i] = nd2.SGE{Buffer: piece, MemoryRegionToken: a.region.GetLocalToken()}
	}
	for _, m := range ndTransfers {
		require.ErrorIs(t, m.post(a, 1, list, b.remote(0), 0), nd2.ErrBufferOverflow, m.name)
	}
	require.ErrorIs(t, a.qp.Receive(1, list), nd2.ErrBufferOverflow)
	ndWorks(a, b)
	ndSync(b, a)
}

// ndEntries is a list of n entries of 2 octets each.
func (h *ndHost) ndEntries(n int) (list []nd2.SGE) {
	for i := range n {
		list = append(list, h.list(100+2*i, 2)...)
	}
	return list
}

// ndListTooLong posts a list as long as it may be, and one entry more.
func ndListTooLong(t *conformance.T, m ndMethod) {
	for _, most := range []int{1, 3, 8} {
		a, b := newNDPair(t, ndShape{sge: most})
		require.ErrorIs(t, m.post(a, 1, a.ndEntries(most+1), b.remote(0), 0), nd2.ErrDataOverrun)
		ndWorks(a, b)
		b.receive(1, 0, 100)
		require.NoError(t, m.post(a, 2, a.ndEntries(most), b.remote(0), 0))
		a.done(2, m.typ, nd2.Success)
	}
}

// ndReceiveListTooLong is ndListTooLong for Receives.
func ndReceiveListTooLong(t *conformance.T) {
	for _, most := range []int{1, 3, 32} {
		a, b := newNDPair(t, ndShape{sge: most})
		require.ErrorIs(t, b.qp.Receive(1, b.ndEntries(most+1)), nd2.ErrDataOverrun)
		require.NoError(t, b.qp.Receive(2, b.ndEntries(most)))
		require.NoError(t, a.qp.Send(3, a.list(0, 2*most), 0))
		b.received(2, 2*most)
		require.Equal(t, a.mem[:2*most], b.mem[100:][:2*most])
	}
}

// ndInvalidFlags passes a method flags of others, and those that are none.
func ndInvalidFlags(t *conformance.T, m ndMethod, want nd2.Status, bad ...nd2.OpFlags) {
	a, b := newNDPair(t, ndShape{})
	for flag := nd2.OpFlagInline << 1; flag != 0; flag <<= 1 {
		bad = append(bad, flag)
	}
	for _, flags := range bad {
		for _, good := range []nd2.OpFlags{0, nd2.OpFlagSilentSuccess, nd2.OpFlagReadFence | nd2.OpFlagInline} {
			require.ErrorIs(t, m.post(a, 1, a.list(0, 8), b.remote(0), flags|good), want, "flags %#x", uint32(flags|good))
		}
	}
	ndWorks(a, b)
}
