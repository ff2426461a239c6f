package verbs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// Why a Write was refused, as data, on both sides: the one that posted it learns what the peer's
// Terminate Message says, the other what there would have been.
func ExampleReason() {
	client, server := open(), open()
	defer client.nic.Close()
	defer server.nic.Close()
	small := must1(server.pd.RegisterRegion(verbs.RegionConfig{
		Memory: make([]byte, 16), VA: 0x1000, Access: verbs.LocalWrite | verbs.RemoteWrite,
	}))
	connect(client.qp, server.qp)
	must1(client.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: client.mr.SGL(0, 64), Remote: small.Remote(0)}))

	for _, n := range []*node{client, server} {
		stream := n.qp.LLPStream()
		<-stream.Done()
		var why *verbs.Reason
		if !errors.As(stream.Err(), &why) { // so for what a post returns, and for Completion.Err
			panic("no reason")
		}
		fmt.Printf("%s, %d octets at TO %#x\n", why.Operation, why.Asked.Length, why.Asked.TO)
		if why.ByPeer {
			fmt.Println("the peer says:", why.Terminate.Text)
		} else {
			fmt.Printf("%s; there are %d octets (%s)\n", why.What, why.Allowed.Length, why.Rule)
		}
	}
	// Output:
	// RDMA Write, 64 octets at TO 0x1000
	// the peer says: DDP base or bounds violation
	// RDMA Write, 64 octets at TO 0x1000
	// the region has 16 octets from TO 0x1000; there are 16 octets (RV-7.6.3-M2)
}

// TestReasonEverywhere: one fault has one reason, in the error of the stream, in the completion
// and in the event.
func TestReasonEverywhere(t *testing.T) {
	for name, c := range map[string]struct {
		request func(a *node, to verbs.STag) verbs.Request
		at      bool // the Receive of b is at fault, else there is an event
		want    verbs.Reason
	}{
		"event": {
			request: func(a *node, to verbs.STag) verbs.Request {
				return verbs.Request{Op: verbs.OpWrite, SGL: a.mr.SGL(0, 8), Remote: verbs.Remote{STag: to, TO: 0x1fff}}
			},
			want: verbs.Reason{
				Operation: "RDMA Write", HasSTag: true, Asked: verbs.Octets{Known: true, Tagged: true, TO: 0x1fff, Length: 8},
				Allowed: verbs.Octets{Known: true, Tagged: true, TO: 0x1000, Length: 0x1000},
				What:    "the region has 4096 octets from TO 0x1000", Rule: "RV-7.6.3-M2", Remedy: "stay within it",
			},
		},
		"completion": {
			request: func(a *node, _ verbs.STag) verbs.Request { return verbs.Request{SGL: a.mr.SGL(0, 9)} },
			at:      true,
			want: verbs.Reason{
				Operation: "Send", MSN: 1, Asked: verbs.Octets{Known: true, Length: 9}, Allowed: verbs.Octets{Known: true, Length: 8},
				What: "the receive posted for it has room for 8", Rule: "RFC 5041 7.2",
				Remedy: "post longer receives",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
			events := b.events(t)
			to, err := b.pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 4096), VA: 0x1000, Access: allRights})
			require.NoError(t, err)
			require.NoError(t, second(b.qp.PostRecv(verbs.Recv{SGL: b.mr.SGL(0, 8)})))
			join(t, a.qp, b.qp, false)
			require.NoError(t, second(a.qp.PostSend(c.request(a, to.STag()))))
			<-b.qp.Done()
			c.want.QP = b.qp.ID()
			if c.want.HasSTag {
				c.want.STag = to.STag()
			}
			done := waitOne(t, b.cq)
			stream := b.qp.LLPStream().Err()
			var why, at *verbs.Reason
			require.ErrorAs(t, stream, &why)
			require.Equal(t, c.want, *why)
			if c.at {
				require.ErrorAs(t, done.Err(), &at)
			} else {
				require.False(t, errors.As(done.Err(), &at), "a Flushed one has none of its own")
				at = (<-events).Why
			}
			require.Same(t, why, at)
			var failed *verbs.CompletionError
			require.Equal(t, c.at, errors.As(stream, &failed))

			// And the other side: what the Terminate Message tells of it.
			<-a.qp.Done()
			require.ErrorAs(t, a.qp.LLPStream().Err(), &at)
			assert.True(t, at.ByPeer)
			assert.EqualValues(t, 1, at.Terminate.Layer)
			assert.Equal(t, c.want.Operation, at.Operation)
			assert.Equal(t, c.want.Asked, at.Asked)
			assert.Equal(t, c.want.STag, at.STag)
			assert.Zero(t, at.Allowed, "a peer is told no more than before")
			assert.Zero(t, at.Missing)
			assert.Equal(t, 1, strings.Count(a.qp.LLPStream().Err().Error(), "the peer says 0x"), "it is said once")
		})
	}
}
