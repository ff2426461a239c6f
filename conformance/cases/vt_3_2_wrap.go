package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	viend "github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/vipl"
)

// vt3_2Wrap is the numbers of messages behind the highest of their 32 bits: VI/TCP draft 3.2. Those of a VI begin with
// zero, so an endpoint without one stands in for it.
var vt3_2Wrap = []conformance.Case{
	apiCase("3.2/vi-ack-across-zero", viACKAcrossZero, "VT-3.2-M12", "VT-3.2-M15", "PT-3.2-M5"),
}

// viSent is the Handler of an endpoint that sends: what becomes of its requests.
type viSent chan viend.Result

func (s viSent) SendDone(r *viend.Result) { s <- *r }
func (viSent) ReceiveDone(*viend.Result)  {}
func (viSent) Event(viend.Event)          {}
func (viSent) Ended(*viend.EndError)      {}

// viACKAcrossZero acknowledges messages at Reliable Reception whose numbers begin anew within them, by the number of
// the last of several; and tells of an error of one behind zero, when none is acknowledged.
func viACKAcrossZero(t *conformance.T) {
	const before, n = 2, 5 // messages whose numbers come before zero, and all of them
	for _, failed := range named(t, "%s", map[string]bool{"ACKs": false, "an error": true}) {
		near, far := loopbackPair(t)
		p, ce := newVIPeer(t, far), viPeerCE(vipl.ServiceReliableReception, "server")
		p.asks(ce)
		r := must(vitcp.Await(t.Context(), near, vitcp.Filter{Called: "server"}))(t, "Await")
		first := uint32(1<<32 - before)
		agreed := must(r.Accept(t.Context(), vitcp.Config{Level: segment.ReliableReception, Number: first - 1}))(t, "Accept")
		p.accepted(ce)
		require.Equal(t, first-1, p.subject, "the number of the ConnectAccept")

		sent, table := make(viSent, n), stag.NewTable(stag.Config{})
		c := agreed.EndpointConfig()
		c.STags, c.Handler = table, sent
		e := must(viend.New(agreed.Conn, c))(t, "an endpoint")
		t.Cleanup(func() {
			e.Close()
			table.Close()
		})
		e.Start()
		for i := range n {
			require.NoError(t, e.PostSend(&viend.Request{Op: viend.OpSend, Index: i}), "PostSend")
		}
		for i := range uint32(n) {
			require.Equal(t, first+i, p.get(viSend).number, "Message Number of Send %d", i)
		}
		done := 0
		completes := func(until int, f viend.Flaws) {
			for ; done < until; done++ {
				got := receive(t, sent, "Send %d does not complete", done)
				require.Equal(t, viend.Result{Index: done, Op: viend.OpSend, Flaws: f}, got, "the result of Send %d", done)
			}
		}
		p.nop(viSegment{ack: first - 1}) // of none of them
		if failed {
			p.nop(viSegment{ack: 1, code: viDescriptorCode})
			completes(before+1, 0)
			completes(before+2, viend.FlawRemoteDescriptor)
			completes(n, viend.FlawFlushed)
		} else {
			p.nop(viSegment{ack: 0})
			completes(before+1, 0)
			p.nop(viSegment{ack: 1<<32 - 1}) // of one that is done
			p.nop(viSegment{ack: 2})
			completes(n, 0)
		}
		require.Empty(t, sent)
		require.NoError(t, far.Close()) // so that the end waits for nobody
	}
}
