package netpoll

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/softrnic/softrnic/internal/tcpsock"
)

// set is two sets of the system (epoll): inner has the sockets, and outer, which the
// runtime waits for, has inner while it is armed. A thread of the runtime wakes at
// arrivals only then.
//
// What the runtime is told is an edge: a look at inner that finds nothing has to come
// before each sleep, behind the arming.
//
// A group makes them for its first socket, and has the flag sets then. Until then its sleeper sleeps in the waker. What is
// set by open and close is read behind that flag, or with Group.mu held.
type set struct {
	waker
	inner    int
	outer    *os.File // nil: there are no sets
	raw      syscall.RawConn
	fd       int // of outer
	armed    bool
	detached bool    // inner is not in outer at all
	low      *Socket // has lowWater; nil: none
	try      func() bool
	onTry    func(fd uintptr) bool
	did      bool               // try has done something
	ctl      syscall.EpollEvent // of the call under way, which does not let it stay on the stack
}

// event is one of the system's.
type event syscall.EpollEvent

func (e *event) slot() int32 { return e.Fd }
func (e *event) gen() int32  { return e.Pad }

// what is the event in our terms. A failure is told to the reader and to the writer.
func (e *event) what() (r Ready) {
	if e.Events&^syscall.EPOLLOUT != 0 {
		r |= In
	}
	if e.Events&(syscall.EPOLLOUT|syscall.EPOLLERR|syscall.EPOLLHUP) != 0 {
		r |= Out
	}
	return r
}

// open makes the sets. With Group.mu held, as close.
func (s *set) open() error {
	inner, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	outer, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		_ = syscall.Close(inner)
		return os.NewSyscallError("epoll_create1", err)
	}
	s.inner, s.fd = inner, outer
	_ = syscall.SetNonblock(outer, true) // or the runtime does not wait for it
	f := os.NewFile(uintptr(outer), "epoll")
	e := syscall.EpollEvent{Fd: int32(inner)}
	err = syscall.EpollCtl(outer, syscall.EPOLL_CTL_ADD, inner, &e)
	if err == nil {
		s.raw, err = f.SyscallConn()
	}
	if err == nil {
		err = f.SetDeadline(time.Time{}) // the runtime does wait for it
	}
	if err != nil {
		_ = syscall.Close(inner)
		_ = f.Close()
		return os.NewSyscallError("epoll_ctl", err)
	}
	s.onTry = func(uintptr) bool { s.did = s.try(); return s.did }
	s.outer = f
	return nil
}

func (s *set) close() {
	_ = s.outer.Close()
	s.outer = nil
	_ = syscall.Close(s.inner)
	s.inner, s.fd = -1, -1 // the numbers are others' from here on
	s.armed, s.detached, s.low = false, false, nil
}

// arm makes arrivals wake the sleeper, and reports whether they did not until now. With
// Group.mu held, as the next ones.
func (s *set) arm() bool {
	if s.armed || s.outer == nil {
		return false
	}
	s.clearLowWater()
	if !s.detached {
		s.armed = true
		s.control(syscall.EPOLLIN)
		return true
	}
	s.ctl = syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(s.inner)}
	if syscall.EpollCtl(s.fd, syscall.EPOLL_CTL_ADD, s.inner, &s.ctl) == nil {
		s.armed, s.detached = true, false
	} else { // out of memory, or of epoll's share of it: the sleeper looks again by itself
		_ = s.outer.SetReadDeadline(time.Now().Add(lookAgain))
	}
	return true
}

// lookAgain is after how long a sleeper looks again if no arrival can wake it.
const lookAgain = time.Millisecond

// detach is disarm for long. What arrives is then not even told to the outer set, which
// would ignore it: on a busy machine that took half of what the sender could send.
func (s *set) detach() {
	if !s.detached && s.outer != nil {
		s.armed, s.detached = false, true
		_ = syscall.EpollCtl(s.fd, syscall.EPOLL_CTL_DEL, s.inner, nil)
	}
}

func (s *set) disarm() {
	if s.armed {
		s.armed = false
		s.control(0)
	}
}

// lowWater is how many octets may wait in a socket with a low-water mark before the system tells of
// it.
const lowWater = 1 << 20

// setLowWater has the system tell nothing of what arrives at k, which pollers read anyway, and
// acknowledge it at once: Linux does not wait for more than there is with a low-water mark that
// is not reached. That is worth half of a fast stream.
func (s *set) setLowWater(k *Socket) {
	if s.low == nil && k.fd != none {
		s.low = k
		_ = syscall.SetsockoptInt(k.fd, syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, lowWater)
	}
}

// clearLowWater undoes it: before the next look at the set.
func (s *set) clearLowWater() {
	if s.low != nil {
		_ = syscall.SetsockoptInt(s.low.fd, syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, 1)
		s.low = nil
	}
}

func (s *set) control(events uint32) {
	s.ctl = syscall.EpollEvent{Events: events, Fd: int32(s.inner)}
	_ = syscall.EpollCtl(s.fd, syscall.EPOLL_CTL_MOD, s.inner, &s.ctl)
}

func (s *set) add(k *Socket) error {
	s.ctl = k.event()
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(s.inner, syscall.EPOLL_CTL_ADD, k.fd, &s.ctl))
}

func (s *set) change(k *Socket) {
	s.ctl = k.event()
	_ = syscall.EpollCtl(s.inner, syscall.EPOLL_CTL_MOD, k.fd, &s.ctl)
}

func (s *set) remove(k *Socket) {
	_ = syscall.EpollCtl(s.inner, syscall.EPOLL_CTL_DEL, k.fd, nil)
}

// event is what the system is asked for. Of a failure it tells in any case: where nothing is
// waited for, once only.
func (s *Socket) event() syscall.EpollEvent {
	const onEdge = 1 << 31 // EPOLLET
	e := syscall.EpollEvent{Fd: s.slot, Pad: s.gen}
	if s.waits == 0 {
		e.Events |= onEdge
	}
	if s.waits&In != 0 {
		e.Events |= syscall.EPOLLIN
	}
	if s.waits&Out != 0 {
		e.Events |= syscall.EPOLLOUT
	}
	return e
}

// watchable is a descriptor that can be read while a socket is ready; none if there are no sets.
func (s *set) watchable() int {
	if s.outer == nil {
		return none
	}
	return s.inner
}

// wait asks which sockets are ready, without waiting.
func (s *set) wait(ready []event) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(s.inner), uintptr(unsafe.Pointer(&ready[0])), uintptr(len(ready)), 0, 0, 0)
	if errno != 0 { // EINTR: as if nothing were
		return 0
	}
	return int(n)
}

// sleep calls try, and again when something has arrived, until it returns true. woken says
// that wake has ended it instead. The holder of the poller slot calls it.
func (s *set) sleep(try func() bool) (did, woken bool) {
	s.try, s.did = try, false
	err := s.raw.Read(s.onTry)
	return s.did, errors.Is(err, os.ErrDeadlineExceeded)
}

// wake ends a sleep, and all later ones until rearm. With Group.mu held, as rearm.
func (s *set) wake() {
	if s.outer != nil {
		_ = s.outer.SetReadDeadline(tcpsock.Past)
	} else {
		s.waker.wake()
	}
}

func (s *set) rearm() {
	s.waker.rearm()
	if s.outer != nil {
		_ = s.outer.SetReadDeadline(time.Time{})
	}
}

// yieldThread lets another thread that is ready run on this processor.
func yieldThread() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
