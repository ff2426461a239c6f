package verbs_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// The rules of traffic and of how it ends: draft 6.2, 8.2.2, 8.3 and RFC 5040. One
// message is done before the next begins: the generator sees to it that this
// makes no difference (see safe).

var localStatus = map[modelFault]verbs.Status{ // figure 36
	badSTag: verbs.StatusInvalidSTag, badPD: verbs.StatusInvalidPD, badRight: verbs.StatusAccess,
	badWrap: verbs.StatusWrap, badBounds: verbs.StatusBaseBounds,
}

// modelReport is what the peer's fault entails: an event, a Terminate code.
type modelReport struct {
	event verbs.EventID
	code  int
}

var taggedFault = map[modelFault]modelReport{ // RFC 5041 7.2
	badSTag: {verbs.EventProtSTag, 0x1100}, badBounds: {verbs.EventProtBounds, 0x1101},
	badRight: {verbs.EventProtAccess, 0x1100}, badPD: {verbs.EventProtPD, 0x1102},
	badWrap: {verbs.EventProtWrap, 0x1103},
}

var readFault = map[modelFault]modelReport{ // RFC 5040 4.8
	badSTag: {verbs.EventIRRQSTag, 0x0100}, badBounds: {verbs.EventIRRQBounds, 0x0101},
	badRight: {verbs.EventIRRQAccess, 0x0102}, badPD: {verbs.EventIRRQPD, 0x0103},
	badWrap: {verbs.EventIRRQWrap, 0x0104},
}

var ( // draft figure 24, RFC 5041 7.2
	noReceive       = modelReport{verbs.EventRQMSNRange, 0x1202}
	writeNotEnabled = modelReport{verbs.EventWriteNotEnabled, 0x1100}
	readNotEnabled  = modelReport{verbs.EventReadNotEnabled, 0x1201}
	readTooMany     = modelReport{verbs.EventIRRQTooMany, 0x1202}
	sendNotQueued   = modelReport{verbs.EventCQSQOverflow, 0x0207}
	recvNotQueued   = modelReport{verbs.EventCQRQError, 0x0207}
	brokenSRQ       = modelReport{verbs.EventSRQError, 0x0207}
	catastrophe     = modelReport{verbs.EventLocalQPCatastrophic, 0x0207}
	globally        = modelReport{0, 0x0208}
	byVerb          = modelReport{0, 0}
)

const codeTooLong = 0x1205 // RFC 5041 7.2

// run goes on with the Send Queue until it is empty, or has to wait, or the stream
// has ended.
func (q *modelQP) run() {
	for q.state == verbs.StateRTS {
		list := q.waiting()
		if len(list) == 0 || q.shut && !memoryOp(list[0].Op) { // RFC 5044 7.1.2
			return
		}
		q.execute(list[0])
	}
}

func memoryOp(o verbs.Op) bool {
	return o == verbs.OpBind || o == verbs.OpFastRegister || o == verbs.OpInvalidate
}

func readOp(o verbs.Op) bool { return o == verbs.OpRead || o == verbs.OpReadInvalidate }

func (q *modelQP) execute(e *modelSend) {
	switch {
	case memoryOp(e.Op):
		if s := q.memory(e); s != verbs.StatusSuccess {
			q.blame(e, s)
			return
		}
	case readOp(e.Op):
		if !q.read(e) {
			return
		}
	default:
		data, s := q.gather(e.Request)
		if s != verbs.StatusSuccess {
			q.blame(e, s)
			return
		}
		// The LLP takes it: that is when it completes.
		ok := q.completeSend(e, verbs.StatusSuccess)
		q.peer.receive(modelMessage{e.Request, data})
		if !ok && q.state == verbs.StateRTS {
			q.fault(sendNotQueued, nil)
		}
		return
	}
	if !q.completeSend(e, verbs.StatusSuccess) {
		q.fault(sendNotQueued, nil)
	}
}

func (q *modelQP) memory(e *modelSend) verbs.Status {
	switch e.Op {
	case verbs.OpBind:
		return q.bind(e.Bind)
	case verbs.OpFastRegister:
		return q.fastRegister(e.FastRegister)
	}
	return q.invalidateLocal(e.Invalidate)
}

// gather takes the data of a Send or RDMA Write.
func (q *modelQP) gather(r verbs.Request) ([]byte, verbs.Status) {
	if n := sglLength(r.SGL); n > 1<<32-1 {
		return nil, verbs.StatusInvalidLength
	} else if n > 0 && r.Op == verbs.OpWrite && r.Remote.STag == 0 { // 8.1.3.2.1
		return nil, verbs.StatusInvalidSTag
	}
	var data []byte
	for _, g := range r.SGL {
		span, f := q.access(q.pd, g.STag, g.TO, uint64(g.Length), verbs.LocalRead)
		if f != accessFine {
			return nil, localStatus[f]
		}
		data = append(data, span.bytes()...)
	}
	return data, verbs.StatusSuccess
}

func sglLength(l []verbs.SGE) (n uint64) {
	for _, g := range l {
		n += uint64(g.Length)
	}
	return n
}

// readLocally checks an RDMA Read before it is sent.
func (q *modelQP) readLocally(r verbs.Request) verbs.Status {
	some := r.Local.Length > 0
	switch {
	case q.ord == 0: // 8.2.2 rule 18
		return verbs.StatusZeroReadResources
	case some && (r.Remote.STag == 0 || r.Local.STag == 0), r.Op == verbs.OpReadInvalidate && r.Local.STag>>8 == 0:
		return verbs.StatusInvalidSTag
	}
	// No right is needed before the response comes (7.5.2).
	if _, f := q.access(q.pd, r.Local.STag, r.Local.TO, uint64(r.Local.Length), 0); f != accessFine {
		return localStatus[f]
	}
	return verbs.StatusSuccess
}

// source is what the peer's RDMA Read gets, or what is wrong with it.
func (q *modelQP) source(r verbs.Request) (modelSpan, *modelReport) {
	switch {
	case q.noRead:
		return nil, &readNotEnabled
	case q.ird == 0:
		return nil, &readTooMany
	}
	span, f := q.access(q.pd, r.Remote.STag, r.Remote.TO, uint64(r.Local.Length), verbs.RemoteRead)
	if f != accessFine {
		bad := readFault[f]
		return nil, &bad
	}
	return span, nil
}

// sink is where tagged data from the peer goes, or what is wrong with it.
func (q *modelQP) sink(s verbs.STag, to uint64, n int) (modelSpan, *modelReport) {
	if n > 0 && q.noWrite { // figure 21
		return nil, &writeNotEnabled
	}
	span, f := q.access(q.pd, s, to, uint64(n), verbs.RemoteWrite)
	if f != accessFine {
		bad := taggedFault[f]
		return nil, &bad
	}
	return span, nil
}

// read does an RDMA Read up to its completion. It reports false if it did not come
// to that.
func (q *modelQP) read(e *modelSend) bool {
	if s := q.readLocally(e.Request); s != verbs.StatusSuccess {
		q.blame(e, s)
		return false
	}
	p := q.peer
	p.shut = false
	from, bad := p.source(e.Request)
	if bad != nil {
		p.fault(*bad, e)
		return false
	}
	if e.Local.Length > 0 && q.noWrite { // figure 21
		q.fault(writeNotEnabled, nil)
		return false
	}
	// The sink is looked at now (7.5.2): the request is at fault, and the code is that
	// of a tagged segment.
	to, f := q.access(q.pd, e.Local.STag, e.Local.TO, uint64(e.Local.Length), verbs.RemoteWrite)
	if f != accessFine {
		q.end(modelReport{0, taggedFault[f].code}, e, localStatus[f], nil, nil)
		return false
	}
	to.put(from.bytes())
	if e.Op == verbs.OpReadInvalidate {
		if s := q.invalidateLocal(e.Local.STag); s != verbs.StatusSuccess {
			q.blame(e, s)
			return false
		}
	}
	return true
}

// receive takes a message of the peer.
func (q *modelQP) receive(m modelMessage) {
	q.shut = false
	q.held = append(q.held, m)
	q.resume()
}

// resume handles what has come, as far as there are receives for it (13.2).
func (q *modelQP) resume() {
	for q.state == verbs.StateRTS && len(q.held) > 0 && q.handle(q.held[0]) {
		if len(q.held) > 0 {
			q.held = q.held[1:]
		}
	}
}

// handle reports false if the message has to wait.
func (q *modelQP) handle(m modelMessage) bool {
	if m.Op == verbs.OpWrite {
		span, bad := q.sink(m.Remote.STag, m.Remote.TO, len(m.data))
		if bad != nil {
			q.fault(*bad, nil)
			return true
		}
		span.put(m.data)
		return true
	}
	l, broken := q.take()
	switch {
	case broken:
		q.fault(brokenSRQ, nil)
	case l == nil && q.graceful:
		return false
	case l == nil:
		q.fault(noReceive, nil)
	default:
		q.land(m, l)
	}
	return true
}

// land places a Send in the receive it has taken, and completes that.
func (q *modelQP) land(m modelMessage, l *modelLanding) {
	if uint64(len(m.data)) > sglLength(l.SGL) {
		q.spoil(l, verbs.StatusBaseBounds, codeTooLong)
		return
	}
	spans, s := q.scatter(l, len(m.data))
	if s != verbs.StatusSuccess {
		q.spoil(l, s, 0)
		return
	}
	data := m.data
	for _, span := range spans {
		span.put(data[:span.len()])
		data = data[span.len():]
	}
	c := verbs.Completion{Bytes: uint32(len(m.data))}
	if m.Op == verbs.OpSendInvalidate || m.Op == verbs.OpSendSEInvalidate {
		c.Invalidated, c.HasInvalidated = m.Invalidate, true
		if s, code := q.invalidateRemote(m.Invalidate); s != verbs.StatusSuccess {
			q.spoil(l, s, code)
			return
		}
	}
	if !l.complete(c, m.Op == verbs.OpSendSE || m.Op == verbs.OpSendSEInvalidate) {
		q.fault(recvNotQueued, nil)
	}
}

// scatter finds where n octets go. Only what is used of the list is looked at.
func (q *modelQP) scatter(l *modelLanding, n int) (spans []modelSpan, s verbs.Status) {
	for _, g := range l.SGL {
		k := min(uint64(n), uint64(g.Length))
		span, f := q.access(l.pd, g.STag, g.TO, k, verbs.LocalWrite)
		if f != accessFine {
			return nil, localStatus[f]
		}
		spans = append(spans, span)
		n -= int(k)
	}
	return spans, verbs.StatusSuccess
}
