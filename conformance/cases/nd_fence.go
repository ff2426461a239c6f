package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// ndFence is ND_OP_FLAG_READ_FENCE, of each request.
var ndFence = []conformance.Case{
	apiCase("Send/nd-read-fence", ndWith(ndSend, ndFenced), "ND-Send-F2"),
	apiCase("Write/nd-read-fence", ndWith(ndWrite, ndFenced), "ND-Write-F2"),
	apiCase("Read/nd-read-fence", ndReadFenced, "ND-Read-F2"),
	apiCase("Bind/nd-read-fence", ndBindFenced, "ND-Bind-F2"),
	apiCase("Invalidate/nd-read-fence", onNDRig(ndInvalidateFenced), "ND-Invalidate-F2"),
}

// ndFenced sends on what two Reads fetch, which the peer answers late.
func ndFenced(t *conformance.T, m ndMethod) {
	r := newNDRig(t, ndShape{})
	first, second := r.pendingRead(0, 0), r.pendingRead(1, 8)
	require.NoError(t, m.post(r.ndHost, 2, r.list(0, 16), ndPeerMemory, nd2.OpFlagReadFence))
	r.peer.settled()
	r.peer.send(first)
	r.done(0, nd2.RequestTypeRead, nd2.Success)
	r.peer.settled()
	r.peer.send(second)
	want := aSend(1, []byte("fetched!fetched!"))
	if m.typ == nd2.RequestTypeWrite {
		want = aWrite(ndPeerMemory.token, ndPeerMemory.at, []byte("fetched!fetched!"))
	}
	r.peer.expect(want)
	r.done(1, nd2.RequestTypeRead, nd2.Success)
	r.done(2, m.typ, nd2.Success)
}

// ndReadFenced reads while a Read is under way: with the fence later, without it at
// once.
func ndReadFenced(t *conformance.T) {
	for flags := range inTurn(t, "flags %d", []nd2.OpFlags{0, nd2.OpFlagReadFence}) {
		r := newNDRig(t, ndShape{})
		first := r.pendingRead(0, 0)
		require.NoError(t, r.qp.Read(1, r.list(8, 3), ndPeerMemory.at, ndPeerMemory.token, flags))
		var second []byte
		if flags == 0 {
			second = r.readRequest("new")
			r.peer.send(first)
		} else {
			r.peer.settled()
			r.peer.send(first)
			second = r.readRequest("new")
		}
		r.peer.send(second)
		r.done(0, nd2.RequestTypeRead, nd2.Success)
		r.done(1, nd2.RequestTypeRead, nd2.Success)
		require.Equal(t, "fetched!new", string(r.mem[:11]))
	}
}

// ndBindFenced binds a window while a Read is under way, and has the peer use it: once
// before the Read has its answer, and once behind that.
func ndBindFenced(t *conformance.T) {
	for early := range inTurn(t, "used early: %v", []bool{true, false}) {
		r := newNDRig(t, ndShape{})
		answer := r.pendingRead(0, 0)
		require.NoError(t, bindND(r.ndHost, 1, nd2.OpFlagReadFence))
		if early {
			r.asks(r.opened(), 8)
			r.peer.terminatedAs(0x0100)
			_ = r.peer.peer.Close()
			r.canceled([]nd2.RequestType{nd2.RequestTypeRead, nd2.RequestTypeBind}, 0)
			continue
		}
		r.peer.send(answer)
		r.done(0, nd2.RequestTypeRead, nd2.Success)
		r.done(1, nd2.RequestTypeBind, nd2.Success)
		require.Equal(t, r.mem[ndOpen:][:ndOpenLen], r.fetch(r.opened(), ndOpenLen))
	}
}

// ndInvalidateFenced invalidates a window while a Read is under way: until that has its
// answer the peer can use the window.
func ndInvalidateFenced(t *conformance.T, r *ndRig) {
	ndInvalidate.prepare(r.ndHost)
	answer := r.pendingRead(0, 0)
	require.NoError(t, invalidateND(r.ndHost, 1, nd2.OpFlagReadFence))
	require.Equal(t, r.mem[ndOpen:][:ndOpenLen], r.fetch(r.opened(), ndOpenLen))
	r.peer.send(answer)
	r.done(0, nd2.RequestTypeRead, nd2.Success)
	r.done(1, nd2.RequestTypeInvalidate, nd2.Success)
	r.asks(r.opened(), 1)
	r.peer.terminatedAs(0x0100)
}
