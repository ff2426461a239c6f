package cases

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/nd2"
)

// guardsND are the same of NetworkDirect.
var guardsND = []conformance.Case{
	apiCase("Flush/nd-before-the-connection", ndFlushedFirst, "ND-Flush-R1", "ND-Flush-M1"),
	apiCase("Receive/nd-resized-behind-a-notification", onNDRig(ndResizedBehindNotify), "ND-Receive-R1"),
	apiCase("Read/nd-silent-ones-count", ndSilentReads, "ND-Read-F1", "ND-Read-R4"),
	apiCase("Receive/nd-closed-behind-the-end", ndClosedBehindTheEnd, "ND-Receive-M1", "ND-Receive-M8"),
	apiCase("Send/nd-waits-of-two-kinds", ndTwoKinds, "ND-Receive-R1", "ND-Send-F3"),
}

// ndFlushedFirst flushes a queue pair that is not connected, with Receives and without: it can be connected then.
func ndFlushedFirst(t *conformance.T) {
	for receives := range inTurn(t, "%d Receives", []int{0, 3}) {
		a, b := newNDHost(t, ndShape{}), newNDHost(t, ndShape{})
		for _, h := range []*ndHost{a, b} {
			for range 2 {
				for i := range receives {
					h.receive(i, 8*i, 8)
				}
				require.NoError(t, h.qp.Flush(), "Flush")
				h.canceledReceives(receives)
			}
		}
		connectND(a, b, b.qp, b.conn)
		ndWorks(a, b)
	}
}

// canceledReceives waits for results of so many Receives that were flushed.
func (h *ndHost) canceledReceives(n int) {
	for i := range n {
		h.done(i, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
	h.none()
}

// ndResizedBehindNotify makes the queue as small as what is left in it of the results that Notify has seen, and no
// smaller.
func ndResizedBehindNotify(t *conformance.T, r *ndRig) {
	const all, left = 6, 2
	for round := range counted(t, "round %d", 2) {
		for i := range all {
			r.receive(i, 8*i, 8)
		}
		for range all {
			r.peer.sendMessage(nil)
		}
		r.peer.settled()
		require.NoError(t, r.in.Notify(t.Context(), nd2.CQNotifyAny), "Notify")
		var got [all]nd2.Result
		require.Equal(t, all-left, r.in.GetResults(got[:all-left]), "GetResults")
		require.ErrorIs(t, r.in.Resize(left-1), nd2.ErrBufferOverflow, "Resize to less than is left")
		require.NoError(t, r.in.Resize(left), "Resize to what is left, in round %d", round)
		require.Equal(t, left, r.in.GetResults(got[:]), "what is left")
		require.NoError(t, r.in.Resize(64), "Resize")
	}
}

// ndSilentReads posts as many silent Reads as the Initiator queue takes, and the peer answers none: there is no
// room for another of any kind. With each answer that is known of there is.
func ndSilentReads(t *conformance.T) {
	const depth = 4
	r := newNDRig(t, ndShape{depth: depth})
	read := func(flags nd2.OpFlags) error {
		return r.qp.Read("read", r.list(0, 8), ndPeerMemory.at, ndPeerMemory.token, flags)
	}
	var answers [][]byte
	for range depth {
		require.NoError(t, read(nd2.OpFlagSilentSuccess), "Read")
		answers = append(answers, r.readRequest("fetched!"))
	}
	for range 3 {
		require.ErrorIs(t, read(nd2.OpFlagSilentSuccess), nd2.ErrNoMoreEntries)
		require.ErrorIs(t, r.qp.Send("send", nil, 0), nd2.ErrNoMoreEntries)
	}
	r.none()
	r.peer.send(answers...)
	r.peer.settled()
	eventually(t, func() bool { return r.qp.Send("send", nil, 0) == nil }, "there is room for a Send")
	r.done("send", nd2.RequestTypeSend, nd2.Success)
	r.none()
}

// ndTwoKinds has one thread in Wait and one in Notify, for the same result: the first has it, the second is told
// of it.
func ndTwoKinds(t *conformance.T) {
	r := newNDRig(t, ndShape{depth: 16})
	waits := &scene{t: t, wait: func(ctx context.Context) error { return ndResults(ctx, r.in) }}
	told := &scene{t: t, wait: func(ctx context.Context) error { return r.in.Notify(ctx, nd2.CQNotifyAny) }}
	for i := range counted(t, "message %d", 64) {
		a, b := waits, told
		if i%2 == 1 {
			a, b = b, a
		}
		first := a.sleeps()
		second := b.sleeps()
		r.receive(0, 0, 8)
		r.peer.sendMessage(nil)
		first.wakes()
		second.wakes()
		r.none()
	}
}

// ndClosedBehindTheEnd posts Receives after the connection, or none, and closes the queue pair: then nothing uses its
// completion queues.
func ndClosedBehindTheEnd(t *conformance.T) {
	for receives := range inTurn(t, "%d Receives after the end", []int{0, 1, 3}) {
		a, b := newNDPair(t, ndShape{})
		require.NoError(t, a.conn.Disconnect(t.Context()), "Disconnect")
		b.over()
		for _, h := range []*ndHost{a, b} {
			for i := range receives {
				h.receive(i, 8*i, 8)
			}
			h.canceledReceives(receives)
			require.ErrorIs(t, h.in.Close(), nd2.ErrDeviceBusy, "the queue pair uses it")
			succeed(t, h.qp.Close, h.in.Close, h.out.Close)
		}
	}
}
