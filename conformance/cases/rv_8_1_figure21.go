package cases

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_figure21 is the rights of queue pairs and STags together: verbs draft 8.1.2.2,
// figure 21.
var rv8_1_figure21 = []conformance.Case{
	apiCase("8.1.2.2/figure-21", onQuietHost(figure21), "RV-8.1.2.2-M7"),
	apiCase("8.1.2.2/rights-match", onQuietHost(rightsMatch), "RV-8.1.2.2-M8"),
	apiCase("8.1.2.2/protection-errors", protectionErrors, "RV-8.1.2.2-M9"),
}

// remoteKind is a kind of inbound segment that figure 21 has a row for.
type remoteKind struct {
	name  string
	right verbs.Access // that the STag needs
	// The refusals for want of the queue pair's right, and of the STag's.
	qp, stag peerFault
}

var remoteKinds = []remoteKind{
	{"RDMA Write", verbs.RemoteWrite, noWriteRight, noRight.write},
	{"RDMA Read Response", verbs.RemoteWrite, noWriteRight, peerFault{code: 0x1100}}, // the Read tells, RV-6.2.3-M14
	{"RDMA Read Request", verbs.RemoteRead, noReadRight, noRight.read},
}

// enabled is what of the remote rights a queue pair has.
func enabled(c verbs.QPConfig) verbs.Access {
	a := remoteRights
	if c.NoInboundRead {
		a &^= verbs.RemoteRead
	}
	if c.NoInboundWrite {
		a &^= verbs.RemoteWrite
	}
	return a
}

// tries makes one access, through rights of the queue pair and of the STag, to octets
// that are mem. It takes place if both have the right; else it is refused for want of
// one that is missing, and moves nothing.
func (k *remoteKind) tries(s *probe, b verbs.TaggedBuffer, mem []byte, qp, stag verbs.Access) {
	t := s.t
	s.connect()
	was, sent := bytes.Clone(fill(mem, 1)), fill(make([]byte, len(mem)), 2)
	req := verbs.Request{ID: 0x2101, Op: verbs.OpRead, Local: b.SGE(0, len(mem)), Remote: theirs}
	answers := k.name == "RDMA Read Response"
	switch {
	case k.right == verbs.RemoteRead:
		s.ask(b.Remote(0), len(mem))
	case answers:
		post(t, s.qp, req)
		s.segment(opReadRequest)
		s.send(aReadResponse(uint32(b.STag), b.Base, sent))
	default:
		s.send(aWrite(uint32(b.STag), b.Base, sent))
	}
	done := verbs.Completion{ID: req.ID, QP: s.qp.ID(), Op: req.Op}
	var why []peerFault
	if qp&k.right == 0 {
		why = append(why, k.qp)
	}
	if stag&k.right == 0 {
		why = append(why, k.stag)
	}
	switch {
	case len(why) > 0 && answers:
		s.answerRefused(done, k, qp, stag)
		answers = false
	case len(why) > 0:
		s.refusedAs(why...)
	case k.right == verbs.RemoteRead:
		require.Equal(t, was, s.answer(), "what the peer read")
	default:
		if qp&verbs.RemoteRead != 0 {
			s.settled()
		} else { // it may not ask: messages come in order
			postRecv(t, s.qp, verbs.Recv{ID: 0x2102})
			s.send(aSend(s.nextSend(), nil))
		}
		was = sent
	}
	if answers {
		completes(t, s.host.cq, done)
	}
	if len(why) == 0 && k.right == verbs.RemoteWrite && qp&verbs.RemoteRead == 0 {
		completes(t, s.host.cq, verbs.Completion{ID: 0x2102, QP: done.QP, Op: verbs.OpRecv})
	}
	require.Equal(t, was, mem, "the memory")
}

// answerRefused says that the answer to a Read was refused for want of a right: of the
// sink's, which the Read tells with its status, or of the queue pair's.
func (s *probe) answerRefused(done verbs.Completion, k *remoteKind, qp, stag verbs.Access) {
	t := s.t
	got := await(t, s.host.cq, 1)[0]
	done.Status = verbs.StatusFlushed
	if got.Status == verbs.StatusAccess {
		done.Status = verbs.StatusAccess
	}
	require.Equal(t, done, got)
	if done.Status == verbs.StatusAccess {
		require.Zero(t, stag&k.right, "the right of the sink")
		s.fails(k.stag.code)
		return
	}
	require.Zero(t, qp&k.right, "the right of the queue pair")
	s.refused(k.qp)
}

// refusedAs is refused, for one of several reasons.
func (s *probe) refusedAs(why ...peerFault) {
	e := s.host.events.next()
	i := slices.IndexFunc(why, func(r peerFault) bool { return r.event == e.ID })
	require.GreaterOrEqual(s.t, i, 0, "the event is %v, of %v", e, why)
	require.Equal(s.t, verbs.Event{ID: e.ID, QP: s.qp.ID()}, e)
	s.fails(why[i].code)
}

// figure21 goes through all rights of queue pairs and STags, for each kind of inbound
// segment. Those of a window are asked for in place of its region's, which has no
// remote ones.
func figure21(n *host) {
	t := n.t
	const local = verbs.LocalRead | verbs.LocalWrite
	under := n.register(64, local|verbs.BindWindow)
	for _, c := range []verbs.QPConfig{{}, {NoInboundRead: true}, {NoInboundWrite: true}, {NoInboundRead: true, NoInboundWrite: true}} {
		for _, a := range []verbs.Access{0, verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
			for i := range remoteKinds {
				k := &remoteKinds[i]
				t.Part("%s, a queue pair with %v, a region with %v", k.name, enabled(c), a)
				mr := n.register(64, local|a)
				s := n.probe(c)
				k.tries(s, mr.Buffer(), mr.Bytes(), enabled(c), a)
				s.disconnect()
				if a == 0 {
					continue
				}
				t.Part("%s, a queue pair with %v, a window with %v", k.name, enabled(c), a)
				s, mw := n.probe(c), n.newMW()
				bind := s.binds(mw.BindRequest(under, 8, 40, a, 1))
				k.tries(s, verbs.BindBuffer(bind), under.Bytes()[8:48], enabled(c), a)
				require.NoError(t, mw.Deallocate())
				s.disconnect()
			}
		}
	}
}

// rightsMatch gives the queue pair one right and the STag the other: each has one,
// and nothing goes. Only what both have does.
func rightsMatch(n *host) {
	const local = verbs.LocalRead | verbs.LocalWrite
	for _, c := range []verbs.QPConfig{{NoInboundWrite: true}, {NoInboundRead: true}} {
		for _, a := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite} {
			mr := n.register(64, local|a)
			for i := range remoteKinds {
				k := &remoteKinds[i]
				n.t.Part("%s, a queue pair with %v, a region with %v", k.name, enabled(c), a)
				s := n.probe(c)
				k.tries(s, mr.Buffer(), mr.Bytes(), enabled(c), a)
				s.disconnect()
			}
		}
	}
	n.t.Part("both with both")
	s, mr := n.probe(verbs.QPConfig{}), n.register(64, allRights)
	for i := range remoteKinds { // on one stream: there is nothing to refuse
		remoteKinds[i].tries(s, mr.Buffer(), mr.Bytes(), remoteRights, remoteRights)
	}
	s.disconnect()
	n.t.Part("")
}

// protectionErrors looks at all that follows from a combination that is ruled out:
// figures 23 and 24, with the Terminate codes of the RFCs.
func protectionErrors(t *conformance.T) {
	const local = verbs.LocalRead | verbs.LocalWrite
	n := newHost(t, hostConfig{})
	closed := n.register(64, local)
	fill(closed.Bytes(), 9)
	was := slices.Clone(closed.Bytes())
	at := closed.Remote(0)
	write := aWrite(uint32(at.STag), at.TO, []byte("unwanted"))
	request := aReadRequest(1, read{nowhere, nowhereTO, 8, uint32(at.STag), at.TO})
	for c := range inTurn(t, "%s", []struct {
		name  string
		qp    verbs.QPConfig
		ulpdu []byte
		code  uint16
		echo  bool // of the RDMA Read Request header
		event verbs.EventID
	}{
		{"a Write, STag without the right", verbs.QPConfig{}, write, 0x1100, false, verbs.EventProtAccess},
		{"a Write, queue pair without the right", verbs.QPConfig{NoInboundWrite: true}, aWrite(uint32(n.mr.STag()), n.mr.Base(), []byte{1}), 0x1100, false, verbs.EventWriteNotEnabled},
		{"a Read, STag without the right", verbs.QPConfig{}, request, 0x0102, true, verbs.EventIRRQAccess},
		{"a Read, queue pair without the right", verbs.QPConfig{NoInboundRead: true}, request, 0x1201, false, verbs.EventReadNotEnabled},
	}) {
		l := n.link(c.qp)
		l.send(c.ulpdu)
		l.terminated(c.code, c.ulpdu, c.echo)
		require.Equal(t, verbs.StateTerminate, l.qp.State())
		l.closesWith(verbs.StateError, c.event)
	}

	noRead, noWrite := n.register(64, verbs.LocalWrite|verbs.RemoteWrite), n.register(64, verbs.LocalRead|verbs.RemoteRead)
	for op := range inTurn(t, "%v without Local Read", []verbs.Op{
		verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite,
	}) {
		l := n.link(verbs.QPConfig{})
		post(t, l.qp, verbs.Request{ID: 1, Op: op, SGL: noRead.SGL(0, 8), Remote: theirs})
		l.terminated(0x0000, nil, false)
		require.Equal(t, verbs.StateTerminate, l.qp.State())
		l.shut()
		completes(t, l.sq, l.sentAs(1, op, verbs.StatusAccess))
		l.remains(verbs.StateError)
	}
	t.Part("a receive without Local Write")
	l := n.link(verbs.QPConfig{})
	postRecv(t, l.qp, verbs.Recv{ID: 1, SGL: noWrite.SGL(0, 8)})
	l.sendMessage([]byte("unwanted"))
	l.terminated(0x0000, nil, false)
	require.Equal(t, verbs.StateTerminate, l.qp.State())
	l.shut()
	completes(t, l.rq, l.recvAs(verbs.StatusAccess, 1)...)
	l.remains(verbs.StateError)
	require.Equal(t, make([]byte, 64), noWrite.Bytes())
	require.Equal(t, was, closed.Bytes())
}
