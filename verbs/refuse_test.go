package verbs_test

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// refusal is a verb that has to fail with an Immediate Error.
type refusal struct {
	name string
	want error
	call func(t *testing.T, n *node) error
}

func runRefusals(t *testing.T, list []refusal) {
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			n := newNode(t, verbs.QPConfig{SendDepth: 2, RecvDepth: 2, SendSGE: 2, RecvSGE: 2, ORD: 3})
			before := n.qp.Query()
			require.ErrorIs(t, r.call(t, n), r.want)
			if !errors.Is(r.want, verbs.ErrInvalidQP) && !errors.Is(r.want, verbs.ErrInvalidRNIC) {
				assert.Equal(t, before.State, n.qp.State(), "RV-8.3.1: nothing changed")
			}
		})
	}
}

func TestOpenRefusals(t *testing.T) {
	for _, l := range []verbs.Limits{
		{QPs: -1}, {CQs: -1}, {PDs: -1}, {Regions: -1}, {CQE: -1}, {WR: -1}, {IRD: -1}, {ORD: -1},
		{SGE: 3}, {SGE: 129}, {WR: 1<<20 + 1},
	} {
		_, err := verbs.Open(verbs.Config{Limits: l})
		require.ErrorIs(t, err, verbs.ErrInvalidModifier, "%+v", l)
	}
}

func TestResourceRefusals(t *testing.T) {
	nic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{QPs: 1, CQs: 1, PDs: 1, Regions: 1, CQE: 8, WR: 4, SGE: 4, IRD: 2, ORD: 2}})
	require.NoError(t, err)
	defer nic.Close()
	pd, err := nic.AllocPD()
	require.NoError(t, err)
	_, err = nic.AllocPD()
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	_, err = nic.CreateCQ(verbs.CQConfig{Entries: 9})
	require.ErrorIs(t, err, verbs.ErrTooManyCQE)
	_, err = nic.CreateCQ(verbs.CQConfig{Entries: -1})
	require.ErrorIs(t, err, verbs.ErrInvalidModifier)
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 8})
	require.NoError(t, err)
	assert.Equal(t, 8, cq.Entries())
	_, err = nic.CreateCQ(verbs.CQConfig{Entries: 8})
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	mr, err := pd.Register(make([]byte, 1), allRights)
	require.NoError(t, err)
	_, err = pd.Register(make([]byte, 1), allRights)
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	require.NoError(t, mr.Deregister())
	good := verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4, IRD: 2, ORD: 2}
	for _, c := range []struct {
		name   string
		change func(*verbs.QPConfig)
		want   error
	}{
		{"no PD", func(c *verbs.QPConfig) { c.PD = nil }, verbs.ErrInvalidPD},
		{"no send CQ", func(c *verbs.QPConfig) { c.SendCQ = nil }, verbs.ErrInvalidCQ},
		{"no receive CQ", func(c *verbs.QPConfig) { c.RecvCQ = nil }, verbs.ErrInvalidCQ},
		{"PD of another RNIC", func(c *verbs.QPConfig) { c.PD = newNode(t, verbs.QPConfig{}).pd }, verbs.ErrInvalidPD},
		{"CQ of another RNIC", func(c *verbs.QPConfig) { c.SendCQ = newNode(t, verbs.QPConfig{}).cq }, verbs.ErrInvalidCQ},
		{"send depth", func(c *verbs.QPConfig) { c.SendDepth = 5 }, verbs.ErrTooManyWR},
		{"receive depth", func(c *verbs.QPConfig) { c.RecvDepth = 5 }, verbs.ErrTooManyWR},
		{"negative depth", func(c *verbs.QPConfig) { c.RecvDepth = -1 }, verbs.ErrInvalidModifier},
		{"negative ORD", func(c *verbs.QPConfig) { c.ORD = -1 }, verbs.ErrInvalidModifier},
		{"send elements", func(c *verbs.QPConfig) { c.SendSGE = 5 }, verbs.ErrTooManySGE},
		{"receive elements", func(c *verbs.QPConfig) { c.RecvSGE = 5 }, verbs.ErrTooManySGE},
		{"IRD", func(c *verbs.QPConfig) { c.IRD = 3 }, verbs.ErrIRDExceeded},
		{"ORD", func(c *verbs.QPConfig) { c.ORD = 3 }, verbs.ErrORDExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			_, err := nic.CreateQP(cfg)
			require.ErrorIs(t, err, c.want)
		})
	}
	qp, err := nic.CreateQP(good)
	require.NoError(t, err, "refusals used nothing up")
	_, err = nic.CreateQP(good)
	require.ErrorIs(t, err, verbs.ErrInsufficientResources)
	require.NoError(t, qp.Destroy())
	qp, err = nic.CreateQP(good)
	require.NoError(t, err)
	require.NoError(t, qp.Destroy())
	require.NoError(t, pd.Dealloc())
	_, err = nic.CreateQP(good)
	require.ErrorIs(t, err, verbs.ErrInvalidPD)
}

func TestMemoryRefusals(t *testing.T) {
	register := func(c verbs.RegionConfig) func(*testing.T, *node) error {
		return func(_ *testing.T, n *node) error {
			_, err := n.pd.RegisterRegion(c)
			return err
		}
	}
	b := make([]byte, 10)
	runRefusals(t, []refusal{
		{"no rights", verbs.ErrInvalidAccess, register(verbs.RegionConfig{Memory: b})},
		{"remote right alone", verbs.ErrInvalidAccess, register(verbs.RegionConfig{Memory: b, Access: verbs.RemoteRead | verbs.LocalWrite})},
		{"no memory", verbs.ErrInvalidLength, register(verbs.RegionConfig{Access: allRights})},
		{"VA beyond 64 bits", verbs.ErrInvalidVA, register(verbs.RegionConfig{Memory: b, Access: allRights, VA: 1<<64 - 9})},
		{"zero-based with a VA", verbs.ErrInvalidVA, register(verbs.RegionConfig{Memory: b, Access: allRights, VA: 1, ZeroBased: true})},
		{"QP of another RNIC", verbs.ErrInvalidModifier, func(t *testing.T, n *node) error {
			_, err := n.pd.RegisterRegion(verbs.RegionConfig{Memory: b, Access: allRights, QP: newNode(t, verbs.QPConfig{}).qp})
			return err
		}},
		{"deregistered twice", verbs.ErrInvalidSTag, func(t *testing.T, n *node) error {
			require.NoError(t, n.mr.Deregister())
			return n.mr.Deregister()
		}},
		{"PD in use by a QP", verbs.ErrPDInUse, func(t *testing.T, n *node) error {
			require.NoError(t, n.mr.Deregister())
			return n.pd.Dealloc()
		}},
		{"PD in use by a region", verbs.ErrPDInUse, func(t *testing.T, n *node) error {
			require.NoError(t, n.qp.Destroy())
			err := n.pd.Dealloc()
			require.NoError(t, n.mr.Deregister())
			require.NoError(t, n.pd.Dealloc())
			require.ErrorIs(t, n.pd.Dealloc(), verbs.ErrInvalidPD)
			_, gone := n.pd.Register(b, allRights)
			require.ErrorIs(t, gone, verbs.ErrInvalidPD)
			n.qp = newNode(t, verbs.QPConfig{}).qp // for the check that it is Idle
			return err
		}},
	})
}

func TestCQRefusals(t *testing.T) {
	runRefusals(t, []refusal{
		{"notify type", verbs.ErrInvalidNotifyType, func(_ *testing.T, n *node) error { return n.cq.Notify(0) }},
		{"in use", verbs.ErrCQInUse, func(_ *testing.T, n *node) error { return n.cq.Destroy() }},
		{"in use for receives", verbs.ErrCQInUse, func(t *testing.T, n *node) error {
			cq, err := n.nic.CreateCQ(verbs.CQConfig{})
			require.NoError(t, err)
			assert.Equal(t, 256, cq.Entries(), "the default")
			_, err = n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: n.cq, RecvCQ: cq})
			require.NoError(t, err)
			return cq.Destroy()
		}},
		{"destroyed twice", verbs.ErrInvalidCQ, func(t *testing.T, n *node) error {
			cq, err := n.nic.CreateCQ(verbs.CQConfig{})
			require.NoError(t, err)
			require.NoError(t, cq.Destroy())
			_, err = n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: cq, RecvCQ: n.cq})
			require.ErrorIs(t, err, verbs.ErrInvalidCQ)
			return cq.Destroy()
		}},
	})
}

func TestPostRefusals(t *testing.T) {
	three := make([]verbs.SGE, 3)
	send := func(posted int, reqs ...verbs.Send) func(*testing.T, *node) error {
		return func(t *testing.T, n *node) error {
			k, err := n.qp.PostSend(reqs...)
			assert.Equal(t, posted, k)
			return err
		}
	}
	recv := func(posted int, reqs ...verbs.Recv) func(*testing.T, *node) error {
		return func(t *testing.T, n *node) error {
			k, err := n.qp.PostRecv(reqs...)
			assert.Equal(t, posted, k)
			return err
		}
	}
	inError := func(f func(*testing.T, *node) error) func(*testing.T, *node) error {
		return func(t *testing.T, n *node) error {
			require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.Error}))
			err := f(t, n)
			require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.Idle}))
			return err
		}
	}
	runRefusals(t, []refusal{
		{"send: unknown operation", verbs.ErrInvalidOp, send(0, verbs.Send{Op: 200})},
		{"send: a receive", verbs.ErrInvalidOp, send(0, verbs.Send{Op: verbs.OpRecv})},
		{"send: second in the list", verbs.ErrInvalidOp, send(1, verbs.Send{}, verbs.Send{Op: verbs.OpRecv}, verbs.Send{})},
		{"send: elements", verbs.ErrInvalidSGLLength, send(0, verbs.Send{SGL: three})},
		{"write: elements", verbs.ErrInvalidSGLLength, send(0, verbs.Send{Op: verbs.OpWrite, SGL: three})},
		{"send: full", verbs.ErrQueueFull, send(2, verbs.Send{}, verbs.Send{}, verbs.Send{})},
		{"send: state", verbs.ErrInvalidState, inError(send(0, verbs.Send{}))},
		{"receive: elements", verbs.ErrInvalidSGLLength, recv(1, verbs.Recv{}, verbs.Recv{SGL: three})},
		{"receive: full", verbs.ErrQueueFull, recv(2, verbs.Recv{}, verbs.Recv{}, verbs.Recv{})},
		{"receive: state", verbs.ErrInvalidState, inError(recv(0, verbs.Recv{}))},
	})
}

func TestModifyRefusals(t *testing.T) {
	modify := func(m verbs.ModifyQP) func(*testing.T, *node) error {
		return func(_ *testing.T, n *node) error { return n.qp.Modify(m) }
	}
	ord := func(n int) *int { return &n }
	stream := &verbs.Stream{}
	runRefusals(t, []refusal{
		{"to RTS without a stream", verbs.ErrInvalidLLPStream, modify(verbs.ModifyQP{Next: verbs.RTS})},
		{"to RTS without a connection", verbs.ErrInvalidLLPStream, modify(verbs.ModifyQP{Next: verbs.RTS, Stream: stream})},
		{"a stream for Idle", verbs.ErrInvalidModifier, modify(verbs.ModifyQP{Next: verbs.Idle, Stream: stream})},
		{"a message for Error", verbs.ErrInvalidModifier, modify(verbs.ModifyQP{Next: verbs.Error, LastMessage: []byte{1}})},
		{"ORD on the way to Error", verbs.ErrInvalidModifier, modify(verbs.ModifyQP{Next: verbs.Error, ORD: ord(1)})},
		{"ORD above the QP's", verbs.ErrORDExceeded, modify(verbs.ModifyQP{Next: verbs.Idle, ORD: ord(4)})},
		{"negative ORD", verbs.ErrORDExceeded, modify(verbs.ModifyQP{Next: verbs.Idle, ORD: ord(-1)})},
		{"Idle to Closing", verbs.ErrInvalidState, modify(verbs.ModifyQP{Next: verbs.Closing})},
		{"Idle to Terminate", verbs.ErrInvalidState, modify(verbs.ModifyQP{Next: verbs.Terminate})},
		{"no such state", verbs.ErrInvalidState, modify(verbs.ModifyQP{Next: 77})},
		{"destroyed", verbs.ErrInvalidQP, func(t *testing.T, n *node) error {
			require.NoError(t, n.qp.Destroy())
			require.ErrorIs(t, n.qp.Destroy(), verbs.ErrInvalidQP)
			return n.qp.Modify(verbs.ModifyQP{Next: verbs.Idle})
		}},
		{"last message over a dead connection", verbs.ErrInvalidLLPStream, func(t *testing.T, n *node) error {
			c, d := net.Pipe()
			require.NoError(t, d.Close())
			return n.qp.Modify(verbs.ModifyQP{
				Next: verbs.RTS, LastMessage: []byte("bye"), Stream: &verbs.Stream{Conn: c, Role: mpa.Responder},
			})
		}},
	})
}

// TestClosedRNIC: every verb says so after Close.
func TestClosedRNIC(t *testing.T) {
	n := newNode(t, verbs.QPConfig{})
	require.NoError(t, n.nic.Close())
	require.NoError(t, n.nic.Close(), "twice is once")
	_, err := n.nic.AllocPD()
	require.ErrorIs(t, err, verbs.ErrInvalidRNIC)
	_, err = n.nic.CreateCQ(verbs.CQConfig{})
	require.ErrorIs(t, err, verbs.ErrInvalidRNIC)
	_, err = n.nic.CreateQP(verbs.QPConfig{PD: n.pd, SendCQ: n.cq, RecvCQ: n.cq})
	require.ErrorIs(t, err, verbs.ErrInvalidRNIC)
	_, err = n.pd.Register(make([]byte, 1), allRights)
	require.ErrorIs(t, err, verbs.ErrInvalidPD)
	require.ErrorIs(t, n.pd.Dealloc(), verbs.ErrInvalidPD)
	require.ErrorIs(t, n.cq.Destroy(), verbs.ErrInvalidCQ)
	require.ErrorIs(t, n.qp.Destroy(), verbs.ErrInvalidQP)
	require.ErrorIs(t, n.mr.Deregister(), verbs.ErrInvalidSTag)
	_, err = n.qp.PostSend(verbs.Send{})
	require.ErrorIs(t, err, verbs.ErrInvalidQP)
}
