package nd2

import (
	"errors"

	"github.com/softrnic/softrnic/verbs"
)

// Send sends a message to the peer, which has to have posted a Receive for it. The
// list may be empty: the message has no octets then, and takes a Receive all the
// same. Flags: OpFlagSilentSuccess, OpFlagReadFence, OpFlagSendAndSolicitEvent,
// OpFlagInline. It succeeds when the network has taken the last octet: over iWARP
// nobody tells whether the message fit the peer's Receive.
//
// Errors: ErrConnectionInvalid, ErrBufferOverflow (too many octets, inline or at
// all), ErrDataOverrun (too long a list), ErrNoMoreEntries, ErrInvalidParameter4
// (flags).
func (q *QueuePair) Send(requestContext any, sge []SGE, flags OpFlags) error {
	if flags&^sendFlags != 0 { // ND-Send-R6
		return ErrInvalidParameter4
	}
	op := verbs.OpSend
	if flags&OpFlagSendAndSolicitEvent != 0 { // ND-Send-F3
		op = verbs.OpSendSE
	}
	return q.send(RequestTypeSend, op, verbs.Remote{}, requestContext, sge, flags)
}

// Write writes to the peer's memory: remoteToken and remoteAddress are what the peer
// told. The list may be empty. Flags: OpFlagSilentSuccess, OpFlagReadFence,
// OpFlagInline. It succeeds when the network has taken the last octet; what the peer
// refuses ends the connection.
//
// Errors: as Send, but ErrInvalidParameter6 (flags).
func (q *QueuePair) Write(requestContext any, sge []SGE, remoteAddress uint64, remoteToken uint32, flags OpFlags) error {
	if flags&^writeFlags != 0 { // ND-Write-R6
		return ErrInvalidParameter6
	}
	at := verbs.Remote{STag: verbs.STag(remoteToken), TO: remoteAddress}
	return q.send(RequestTypeWrite, verbs.OpWrite, at, requestContext, sge, flags)
}

// send posts a Send or Write.
func (q *QueuePair) send(typ RequestType, op verbs.Op, at verbs.Remote, requestContext any, sge []SGE, flags OpFlags) error {
	if !q.ready() { // ND-Send-R2
		return ErrConnectionInvalid
	}
	total, inline := octets(sge), flags&OpFlagInline != 0
	switch {
	case total > verbs.MaxMessage, inline && total > uint64(q.cfg.inline): // ND-Send-R3, ND-Send-F4
		return ErrBufferOverflow
	case !inline && len(sge) > q.cfg.initiatorSge: // ND-Send-R5
		return ErrDataOverrun
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s, err := q.begin(typ, requestContext, flags)
	if err != nil {
		return err
	}
	w := &q.parts[0]
	*w = verbs.Request{Op: op, Remote: at}
	switch {
	case total == 0:
	case inline:
		w.SGL = q.copied(sge, int(total))
	default:
		w.SGL = gather(q.list, sge)
	}
	if flags&OpFlagReadFence != 0 { // ND-Send-F2
		w.Flags = verbs.ReadFence
	}
	return q.post(s, 1)
}

// octets is the length of a list.
func octets(sge []SGE) (n uint64) {
	for i := range sge {
		n += uint64(len(sge[i].Buffer))
	}
	return n
}

// gather makes a list of verbs; it lies in list.
func gather(list []verbs.SGE, sge []SGE) []verbs.SGE {
	for i := range sge {
		list[i] = element(&sge[i])
	}
	return list[:len(sge)]
}

func element(s *SGE) verbs.SGE {
	return verbs.SGE{STag: verbs.STag(s.MemoryRegionToken), TO: Address(s.Buffer), Length: uint32(len(s.Buffer))}
}

// copied takes the octets of a list for the slot at hand, with mu held, and is where
// they lie (ND-SGE-M1).
func (q *QueuePair) copied(sge []SGE, total int) []verbs.SGE {
	at := int(q.sends.tail&q.sends.mask) * q.cfg.inline
	room := q.inlines.Bytes()[at : at+total]
	for i := range sge {
		room = room[copy(room, sge[i].Buffer):]
	}
	q.list[0] = q.inlines.SGE(at, total)
	return q.list[:1]
}

// begin takes a slot for a request, with mu held.
func (q *QueuePair) begin(typ RequestType, requestContext any, flags OpFlags) (*slot, error) {
	s := q.sends.reserve()
	if s == nil && q.sends.unknown() {
		q.cfg.initiator.collect()
		s = q.sends.reserve()
	}
	if s == nil { // ND-Send-R4
		return nil, ErrNoMoreEntries
	}
	s.fill(typ, requestContext, flags&OpFlagSilentSuccess != 0)
	return s, nil
}

// ready reports whether requests may be posted: verbs would keep those of a queue pair
// that is not connected yet.
func (q *QueuePair) ready() bool { return q.open.Load() && q.v.State() == verbs.StateRTS }

// marks is how many of a queue full of silent requests complete in verbs, to tell that
// those before them are over. Nobody sees these completions.
const marks = 4

// post posts the first n parts as the request in s, with mu held. The last has the
// result of all (ND-Read-M1).
func (q *QueuePair) post(s *slot, n int) error {
	silent := s.silent && marks*(q.silent+1) < q.cfg.sendDepth // ND-Send-F1
	for i := range n {
		p := &q.parts[i]
		p.ID = q.sends.partID(i == n-1)
		if silent || i < n-1 {
			p.Flags |= verbs.Unsignaled
		}
	}
	if _, err := q.v.PostSend(q.parts[:n]...); err != nil {
		s.drop()
		return postError(err)
	}
	q.sends.tail++
	if q.silent++; !silent {
		q.silent = 0
	}
	return nil
}

// postError is what a post that verbs refuses fails with. There is always room.
func postError(err error) error {
	if errors.Is(err, verbs.ErrInvalidState) { // ND-Send-R2: the connection has ended
		return ErrConnectionInvalid
	}
	return explain(err)
}

// Receive posts buffers for one message of the peer. It may be called at any time
// (ND-Receive-M1): before connecting, and after the connection has ended, when it
// completes with ErrCanceled. The list may be empty, for a message of no octets.
//
// Errors: ErrBufferOverflow (too many octets), ErrDataOverrun (too long a list),
// ErrNoMoreEntries, ErrNotSupported (the Receives come from a shared receive
// queue), ErrInvalidHandle (the queue pair is closed), ErrDeviceRemoved.
func (q *QueuePair) Receive(requestContext any, sge []SGE) error {
	switch {
	case q.receives == nil:
		return ErrNotSupported
	case octets(sge) > verbs.MaxMessage: // ND-Receive-R2
		return ErrBufferOverflow
	case len(sge) > q.cfg.receiveSge: // ND-Receive-R4
		return ErrDataOverrun
	}
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	if q.gone {
		return ErrInvalidHandle
	}
	s := q.receives.reserve()
	if s == nil { // ND-Receive-R3
		return ErrNoMoreEntries
	}
	s.fill(RequestTypeReceive, requestContext, false)
	r := verbs.Recv{ID: q.receives.partID(true), SGL: gather(q.recvList, sge)}
	_, err := q.v.PostRecv(r)
	if errors.Is(err, verbs.ErrInvalidState) {
		err = q.cancel(r)
	}
	if err != nil {
		s.drop()
		return explain(err)
	}
	q.receives.tail++
	return nil
}

// cancel completes a Receive that comes after the end of the connection with
// ErrCanceled (ND-Receive-M8), with recvMu held: by way of a queue pair that is
// never connected, so that the completion queue tells as of any other.
func (q *QueuePair) cancel(r verbs.Recv) (err error) {
	if q.after == nil {
		q.after, err = q.a.nic.CreateQP(verbs.QPConfig{
			PD: q.a.pd, SendCQ: q.cfg.initiator.v, RecvCQ: q.cfg.receive.v, NoReads: true,
			SendDepth: 1, RecvDepth: max(q.cfg.receiveDepth, 1), RecvSGE: max(q.cfg.receiveSge, 1),
		})
		if err != nil {
			return err
		}
	}
	if _, err := q.after.PostRecv(r); err != nil {
		return err
	}
	if err := q.after.Modify(verbs.ModifyQP{Next: verbs.StateError}); err != nil {
		return err
	}
	return q.after.Modify(verbs.ModifyQP{Next: verbs.StateIdle})
}
