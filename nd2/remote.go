package nd2

import "github.com/softrnic/softrnic/verbs"

// Read reads the peer's memory: remoteToken and remoteAddress are what the peer
// told; the octets go to the buffers of the list, one after another. The regions of
// the list need MRFlagRDMAReadSink. The list may be empty: such a Read tells that
// the peer's adapter works. Flags: OpFlagSilentSuccess, OpFlagReadFence.
//
// A list of several entries is one request with one result, and takes one place of
// the queue; on the wire it is a Read for each entry that is not empty, and each
// counts for the outbound read limit: those beyond it wait.
//
// Errors: ErrConnectionInvalid, ErrBufferOverflow (too many octets),
// ErrDataOverrun (too long a list), ErrNoMoreEntries, ErrAccessViolation (a region
// is no sink), ErrInvalidParameter6 (flags). What the peer refuses is a result with
// ErrRemoteError (ND-Read-R6).
func (q *QueuePair) Read(requestContext any, sge []SGE, remoteAddress uint64, remoteToken uint32, flags OpFlags) error {
	total := octets(sge)
	switch {
	case flags&^readFlags != 0:
		return ErrInvalidParameter6
	case !q.ready(): // ND-Read-R2
		return ErrConnectionInvalid
	case total > verbs.MaxMessage: // ND-Read-R3
		return ErrBufferOverflow
	case len(sge) > q.cfg.initiatorSge: // ND-Read-R5
		return ErrDataOverrun
	case total > 0 && !q.a.sinks(sge):
		return ErrAccessViolation
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s, err := q.begin(RequestTypeRead, requestContext, flags)
	if err != nil {
		return err
	}
	n := q.fence(flags)
	q.parts[n] = verbs.Request{Op: verbs.OpRead}
	if total > 0 {
		q.parts[n].SGL, q.parts[n].Remote = gather(q.list, sge), verbs.Remote{STag: verbs.STag(remoteToken), TO: remoteAddress}
	}
	return q.post(s, n+1)
}

// fence makes the first part of a request one that holds the queue until all earlier
// requests are complete, if flags ask for that, and reports how many parts there
// are. verbs fences Sends and Writes only; its Invalidate waits for all, and
// invalidating what is Invalid changes nothing (ND-Read-F2, ND-Bind-F2).
func (q *QueuePair) fence(flags OpFlags) int {
	if flags&OpFlagReadFence == 0 {
		return 0
	}
	q.parts[0] = verbs.Request{Op: verbs.OpInvalidate, Flags: verbs.LocalFence, Invalidate: q.a.fence.STag()}
	return 1
}

// Bind lets the peer reach buf, which lies in the memory of region, through window:
// read it with OpFlagAllowRead, write to it with OpFlagAllowWrite; one of the two is
// needed. Other flags: OpFlagSilentSuccess, OpFlagReadFence. A request posted
// later finds the window bound; its token can be had at once.
//
// Errors: ErrConnectionInvalid, ErrNoMoreEntries, ErrAccessViolation (buf is not
// within the region, or the region does not allow what flags do),
// ErrInvalidParameter2 and 3 (the region is not registered, or one of the two is
// not this adapter's), ErrInvalidParameter6 (flags), ErrInvalidDeviceState (the
// window is bound; see Invalidate).
func (q *QueuePair) Bind(requestContext any, region *MemoryRegion, window *MemoryWindow, buf []byte, flags OpFlags) error {
	switch {
	case region == nil || region.a != q.a:
		return ErrInvalidParameter2
	case window == nil || window.a != q.a:
		return ErrInvalidParameter3
	case flags&^bindFlags != 0 || flags&bindRights == 0:
		return ErrInvalidParameter6
	case !q.ready(): // ND-Bind-R2
		return ErrConnectionInvalid
	}
	v, off, err := region.bindable(buf, flags)
	if err != nil { // ND-Bind-R4
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	window.mu.Lock()
	defer window.mu.Unlock()
	if err := window.free(q); err != nil { // ND-Bind-M2
		return err
	}
	s, err := q.begin(RequestTypeBind, requestContext, flags)
	if err != nil {
		return err
	}
	var rights verbs.Access
	if flags&OpFlagAllowRead != 0 { // ND-Bind-F3
		rights |= verbs.RemoteRead
	}
	if flags&OpFlagAllowWrite != 0 { // ND-Bind-F4
		rights |= verbs.RemoteWrite
	}
	token := window.v.STag(window.key + 1)
	q.bindArg = verbs.BindRequest{
		Window: token, Region: v.STag(), VA: v.Base() + uint64(off), Length: uint64(len(buf)), Access: rights,
	}
	n := q.fence(flags)
	q.parts[n] = verbs.Request{Op: verbs.OpBind, Bind: &q.bindArg}
	if err := q.post(s, n+1); err != nil {
		return err
	}
	window.key++
	window.token = uint32(token) // ND-Bind-M6
	window.bind(q)
	return nil
}

// Invalidate takes the window from the peer. Do so when the peer has said that it is
// done: what it reads or writes there afterwards ends the connection
// (ND-Invalidate-M1, M2). Flags: OpFlagSilentSuccess, OpFlagReadFence. Another Bind
// of the window may follow at once on this queue pair; on another, when the result
// is there.
//
// Errors: ErrConnectionInvalid, ErrNoMoreEntries, ErrInvalidParameter2 (the window
// is not this adapter's), ErrInvalidParameter3 (flags), ErrInvalidDeviceRequest (the
// window is not bound to this queue pair).
func (q *QueuePair) Invalidate(requestContext any, window *MemoryWindow, flags OpFlags) error {
	switch {
	case window == nil || window.a != q.a:
		return ErrInvalidParameter2
	case flags&^invalidateFlags != 0:
		return ErrInvalidParameter3
	case !q.ready(): // ND-Invalidate-R2
		return ErrConnectionInvalid
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	window.mu.Lock()
	defer window.mu.Unlock()
	if window.qp != q || window.ending {
		return ErrInvalidDeviceRequest
	}
	s, err := q.begin(RequestTypeInvalidate, requestContext, flags)
	if err != nil {
		return err
	}
	w := verbs.Request{Op: verbs.OpInvalidate, Invalidate: verbs.STag(window.token)}
	if flags&OpFlagReadFence != 0 { // ND-Invalidate-F2
		w.Flags = verbs.LocalFence
	}
	q.parts[0] = w
	if err := q.post(s, 1); err != nil {
		return err
	}
	window.ending = true // ND-Bind-M3
	return nil
}
