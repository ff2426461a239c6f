package cases

import (
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// What API cases play in: a world is two nodes whose queue pairs are connected, a
// node an RNIC with one of everything. All of it ends with the case.
//
//	rig_world.go        making it
//	rig_world_wait.go   completions, events and states, waited for and compared
//	rig_world_moves.go  data that has to arrive; a raw peer in place of a node

// The rights of a Memory Region.
const (
	remoteRights = verbs.RemoteRead | verbs.RemoteWrite
	allRights    = verbs.LocalRead | verbs.LocalWrite | remoteRights
)

// nodeMemory is the length of a node's region, in octets.
const nodeMemory = 64 << 10

// hour is a time that no case waits for.
const hour = time.Hour

// nodeConfig says what a node is made of. The zero value will do.
type nodeConfig struct {
	RNIC verbs.Config
	// CQ is how many entries the completion queue has; 0 stands for 512.
	CQ int
	// QP is the queue pair; PD and CQs are the node's unless they are set.
	QP verbs.QPConfig
}

// node is an RNIC with one of everything, and the log of its events.
type node struct {
	t      *conformance.T
	nic    *verbs.RNIC
	events *eventLog
	pd     *verbs.PD
	cq     *verbs.CQ // of both queues of qp
	qp     *verbs.QP
	mr     *verbs.MR // nodeMemory octets, VA-based, all rights and BindWindow
}

// openRNIC opens an RNIC and closes it at the end of the case.
func openRNIC(t *conformance.T, c verbs.Config) *verbs.RNIC {
	nic := must(verbs.Open(c))(t, "Open RNIC")
	t.Cleanup(func() { _ = nic.Close() })
	return nic
}

// newNode makes a node; its queue pair is Idle.
func newNode(t *conformance.T, c nodeConfig) *node {
	n := &node{t: t, nic: openRNIC(t, c.RNIC)}
	n.events = logEvents(t, n.nic)
	n.pd = n.newPD()
	if c.CQ == 0 {
		c.CQ = 512
	}
	n.cq = n.newCQ(c.CQ)
	n.qp = n.newQP(c.QP)
	n.mr = n.register(nodeMemory, allRights|verbs.BindWindow)
	return n
}

func (n *node) newPD() *verbs.PD { return must(n.nic.AllocatePD())(n.t, "Allocate PD") }

// deadPD is a PD that is gone.
func (n *node) deadPD() *verbs.PD {
	pd := n.newPD()
	require.NoError(n.t, pd.Deallocate())
	return pd
}

func (n *node) newCQ(entries int) *verbs.CQ {
	return must(n.nic.CreateCQ(verbs.CQConfig{Entries: entries}))(n.t, "Create CQ")
}

// newQP creates a queue pair, on the node's PD and CQ unless c has others.
func (n *node) newQP(c verbs.QPConfig) *verbs.QP {
	return must(n.nic.CreateQP(n.inNode(c)))(n.t, "Create QP")
}

// inNode fills in the node's PD and CQ where c has none. A zero CloseTimeout stands for
// an hour: Closing and Terminate last until the peer does something, however slow the
// machine is.
func (n *node) inNode(c verbs.QPConfig) verbs.QPConfig {
	if c.PD == nil {
		c.PD = n.pd
	}
	if c.SendCQ == nil {
		c.SendCQ = n.cq
	}
	if c.RecvCQ == nil {
		c.RecvCQ = n.cq
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = hour
	}
	return c
}

// newSRQ creates a shared receive queue, in the node's PD unless c has another.
func (n *node) newSRQ(c verbs.SRQConfig) *verbs.SRQ {
	if c.PD == nil {
		c.PD = n.pd
	}
	return must(n.nic.CreateSRQ(c))(n.t, "Create S-RQ")
}

// register registers new memory of that many octets in the node's PD.
func (n *node) register(octets int, access verbs.Access) *verbs.MR {
	return n.region(n.pd, verbs.RegionConfig{Memory: make([]byte, octets), Access: access})
}

// region is Register, in a PD of the node. Peers may invalidate it, as the draft has it
// (7.8); what they may without that is for the cases of RFC 5040 8.1.1.
func (n *node) region(pd *verbs.PD, c verbs.RegionConfig) *verbs.MR {
	c.RemoteInvalidate = true
	return must(pd.RegisterRegion(c))(n.t, "Register")
}

// newMW allocates a Memory Window in the node's PD.
func (n *node) newMW() *verbs.MW { return must(n.pd.AllocateWindow())(n.t, "Allocate Memory Window") }

// pages gets physical buffers.
func (n *node) pages(count int, size uint64) *verbs.Pages {
	return must(n.nic.AllocatePages(count, size))(n.t, "AllocatePages")
}

// worldConfig says what a world is made of. The zero value will do.
type worldConfig struct {
	A, B nodeConfig
	// Idle leaves the queue pairs unconnected.
	Idle bool
}

// world is two nodes whose queue pairs are connected and in RTS: a's is the
// Initiator, and both may send at once.
type world struct {
	t    *conformance.T
	a, b *node
}

func newWorld(t *conformance.T, c worldConfig) *world {
	w := &world{t: t, a: newNode(t, c.A), b: newNode(t, c.B)}
	if !c.Idle {
		connect(t, w.a.qp, w.b.qp)
	}
	return w
}

// connect brings two Idle queue pairs to RTS over a TCP connection of their own. a
// is the Initiator, and its ready-to-receive frame lets b send at once (RFC 6581
// 9.2). What a sends and receives is in the trace; so a's LLP is driven as any
// net.Conn is, and b's as a socket.
func connect(t *conformance.T, a, b *verbs.QP) {
	x, y := tcpPair(t)
	s := verbs.Stream{CRC: true, P2P: true, RTR: rtrWrite}
	s.Conn, s.Role = y, asResponder
	begin(t, b, s)
	s.Conn, s.Role = t.Trace().Conn(x), asInitiator
	begin(t, a, s)
}

// begin brings an Idle queue pair to RTS. The connection is the queue pair's.
func begin(t *conformance.T, qp *verbs.QP, s verbs.Stream) {
	err := qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, Stream: &s})
	if err != nil {
		_ = s.Conn.Close()
	}
	require.NoError(t, err, "Modify QP to RTS")
}

// pair makes two more connected queue pairs, one in each node.
func (w *world) pair(a, b verbs.QPConfig) (qa, qb *verbs.QP) {
	qa, qb = w.a.newQP(a), w.b.newQP(b)
	connect(w.t, qa, qb)
	return qa, qb
}

// rawPeer connects an Idle queue pair with a peer that is played by hand, and whose
// octets are in the trace. role is the queue pair's: a Responder sends nothing
// before it has received something.
func rawPeer(t *conformance.T, qp *verbs.QP, role side) *rawEnd {
	x, y := tcpPair(t)
	return rawPeerAt(t, qp, role, x, y)
}

// rawPeerAt is rawPeer at the far end of a connection whose near one the queue pair gets.
func rawPeerAt(t *conformance.T, qp *verbs.QP, role side, far, near net.Conn) *rawEnd {
	begin(t, qp, verbs.Stream{Conn: near, Role: role, CRC: true})
	return newRawEnd(t.Trace().Conn(far), withCRC)
}

// veil hides that a connection is a socket. Of a socket a queue pair makes a descriptor of its
// own, and closes what it was given at once; this it keeps to the end.
type veil struct{ *net.TCPConn }
