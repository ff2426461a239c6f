package qp

// Graceful receive overflow (verbs draft 13.2, Config.GracefulReceive; with an S-RQ
// also while others hold its receives in part). A Send
// that finds no receive waits where it is, in the receive buffer, and nothing
// more is read from the LLP, whose flow control then stops the peer. Everything
// else of the session goes on. (With Config.PlacedWrites a little is read on: overtake.go.)
//
//	openRecv     finds no receive, asks to be woken, looks again, still none
//	deliver      keeps the ULPDU in the intake: the stream is paused
//	pause        says that nothing is to be read from the socket
//	PostRecv or a post to the S-RQ wakes the receive side
//	drive        delivers the ULPDU again
//
// No wake-up is lost: the receiver looks once more before it sleeps, and the poster
// looks whether it has asked after the receive is there to be seen. A token without need
// costs one look.
//
// What was not read is not known: while it is paused a session does not see that
// the peer has closed or reset the stream, or sent a Terminate Message, unless its
// own sending fails.

// requestRecv asks to be woken at the next post.
func (r *receiver) requestRecv() {
	if shared := r.cfg.SRQ; shared != nil {
		shared.Await(r)
		return
	}
	r.wantRecv.Store(true)
}

// recvPosted says that receives were posted to the Receive Queue.
func (r *receiver) recvPosted() {
	if r.wantRecv.Load() && r.wantRecv.Swap(false) {
		r.Wake()
	}
}

// Wake implements srq.Waiter: there may be a receive.
func (r *receiver) Wake() { r.s.sock.Soon() }

// noteWait tells that the message which is due waits for a receive. The caller owns the side.
func (r *receiver) noteWait() {
	msn := r.send.MSN()
	r.count.waitsFor(msn)
	if tell := r.s.q.readiness.Waits; !r.paused.set(msn) && tell != nil {
		tell(msn)
	}
}

// pause keeps ulpdu until there is a receive for it. The caller owns the side.
func (r *receiver) pause(ulpdu []byte) {
	r.in.keep(ulpdu)
	r.s.sock.Pause()
}

// forgetRecvRequest makes the S-RQ forget this session.
func (r *receiver) forgetRecvRequest() {
	if shared := r.cfg.SRQ; shared != nil {
		shared.Forget(r)
	}
}
