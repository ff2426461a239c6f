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
func (s *session) askForFeed() {
	if shared := s.q.cfg.SRQ; shared != nil {
		shared.Await(s.rx.feed)
		return
	}
	s.rx.hungry.Store(true)
}

// feed says that receives were posted to the Receive Queue.
func (s *session) feed() {
	if s.rx.hungry.Load() && s.rx.hungry.Swap(false) {
		signal(s.rx.feed)
	}
}

// pause keeps ulpdu until there is a receive for it. The caller owns the side.
func (s *session) pause(ulpdu []byte) {
	s.rx.in.kept = ulpdu
	if s.llp.parked.Load() {
		s.llp.wakeReader() // to where receiveLoop can be fed
	}
	s.Rouse() // who sleeps here makes way for it
}

// awaitFeed sleeps until receives were posted, or the session ends.
func (s *session) awaitFeed() {
	select {
	case <-s.rx.feed:
	case <-s.stop:
	}
}

// noFeed makes the S-RQ forget this session.
func (s *session) noFeed() {
	if shared := s.q.cfg.SRQ; shared != nil && s.q.cfg.GracefulReceive {
		shared.Forget(s.rx.feed)
	}
}
