package netpoll

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The model walks every interleaving of a few goroutines over the table (state.go): what each does is written here as the
// functions of the package do it, a step for each change of what others see. The system is a set that tells of an edge while it
// is armed, and a deadline; beside it is a stream that has a pump and no socket. In a world in which no step is left but the watchdog's timer nothing may be lost:
//
//   - nothing that has arrived is undriven, but while pollers serve, with the timer that sees them go;
//   - not even then if the program has said that it polls no more, or another waiter waits elsewhere, or it is of Soon, or
//     it is of a pump and a thread sleeps on the set, if none has polled since;
//   - no waiter sleeps though its queue has something;
//   - who stands aside has a timer, or somebody who tells it;
//   - behind the end nobody sleeps.
//
// In every world the flags say where their goroutines are, and each of them does get to where it costs nothing.

// world is all that the goroutines share, and where each is.
type world struct {
	s         state
	armed     bool // arrivals are told
	edge      bool // one has been, and the sleeper has not noticed
	past      bool // wake has been called, and not rearm
	ready     int8 // what has arrived at the sockets
	soonList  bool // g.soon has one of Soon
	pumpList  bool // and the stream with a pump
	pumpTold  bool // the server has been told of that
	level     bool // the pump has something
	pollLock  bool
	slot      bool
	token     bool // in told
	timer     bool // the background poller's runs
	completed int8 // what the waiters' queue has
	sleeper   bool // that queue rouses
	awaited   int8 // waiters elsewhere
	yielded   bool // the program polls no more, and has not polled or waited since
	procs     [numProcs]proc
}

// proc is a goroutine: what it runs, how far it is, what it does next because of a change, and what it remembers.
type proc struct {
	runs      program
	pc        int8
	do        stateAction
	drives    int8 // the stream with a pump: 1 it reads, 2 it looks whether to list it again, 3 it has, 4 it is done
	rouse     bool // it has driven something: the queue is told
	got, back bool // of a look, or a sleep; woken by wake
	rounds    int8 // that are left
}

const numProcs = 5

// program is one step of a goroutine: the worlds that it may lead to. None: it cannot go on just now.
type program uint8

const (
	nothing program = iota
	backgroundProgram
	pollerProgram
	waiterProgram
	arrivalProgram
	soonProgram
	pumpProgram
	threadProgram
	completionProgram
	removeProgram
	closeProgram
)

var programNames = [...]string{"", "background", "poller", "waiter", "arrival", "soon", "pump", "thread", "completion", "remove", "close"}

// over is the place where a goroutine has ended.
const over = 100

// on has e happen by goroutine i: what it asks for is a later step.
func (w *world) on(i int, e stateEvent) (yes bool) {
	var do stateAction
	w.s, do, yes = w.s.step(e)
	w.procs[i].do = do
	return yes
}

// look is one of driveSoon and of driveReady, with the poll lock.
func (w *world) look(i int) (got bool) {
	if w.s.has(soon) {
		w.s, _, _ = w.s.step(evDriven) // with g.mu held, as the list is taken
		got = w.soonList || w.pumpList && w.level
		if w.pumpList {
			w.procs[i].drives = 1
		}
		w.soonList, w.pumpList, w.pumpTold = false, false, false
	}
	if w.ready > 0 {
		w.ready, got = 0, true
	}
	if got {
		w.completed = 1
		w.procs[i].rouse = true
	}
	return got
}

// drive is the rest of driveSoon for the stream with a pump: Drive, which reads all that is there, or stops before that, and
// again. A poller gives the poll lock up in a step of its own.
func (w world) drive(i int) []world {
	p := &w.procs[i]
	if p.drives == 1 {
		p.drives = 2
		all := w
		all.level = false
		if !w.level {
			return []world{all}
		}
		return []world{all, w}
	}
	switch p.drives {
	case 2:
		if p.drives = 4; w.level { // due
			w.list(i)
			p.drives = 3
		}
	case 3:
		if p.drives = 4; w.s.has(watched) {
			w.on(i, evArrived)
		}
	default:
		if p.drives = 0; p.runs != pollerProgram && p.runs != threadProgram {
			w.pollLock = false
		}
	}
	return []world{w}
}

// list is that of Socket, of the stream with a pump.
func (w *world) list(i int) {
	if !w.pumpList {
		w.pumpList = true
		w.on(i, evQueue)
	}
}

// pump is pump.tell, twice at most.
func (w world) pump(i int) []world {
	p := &w.procs[i]
	switch p.pc {
	case 0:
		if p.rounds == 0 || w.s.members() == 0 {
			p.pc = over
			break
		}
		p.rounds--
		rises := !w.level
		if w.level = true; rises {
			p.pc = 1
		}
	case 1: // with g.mu held
		p.pc = 0
		if w.level && w.s.members() > 0 && !w.s.has(ended) {
			if w.list(i); !w.pumpTold {
				w.pumpTold, p.pc = true, 2
			}
		}
	case 2:
		w.on(i, evArrived)
		p.pc = 0
	default:
		return nil
	}
	return []world{w}
}

// thread is Group.Watch, and that it sleeps on the set: what is ready there ends the sleep, once.
func (w world) thread(i int) []world {
	p := &w.procs[i]
	switch p.pc {
	case 0:
		if w.s.members() == 0 || w.s.has(ended) {
			p.pc = over
			break
		}
		w.on(i, evWatch)
		p.pc = 1
	case 1:
		if w.pollLock {
			p.pc = 4
			break
		}
		w.pollLock, p.pc = true, 2
	case 2:
		if p.got = false; !w.s.has(ended) {
			p.got = w.look(i)
		}
		p.pc = 3
	case 3:
		if w.pollLock, p.pc = false, 4; p.got {
			p.pc = 0 // the thread looks at its queues, and is back
		}
	case 4:
		if p.pc = 5; w.s.has(soon) {
			w.on(i, evArrived)
		}
	case 5: // asleep
		if w.ready == 0 {
			return nil
		}
		p.pc = 0
	default:
		return nil
	}
	return []world{w}
}

// steps are the worlds behind one step of goroutine i. timed: the watchdog's timer may fire.
func (w world) steps(i int, timed bool) []world {
	p := &w.procs[i]
	switch {
	case p.do&wakeSleeper != 0:
		p.do &^= wakeSleeper
		w.past = true
		return []world{w}
	case p.do&tellBackground != 0:
		p.do &^= tellBackground
		w.token = true
		return []world{w}
	case p.drives > 0:
		return w.drive(i)
	case p.rouse:
		p.rouse = false
		if w.sleeper {
			w.on(i, evRouse)
		}
		return []world{w}
	}
	switch p.runs {
	case backgroundProgram:
		return w.background(i, timed)
	case pollerProgram:
		return w.poller(i)
	case waiterProgram:
		return w.waiter(i)
	case arrivalProgram:
		if p.pc == over {
			return nil
		}
		if w.ready++; w.armed {
			w.edge = true
		}
		p.pc = over
		return []world{w}
	case completionProgram: // not of a stream's: a post that fails, a context that ends
		if p.pc == over {
			return nil
		}
		w.completed, p.rouse, p.pc = 1, true, over
		return []world{w}
	case soonProgram:
		switch p.pc {
		case 0:
			if w.s.members() == 0 || w.s.has(ended) {
				p.pc = over
				break
			}
			w.on(i, evQueue) // with g.mu held
			w.soonList, p.pc = true, 1
		case 1:
			w.on(i, evSoon)
			p.pc = over
		default:
			return nil
		}
		return []world{w}
	case pumpProgram:
		return w.pump(i)
	case threadProgram:
		return w.thread(i)
	case removeProgram, closeProgram:
		return w.ending(i)
	}
	return nil
}

// sleeps is what set.sleep, with tryBackground or tryWait, does from pc on; the same places for both. It reports whether the
// goroutine is in there still; else p.back says whether wake has ended it.
//
//	+0 the deadline, an old edge is forgotten   +3 arming          +6 asleep
//	+1 the poll lock                            +4 the poll lock
//	+2 a look                                   +5 another look
func (w *world) sleeps(i int, pc int8, again, idle func(*world) bool) (in, runs bool) {
	p := &w.procs[i]
	switch p.pc - pc {
	case 0:
		if p.back = w.past; w.past {
			return false, true
		}
		w.edge = false
		fallthrough
	case 7: // as from the start, but for the deadline
		if !again(w) {
			return false, true
		}
		p.pc = pc + 1
	case 1, 4:
		if w.pollLock {
			return true, false
		}
		w.pollLock = true
		p.pc++
	case 2, 5:
		p.got = !w.s.has(ended) && w.s.members() > 0 && w.look(i)
		w.pollLock = p.drives > 0
		switch {
		case p.got:
			p.pc = pc + 8
		case p.pc == pc+5:
			p.pc = pc + 9
		default:
			p.pc = pc + 3
		}
	case 3:
		if p.pc = pc + 9; !w.armed && !w.s.has(ended) {
			w.armed, p.pc = true, pc+4
		}
	case 8: // a look has found something
		if p.runs == backgroundProgram {
			p.pc = pc + 7 // it goes on
			break
		}
		return false, true
	case 9: // nothing
		if !idle(w) {
			return false, true
		}
		p.pc = pc + 6
	case 6:
		switch {
		case w.edge:
			w.edge = false
			p.pc = pc + 7
		case w.past:
			p.back = true
			return false, true
		default:
			return true, false
		}
	}
	return true, true
}

// background is Group.backgroundLoop and stepAside.
func (w world) background(i int, timed bool) []world {
	p := &w.procs[i]
	serves := func(w *world) bool { return w.s.role() == roleBackground && !w.s.has(ended) }
	switch {
	case p.pc == 0: // takeSlot
		switch {
		case !serves(&w) && !w.s.has(ended):
			w.timer, p.pc = true, 7
		case w.slot:
			return nil
		default:
			w.slot, p.pc = true, 1
		}
	case p.pc == 1:
		switch {
		case w.s.has(ended):
			w.slot, p.pc = false, over
		case w.on(i, evBackgroundSleeps):
			p.pc = 10
		default:
			p.pc = 4
		}
	case p.pc >= 10 && p.pc < 20:
		in, runs := w.sleeps(i, 10, serves, func(*world) bool { return true })
		if !runs {
			return nil
		}
		if !in {
			p.pc = 2
		}
	case p.pc == 2:
		w.on(i, evBackgroundWakes)
		p.pc = 3
	case p.pc == 3:
		if p.back {
			w.past, p.back = false, false
		}
		p.pc = 4
	case p.pc == 4:
		if p.pc = 1; !serves(&w) && !w.s.has(ended) {
			p.pc = 5
		}
	case p.pc == 5: // undisturbed
		if w.s.role() != roleWaiter {
			w.armed = false
		}
		p.pc = 6
	case p.pc == 6:
		w.slot, p.pc = false, 0
	case p.pc == 7:
		if serves(&w) || w.s.has(ended) {
			w.timer, p.pc = false, 0
			break
		}
		var all []world
		if w.token {
			v := w
			v.token, v.procs[i].pc = false, 8
			all = append(all, v)
		}
		if timed && w.timer {
			for _, tick := range []stateEvent{evRely, evTakeOver, numStateEvents} {
				v := w
				switch tick {
				case evRely:
					if v.on(i, evRely) {
						v.timer = false
					}
				case evTakeOver:
					v.on(i, evTakeOver)
				default: // undisturbed
					if v.s.role() != roleWaiter {
						v.armed = false
					}
				}
				all = append(all, v)
			}
		}
		return all
	case p.pc == 8:
		w.on(i, evAnswer)
		w.timer, p.pc = true, 7
	default:
		return nil
	}
	return []world{w}
}

// poller is Group.Drive, a few times; at the end the program stops to poll, with Yield or without a word.
func (w world) poller(i int) []world {
	p := &w.procs[i]
	if p.pc != over {
		w.yielded = false
	}
	switch p.pc {
	case 0:
		if p.rounds == 0 {
			silent := w
			silent.procs[i].pc = over
			w.on(i, evYield)
			w.yielded, w.procs[i].pc = true, over
			return []world{silent, w}
		}
		p.rounds--
		if w.s.has(watched) {
			w.on(i, evPoll)
		}
		p.pc = 1
	case 1:
		switch {
		case w.s.members() == 0 || w.pollLock:
			p.pc = 0
		default:
			w.pollLock, p.pc = true, 2
		}
	case 2:
		if w.s.has(ended) {
			w.pollLock, p.pc = false, 0
			break
		}
		p.pc = 3
		if w.s.has(bgParked) { // it has met that often enough, or not
			asks := w
			asks.on(i, evRecount)
			asks.on(i, evStandAside)
			return []world{w, asks}
		}
	case 3:
		w.look(i)
		p.pc = 4
	case 4:
		w.pollLock, p.pc = false, 0
	default:
		return nil
	}
	return []world{w}
}

// waiter is Queue.sleepOn, with Claim, Sleep and Leave; where it cannot, it waits elsewhere, as Queue.Wait does.
func (w world) waiter(i int) []world {
	p := &w.procs[i]
	serves := func(w *world) bool { return !w.s.has(ended) && w.s.members() > 0 }
	switch {
	case p.pc == 0:
		if p.rounds == 0 || w.s.members() == 0 {
			p.pc = over
			break
		}
		if p.rounds--; w.on(i, evClaim) {
			w.yielded, p.pc = false, 1
		} else {
			w.awaited++
			p.pc = 40
		}
	case p.pc == 40:
		w.on(i, evYield)
		p.pc = over
	case p.pc == 1:
		if w.slot {
			return nil
		}
		w.slot, p.pc = true, 2
	case p.pc == 2:
		if p.pc = 3; w.s.has(ended) {
			p.pc = 30
		}
	case p.pc == 3:
		w.sleeper, p.pc = true, 4
	case p.pc == 4: // the queue is looked at
		if p.pc = 5; w.completed > 0 {
			w.completed, p.pc = 0, 29
		}
	case p.pc == 5:
		switch {
		case !serves(&w):
			p.pc = 29
		case w.on(i, evSleep):
			p.pc = 10
		default:
			p.pc = 4
		}
	case p.pc >= 10 && p.pc < 20:
		looks := func(w *world) bool { w.on(i, evLook); return true }
		in, runs := w.sleeps(i, 10, looks, func(w *world) bool { return w.on(i, evPark) })
		if !runs {
			return nil
		}
		if !in {
			p.pc = 20
		}
	case p.pc == 20:
		w.on(i, evAwake)
		p.pc = 21
	case p.pc == 21:
		if p.pc = 4; p.back {
			w.past, p.back, p.pc = false, false, 5
		}
	case p.pc == 29:
		w.sleeper, p.pc = false, 30
	case p.pc == 30:
		w.on(i, evLeave)
		p.pc = 31
	case p.pc == 31:
		w.slot, p.pc = false, 32
	case p.pc == 32:
		if p.pc = 0; w.awaited > 0 {
			w.on(i, evHandOver)
		} else {
			w.on(i, evLeft)
		}
	default:
		return nil
	}
	return []world{w}
}

// ending is Socket.Remove of the last socket, or Close, and Group.shut. The queue's owner rouses who waits for one that goes.
func (w world) ending(i int) []world {
	p := &w.procs[i]
	switch p.pc {
	case 0:
		if p.pc = 1; p.runs == removeProgram {
			w.s -= oneMember
		}
	case 1:
		w.on(i, evEnd)
		p.pc = 2
	case 2:
		if w.slot || w.pollLock || w.procs[0].pc != over {
			return nil
		}
		w.on(i, evDriven)
		w.soonList, w.pumpList, w.ready, w.armed, p.pc = false, false, 0, false, over
	default:
		return nil
	}
	return []world{w}
}

// wrong is what must not be in a world in which no step is left but the timer's.
func (w *world) wrong() string {
	bg := &w.procs[0]
	aside := bg.runs == backgroundProgram && bg.pc == 7
	for i, p := range w.procs {
		atRest := p.pc == over || p.runs == nothing || p.pc == 16 || p.runs == threadProgram && p.pc == 5
		if i == 0 {
			atRest = atRest || aside
		}
		if !atRest {
			return fmt.Sprintf("the %s does not get on from %d", programNames[p.runs], p.pc)
		}
		if p.runs == waiterProgram && p.pc == 16 && (w.completed > 0 || w.s.has(ended) || w.s.members() == 0) {
			return "the waiter sleeps for ever"
		}
	}
	undriven := (w.ready > 0 || w.soonList || w.level) && w.s.members() > 0 && !w.s.has(ended)
	watchedOver := w.s.role() == rolePollers && aside && w.timer
	switch {
	case w.s.has(ended) && bg.pc != over:
		return "the background poller does not end"
	case undriven && !watchedOver:
		return "what has come is not driven"
	case undriven && (w.yielded || w.awaited > 0 || w.soonList || w.level && w.s.has(watched)):
		return "what has come is not driven before the watchdog looks"
	case aside && w.s.role() == rolePollers && !w.timer:
		return "nobody tells the background poller that the waiter has gone"
	case w.s.role() == roleWaiter && !w.slot:
		return "the waiter has gone, and has the role"
	}
	return ""
}

// untrue is what the flags say and is not so.
func (w *world) untrue() string {
	bg, sleeps, looked := &w.procs[0], false, false
	for _, p := range w.procs {
		if p.runs == waiterProgram {
			sleeps = sleeps || p.pc >= 10 && p.pc <= 20
			looked = looked || p.pc == 16 || p.pc == 17 || p.pc == 20 || p.pc == 10
		}
	}
	switch {
	case w.s.has(bgParked) != (bg.pc >= 10 && bg.pc < 20 || bg.pc == 2):
		return "the background poller is parked, or is not"
	case w.s.has(asleep) && !sleeps:
		return "the waiter is asleep, and is not"
	case w.s.has(parked) && !looked:
		return "the waiter has looked, and has not"
	case w.s.has(soon) != (w.soonList || w.pumpList):
		return "there is something to be driven, or is not"
	case w.s.has(relies) && w.timer:
		return "the background poller relies on the waiter, and has a timer"
	}
	return ""
}

// restful is what is good of a world in which no step is left but the timer's.
func (w *world) restful() (good []string) {
	if w.procs[0].pc == 16 {
		good = append(good, "the background poller sleeps")
	}
	if w.procs[0].pc == 7 && w.s.role() == rolePollers {
		good = append(good, "the background poller stands aside")
	}
	if w.procs[0].pc == 7 && !w.timer {
		good = append(good, "the background poller has no timer")
	}
	for _, p := range w.procs {
		if p.runs == waiterProgram && p.pc == 16 {
			good = append(good, "the waiter sleeps")
		}
	}
	return good
}

// crowdOf are goroutines, the background poller first.
func crowdOf(programs ...proc) (p [numProcs]proc) {
	copy(p[:], append([]proc{{runs: backgroundProgram}}, programs...))
	return p
}

// explore walks all worlds from start on and returns how many there are, what is good of those at rest, and how the first
// wrong one was reached.
func explore(start world) (worlds int, good map[string]bool, wrong string) {
	good = make(map[string]bool)
	type link struct {
		from int32
		by   int8
	}
	seen := map[world]int32{start: 0}
	all := []world{start}
	way := []link{{from: -1}}
	for at := 0; at < len(all); at++ {
		w := all[at]
		rests := true
		for i := range w.procs {
			steps := w.steps(i, true)
			if rests = rests && (len(steps) == 0 || i == 0 && len(w.steps(i, false)) == 0); len(steps) == 0 {
				continue
			}
			for _, next := range steps {
				if _, known := seen[next]; !known {
					seen[next] = int32(len(all))
					all = append(all, next)
					way = append(way, link{int32(at), int8(i)})
				}
			}
		}
		what := w.untrue()
		if what == "" && rests {
			what = w.wrong()
			for _, g := range w.restful() {
				good[g] = true
			}
		}
		if what != "" {
			var steps []string
			for k := int32(at); k > 0; k = way[k].from {
				v := &all[k]
				steps = append(steps, fmt.Sprintf("%s %d: %s, armed %v, edge %v, past %v, token %v",
					programNames[v.procs[way[k].by].runs], v.procs[way[k].by].pc, v.s, v.armed, v.edge, v.past, v.token))
			}
			for a, b := 0, len(steps)-1; a < b; a, b = a+1, b-1 {
				steps[a], steps[b] = steps[b], steps[a]
			}
			return len(all), good, what + "\n" + strings.Join(steps, "\n")
		}
	}
	return len(all), good, ""
}

// crowds are those whose interleavings are walked, in every combination that is walked in seconds.
var crowds = func() map[string][numProcs]proc {
	polls := proc{runs: pollerProgram, rounds: 1}
	waits := proc{runs: waiterProgram, rounds: 1}
	twice := proc{runs: waiterProgram, rounds: 2}
	arrives, posts, completes := proc{runs: arrivalProgram}, proc{runs: soonProgram}, proc{runs: completionProgram}
	pumps, watches := proc{runs: pumpProgram, rounds: 2}, proc{runs: threadProgram}
	return map[string][numProcs]proc{
		"nobody but the background poller": crowdOf(arrives, arrives, posts),
		"two pollers":                      crowdOf(polls, polls, arrives),
		"a poller and a waiter":            crowdOf(polls, waits, arrives, posts),
		"a completion":                     crowdOf(polls, waits, completes),
		"two waiters":                      crowdOf(waits, waits, arrives),
		"a waiter that comes back":         crowdOf(twice, arrives, arrives, posts),
		"two pollers and a waiter":         crowdOf(polls, polls, waits, arrives),
		"a poller and one that comes back": crowdOf(polls, twice, arrives),
		"the last socket goes":             crowdOf(waits, posts, proc{runs: removeProgram}),
		"two waiters and the end":          crowdOf(waits, waits, arrives, proc{runs: closeProgram}),
		"a close":                          crowdOf(polls, waits, proc{runs: closeProgram}),
		"a pump":                           crowdOf(pumps, pumps, posts),
		"a pump and two pollers":           crowdOf(polls, polls, pumps),
		"a pump, a poller and a waiter":    crowdOf(polls, waits, pumps),
		"a pump and a waiter":              crowdOf(twice, pumps, arrives),
		"a pump, and the last socket goes": crowdOf(waits, pumps, proc{runs: removeProgram}),
		"a pump and a close":               crowdOf(waits, pumps, proc{runs: closeProgram}),
		"a thread":                         crowdOf(watches, pumps, arrives),
		"a thread and a poller":            crowdOf(watches, polls, pumps),
		"a thread and a waiter":            crowdOf(watches, waits, pumps),
	}
}()

// TestEveryInterleaving of those who serve loses nothing.
func TestEveryInterleaving(t *testing.T) {
	var mu sync.Mutex
	rests := make(map[string]bool)
	t.Cleanup(func() {
		for _, good := range []string{
			"the background poller sleeps", "the background poller stands aside", "the background poller has no timer", "the waiter sleeps",
		} {
			assert.True(t, rests[good], good)
		}
	})
	for name, procs := range crowds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := world{procs: procs, s: roleBackground | oneMember}
			worlds, good, wrong := explore(start)
			t.Log(worlds, "worlds")
			require.Empty(t, wrong)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(rests, good)
		})
	}
}
