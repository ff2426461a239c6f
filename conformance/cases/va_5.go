package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/vipl"
)

// va5 is the states of a VI, and what does not go together: VI Architecture 5.
var va5 = []conformance.Case{
	apiCase("5/vi-calls-out-of-state", viOutOfState, "VA-5-M1", "PA-5.2-M1", "PA-9.3.2-M1"),
	apiCase("5.2/vi-pending-is-silent", viPendingSilent, "VA-5.2-M1", "PA-5.1-M1", "PA-5.2-M5", "PA-5.2-M6"),
	apiCase("8.1/vi-forward-together", viForwardTogether, "VA-8.1-M2"),
}

// viOutOfState calls what the state does not allow, in each state.
func viOutOfState(t *conformance.T) {
	refused := func(h *viHost, v *vipl.Vi, s vipl.ViState) {
		t.Part("%v", s)
		require.Equal(t, s, h.state(v))
		viCode(t, vipl.ErrInvalidParameter, second(v.ConnectRequest(t.Context(), nil, h.address("nobody"))), "ConnectRequest")
		viCode(t, vipl.ErrInvalidParameter, v.ConnectPeerRequest(t.Context(), nil, h.address("nobody")), "ConnectPeerRequest")
		a := h.attributes(vipl.ServiceUnreliable)
		viCode(t, vipl.ErrInvalidParameter, v.SetViAttributes(&a), "SetViAttributes")
		viCode(t, vipl.ErrResource, v.DestroyVi(), "DestroyVi")
		p, ce := dialVI(t, h), viPeerCE(vipl.ServiceReliableDelivery, "extra")
		p.asks(ce)
		c := must(h.nic.ConnectWait(t.Context(), h.address("extra")))(t)
		viCode(t, vipl.ErrInvalidParameter, c.ConnectAccept(v), "ConnectAccept")
		require.NoError(t, c.ConnectReject())
		require.Equal(t, s, h.state(v), "nothing has changed")
	}
	pending := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	refused(pending.viHost, pending.v, vipl.StateConnectPending)
	require.NoError(t, pending.answers(pending.agrees()), "and it goes on")
	refused(pending.viHost, pending.v, vipl.StateConnected)
	require.NoError(t, pending.conn.Close())
	pending.becomes(pending.v, vipl.StateError)
	refused(pending.viHost, pending.v, vipl.StateError)
	require.NoError(t, pending.v.Disconnect())
	a := pending.attributes(vipl.ServiceUnreliable)
	require.NoError(t, pending.v.SetViAttributes(&a))
	require.NoError(t, pending.v.DestroyVi())
}

// viPendingSilent posts to a VI whose ConnectRequest is not answered, and sends to it.
func viPendingSilent(t *conformance.T) {
	r := newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	require.Equal(t, vipl.StateConnectPending, r.state(r.v))
	waiting := r.recv(r.v, r.data(0, 8))
	for _, tr := range viTransfers {
		d := r.desc()
		tr.set(d, r.remote(0), r.data(0, 1))
		r.sent(r.v, r.post(r.v, d), viDone|viFlushed|tr.op)
	}
	r.notDone(r.v.RecvDone)
	require.NoError(t, r.answers(r.agrees()))
	r.sends(r.v, r.data(7, 1))
	require.Equal(t, r.mem[7:8], r.get(viSend).payload, "the first that is sent")
	r.send("now")
	r.received(r.v, waiting, viDone|viOpReceive)

	t.Part("data instead of an answer")
	r = newVICaller(t, vipl.ServiceReliableDelivery, vipl.Config{})
	waiting = r.recv(r.v, r.data(0, 8))
	before := string(r.mem)
	early := r.message(viSegment{kind: viSend, flags: viLast, payload: []byte("too early")})
	_, _ = r.conn.Write(early.octets(false)) // the VI may hang up on the header
	require.Error(t, take(t, r.done), "ConnectRequest")
	if waiting.Done() {
		require.NotZero(t, waiting.Control.Status.Errors(), "the receive")
	}
	require.Equal(t, before, string(r.mem))
}

// viForwardTogether sends on 64 connections of a NIC while one does not get rid of its
// data.
func viForwardTogether(t *conformance.T) {
	stuck := newVIRig(t, viSetup{
		level: vipl.ServiceReliableDelivery,
		vi:    func(a *vipl.ViAttributes) { a.MaxTransferSize = 1 << 25 },
		ce:    func(c *viCE) { c.mtu = 1 << 25 },
	})
	h := stuck.viHost
	mem := make([]byte, 1<<25) // more than TCP takes off
	handle := h.register(mem, vipl.MemAttributes{Ptag: h.ptag})
	h.sends(stuck.v, vipl.DataSegment{Data: vipl.AddressOf(mem), Handle: handle, Length: 1 << 25})
	stuck.next()
	type end struct {
		*viPeer
		v *vipl.Vi
	}
	var ends []end
	for range 64 {
		e := end{dialVI(t, h), h.vi(vipl.ServiceReliableDelivery)}
		done := serveVI(h, e.v, "server")
		ce := viPeerCE(vipl.ServiceReliableDelivery, "server")
		e.connects(ce, done)
		ends = append(ends, e)
	}
	for range 5 {
		for i, e := range ends {
			d := h.recv(e.v, h.data(8*i, 8))
			s := h.sends(e.v, h.data(8*i, 8))
			e.get(viSend)
			e.send("forward!")
			h.received(e.v, d, viDone|viOpReceive)
			h.sent(e.v, s, viDone)
		}
	}
	h.notDone(stuck.v.SendDone)
}
