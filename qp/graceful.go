package qp

// Graceful receive overflow (verbs draft 13.2, Config.GracefulReceive). A Send
// that finds no receive waits where it is, in the receive buffer, and nothing
// more is read from the LLP, whose flow control then stops the peer. Everything
// else of the session goes on.
//
//	openLanding  finds no receive, asks for feed, looks again, still none
//	deliver      keeps the ULPDU in the intake: the stream is paused
//	receiveLoop  sleeps in awaitFeed, pollers find nothing to drive
//	PostRecv or a post to the S-RQ leaves a token in feed
//	receiveLoop  delivers the ULPDU again; a poller may have been faster
//
// No wake-up is lost: who asks looks once more before it sleeps, and who posts
// looks who has asked after the receive is there to be seen. A token without need
// costs one look.
//
// What was not read is not known: while it is paused a session does not see that
// the peer has closed or reset the stream, or sent a Terminate Message, unless its
// own sending fails.

// askForFeed asks for a token in feed at the next post.
func (r *receiver) askForFeed() {
	if shared := r.cfg.SRQ; shared != nil {
		shared.Await(r.feed)
		return
	}
	r.hungry.Store(true)
}

// feed says that receives were posted to the Receive Queue.
func (r *receiver) fed() {
	if r.hungry.Load() && r.hungry.Swap(false) {
		signal(r.feed)
	}
}

// pause keeps ulpdu until there is a receive for it. The caller owns the side.
func (r *receiver) pause(ulpdu []byte) {
	r.in.keep(ulpdu)
	if r.llp.parked.Load() {
		r.llp.wakeReader() // to where receiveLoop can be fed
	}
	r.Rouse() // who sleeps here makes way for it
}

// awaitFeed sleeps until receives were posted, or the session ends.
func (r *receiver) awaitFeed() {
	select {
	case <-r.feed:
	case <-r.s.stop:
	}
}

// noFeed makes the S-RQ forget this session.
func (r *receiver) noFeed() {
	if shared := r.cfg.SRQ; shared != nil && r.cfg.GracefulReceive {
		shared.Forget(r.feed)
	}
}
