package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestRemoteInvalidation: a peer takes a region away from others only where the program
// has said so, or where there are no others (R5040-8.1.1-M8). A refused Send with
// Invalidate costs its sender the stream; the region stays for all.
func TestRemoteInvalidation(t *testing.T) {
	for _, c := range []struct {
		name   string
		config verbs.RegionConfig
		tied   bool // to the queue pair of the peer
		want   verbs.Status
	}{
		{name: "by default", want: verbs.StatusInvalidateSTag},
		{name: "asked for", config: verbs.RegionConfig{RemoteInvalidate: true}},
		{name: "of one queue pair", tied: true},
	} {
		for _, made := range []string{"registered", "reregistered", "fast-registered"} {
			t.Run(c.name+"/"+made, func(t *testing.T) {
				a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{Privileged: true})
				join(t, a.qp, b.qp, true)
				other, also := a.newQP(t, verbs.QPConfig{}), b.newQP(t, verbs.QPConfig{})
				join(t, other, also, true)
				if c.tied {
					c.config.QP = b.qp
				}
				at := madeRegion(t, a, b, c.config, made)

				_, err := b.qp.PostRecv(verbs.Recv{})
				require.NoError(t, err)
				_, err = a.qp.PostSend(verbs.Request{Op: verbs.OpSendInvalidate, Invalidate: at.STag})
				require.NoError(t, err)
				got := waitOne(t, b.cq)
				assert.Equal(t, c.want, got.Status)
				assert.Equal(t, c.want == verbs.StatusSuccess, got.HasInvalidated)
				a.wait(t, 1)
				if c.tied {
					return // to the other peer it never was open
				}
				_, err = other.PostSend(verbs.Request{Op: verbs.OpRead, Local: a.mr.SGE(0, 8), Remote: at.Remote(0)})
				require.NoError(t, err)
				usable := waitOne(t, a.cq).Status == verbs.StatusSuccess
				assert.Equal(t, c.want != verbs.StatusSuccess, usable, "for others")
			})
		}
	}
}

// madeRegion is a region of b, made that way.
func madeRegion(t *testing.T, a, b *node, c verbs.RegionConfig, made string) verbs.TaggedBuffer {
	c.Memory, c.Access = make([]byte, 8), allRights
	if made != "fast-registered" {
		first := c
		if made == "reregistered" { // from the contrary
			first.QP, first.RemoteInvalidate = nil, !c.RemoteInvalidate
		}
		mr, err := b.pd.RegisterRegion(first)
		require.NoError(t, err)
		if made == "reregistered" {
			require.NoError(t, mr.Reregister(nil, c))
		}
		return mr.Buffer()
	}
	mr, err := b.pd.AllocateRegion(verbs.AllocateConfig{RemoteAccess: true, QP: c.QP, RemoteInvalidate: c.RemoteInvalidate})
	require.NoError(t, err)
	pages, err := b.nic.AllocatePages(1, 4096)
	require.NoError(t, err)
	f := &verbs.FastRegisterRequest{STag: mr.WithKey(3), Buffers: pages.List(0, 8), Addressing: verbs.ZeroBased, Access: allRights}
	_, err = a.qp.PostSend(verbs.Request{Op: verbs.OpWrite}) // lets the Responder send
	require.NoError(t, err)
	a.wait(t, 1)
	_, err = b.qp.PostSend(verbs.Request{Op: verbs.OpFastRegister, FastRegister: f})
	require.NoError(t, err)
	b.wait(t, 1)
	return verbs.FastRegisterBuffer(f)
}
