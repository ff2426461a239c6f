package netpoll

import "strings"

// state is who serves a Group, and what has to be known to wake the right one: one word, which Group.on alone changes, by
// the table below, but for the number of sockets in its upper half.
//
//	              evStandAside            evClaim
//	                 ----->               ----->
//	background poller         pollers             waiter
//	                 <-----               <-----
//	          evTakeOver, evAnswer        evLeave
//
// A claim also goes straight from the background poller to the waiter.
type state uint64

// The role that serves.
const (
	roleBackground state = iota // the background poller
	rolePollers                 // pollers, or a waiter that is about to return; or none, for a while
	roleWaiter                  // a waiter, which has the poller slot or is about to have it
	roleMask       = 3
)

// The flags.
const (
	bgParked state = 4 << iota // the background poller sleeps, or looks for the last time
	relies                     // it has stepped aside without a timer: the waiter tells it when it leaves
	resume                     // it is asked to take over
	asleep                     // the waiter sleeps, or looks for the last time
	parked                     // it has looked: only a wake-up ends the sleep
	woken                      // it has been roused, and has not noticed
	watched                    // a thread sleeps on the set itself: see Watch
	recount                    // polls that find the background poller parked count from nought
	soon                       // there are streams to be driven, whatever the system says of them
	held                       // there are streams that hold something back
	sets                       // there are sets of the system: sleepers sleep there
	ended                      // the set and the background poller are about to go
	numFlags = iota
)

// oneMember is a socket that is served.
const oneMember state = 1 << 32

func (s state) role() state      { return s & roleMask }
func (s state) has(f state) bool { return s&f != 0 }
func (s state) members() int     { return int(s >> 32) }

// event is what may happen to a Group.
type stateEvent uint8

// The events, by whose they are.
const (
	// A waiter's.
	evClaim    stateEvent = iota // it asks for the poller slot
	evSleep                      // it is about to sleep
	evLook                       // it looks what is ready
	evPark                       // it has found nothing, and is about to stop looking
	evAwake                      // it sleeps no more
	evLeave                      // it gives the slot up
	evLeft                       // it has, and nobody else waits
	evHandOver                   // it has, and somebody else waits
	// A poller's.
	evStandAside // it has met the background poller again and again
	evRecount    // it begins to count how often it meets that
	evPoll       // it polls, and nothing is awaited: no thread sleeps on the set
	evYield      // the program polls no more
	evWatch      // a thread is about to sleep on the set
	// The background poller's.
	evBackgroundSleeps // it is about to sleep
	evBackgroundWakes  // it sleeps no more
	evAnswer           // it has been told something while it stood aside
	evTakeOver         // it has seen the pollers go
	evRely             // it has seen no polls since long, and would stop its timer
	// Anybody's.
	evRouse   // the waiter is to look at its queue
	evSoon    // there is something to do of which the system does not tell
	evArrived // a stream without a descriptor is ready; pollers see that by themselves
	evQueue   // a stream is among those to be driven soon
	evDriven  // none is any more
	evHold    // a stream holds something back
	evFlush   // none does any more
	// The group's.
	evSets   // it has made sets of the system
	evNoSets // it is about to close them
	evOpen   // it begins to serve
	evEnd    // it ends
	numStateEvents
)

var stateEventNames = [numStateEvents]string{
	"claim", "sleep", "look", "park", "awake", "leave", "left", "hand over",
	"stand aside", "recount", "poll", "yield", "watch",
	"background sleeps", "background wakes", "answer", "take over", "rely",
	"rouse", "soon", "arrived", "queue", "driven", "hold", "flush", "sets", "no sets", "open", "end",
}

func (e stateEvent) String() string { return stateEventNames[e] }

// stateAction is what is to be done after a change, outside of it.
type stateAction uint8

const (
	wakeSleeper    stateAction = 1 << iota // end the sleep of the holder of the poller slot
	tellBackground                         // a token for the background poller that stands aside: it looks after those that serve again
)

// roles are those that a row is for.
type roles uint8

const (
	background roles = 1 << roleBackground
	pollers    roles = 1 << rolePollers
	waiter     roles = 1 << roleWaiter
	anyRole          = background | pollers | waiter
	stays      state = roleMask // row.to: the role stays
)

// row is a line of the table: in one of the roles, with and without the flags, the event leads to a role, sets and clears
// flags and has something done. no: the answer to the one that asks is no.
type row struct {
	on            stateEvent
	in            roles
	with, without state
	to            state
	set, clear    state
	do            stateAction
	no            bool
}

// table has the rows of each event together; the first that fits counts. Where none fits nothing changes, and the answer
// is no.
var table = [...]row{
	// The background poller that is parked has the slot, and leaves it when it is woken.
	{on: evClaim, in: background | pollers, with: bgParked, without: ended, to: roleWaiter, clear: woken, do: wakeSleeper},
	{on: evClaim, in: background | pollers, without: ended, to: roleWaiter, clear: woken},
	{on: evSleep, in: waiter, without: woken | ended, to: stays, set: asleep},
	{on: evSleep, in: waiter, with: woken, to: stays, clear: woken, no: true},
	{on: evLook, in: waiter, to: stays, clear: parked},
	// What it drives itself may rouse it, and need not wake it.
	{on: evPark, in: waiter, without: woken | ended, to: stays, set: parked},
	{on: evAwake, in: waiter, to: stays, clear: asleep | parked},
	{on: evLeave, in: waiter, to: rolePollers, clear: asleep | parked | woken},
	{on: evLeft, in: pollers, with: soon, to: stays, set: resume, do: tellBackground},
	{on: evLeft, in: pollers, with: resume, to: stays, do: tellBackground}, // asked for while there was a waiter
	{on: evLeft, in: anyRole, with: relies, to: stays, clear: relies, do: tellBackground},
	{on: evHandOver, in: pollers, to: stays, set: resume, do: tellBackground},

	{on: evStandAside, in: background, with: bgParked, without: ended, to: rolePollers, do: wakeSleeper},
	{on: evRecount, in: anyRole, with: recount, to: stays, clear: recount},
	{on: evPoll, in: anyRole, to: stays, clear: watched},
	{on: evYield, in: background, to: stays, set: recount},
	{on: evYield, in: pollers | waiter, to: stays, set: recount | resume, do: tellBackground},
	{on: evWatch, in: anyRole, to: stays, set: watched},

	{on: evBackgroundSleeps, in: background, without: ended, to: stays, set: bgParked},
	{on: evBackgroundWakes, in: anyRole, to: stays, clear: bgParked},
	// Its timer starts anew in any case: a waiter may claim the slot before it has noticed that it serves.
	{on: evAnswer, in: pollers, with: resume, to: roleBackground, set: recount, clear: resume | relies},
	{on: evAnswer, in: anyRole, to: stays, clear: relies},
	{on: evTakeOver, in: pollers, to: roleBackground, set: recount, clear: resume},
	{on: evRely, in: waiter, to: stays, set: relies},

	{on: evRouse, in: waiter, with: parked, to: stays, set: woken, do: wakeSleeper},
	{on: evRouse, in: waiter, to: stays, set: woken},
	{on: evSoon, in: waiter, with: parked, to: stays, set: woken, do: wakeSleeper},
	{on: evSoon, in: waiter, to: stays, set: woken},
	{on: evSoon, in: background, with: bgParked, to: stays, do: wakeSleeper},
	{on: evSoon, in: pollers, to: stays, set: resume, do: tellBackground}, // the polls may have ended
	{on: evArrived, in: waiter, with: parked, to: stays, set: woken, do: wakeSleeper},
	{on: evArrived, in: waiter, to: stays, set: woken},
	{on: evArrived, in: background, with: bgParked, to: stays, do: wakeSleeper},
	{on: evArrived, in: pollers, with: watched, to: stays, set: resume, do: tellBackground}, // the thread does not sleep on this
	{on: evQueue, in: anyRole, to: stays, set: soon},
	{on: evDriven, in: anyRole, to: stays, clear: soon},
	{on: evHold, in: anyRole, to: stays, set: held},
	{on: evFlush, in: anyRole, to: stays, clear: held},

	{on: evSets, in: anyRole, to: stays, set: sets},
	{on: evNoSets, in: anyRole, with: sets, to: stays, clear: sets},
	{on: evOpen, in: waiter, to: stays, clear: ended}, // it had claimed the slot before the end, and has not got it yet
	{on: evOpen, in: background | pollers, to: roleBackground, set: recount, clear: relies | resume | woken | watched | ended},
	{on: evEnd, in: anyRole, to: stays, set: ended | woken, do: wakeSleeper},
}

// rows are the table by event.
var rows = func() (r [numStateEvents][]row) {
	for i, t := range table {
		first := i
		for first > 0 && table[first-1].on == t.on {
			first--
		}
		r[t.on] = table[first : i+1]
	}
	return r
}()

// step is the table: what e makes of s, what is to be done, and the answer.
func (s state) step(e stateEvent) (next state, do stateAction, yes bool) {
	for i := range rows[e] {
		r := &rows[e][i]
		if r.in>>s.role()&1 == 0 || s&r.with != r.with || s&r.without != 0 {
			continue
		}
		next = s&^r.clear | r.set
		if r.to != stays {
			next = next&^roleMask | r.to
		}
		return next, r.do, !r.no
	}
	return s, 0, false
}

// on has e happen: it changes the state, and does what is to be done. It reports the answer.
func (g *Group) on(e stateEvent) bool {
	for {
		s := state(g.state.Load())
		next, do, yes := s.step(e)
		if next != s && !g.state.CompareAndSwap(uint64(s), uint64(next)) {
			continue
		}
		if do != 0 {
			g.act(do)
		}
		return yes
	}
}

// act does what a change asks for. No lock of the group's but pollLock, slot or life may be held.
func (g *Group) act(do stateAction) {
	if do&wakeSleeper != 0 {
		g.mu.Lock()
		if g.open {
			g.set.wake()
		}
		g.mu.Unlock()
	}
	if do&tellBackground != 0 {
		signal(g.told)
	}
}

// now is the state.
func (g *Group) now() state { return state(g.state.Load()) }

var roleNames = [...]string{"background", "pollers", "waiter"}

var flagNames = [numFlags]string{
	"bgParked", "relies", "resume", "asleep", "parked", "woken", "watched", "recount", "soon", "held", "sets", "ended",
}

func (s state) String() string {
	words := []string{roleNames[s.role()]}
	for i, n := range flagNames {
		if s.has(bgParked << i) {
			words = append(words, n)
		}
	}
	return strings.Join(words, " ")
}
