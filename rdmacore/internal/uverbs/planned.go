//go:build linux && (amd64 || arm64)

package uverbs

import (
	"strings"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// Faults decide what goes wrong for the program, verb by verb, as a plan has it. What goes wrong below is the RNIC's (Config.RNIC).
type Faults interface {
	// Verb is asked before a command that stands for a verb: it takes late longer, and fails with the errno, unless that is 0.
	Verb(name string) (errno int, late time.Duration)
	// Completed is asked of each success that the program is about to see: it ends with the status instead, if ok.
	Completed(qp verbs.QPID, op verbs.Op) (status uint32, ok bool)
}

// verbOf is the verb of a command, by the name that plans have for it.
func verbOf(command string) string {
	if command == "GET_CONTEXT" {
		return "open_device"
	}
	return strings.ToLower(strings.TrimPrefix(command, "EX_"))
}

// Planned is what the plan makes of a verb: it takes its time, and returns a Refusal or nil. A verb of "" is left alone.
func (d *Device) Planned(verb string) error {
	if d.config.Faults == nil || verb == "" {
		return nil
	}
	no, late := d.config.Faults.Verb(verb)
	if late > 0 {
		time.Sleep(late)
	}
	if no == 0 {
		return nil
	}
	return refuse(syscall.Errno(no), "by the fault plan")
}

// strike is what the plan makes of w, a success. The queue pair of one that ends otherwise goes to ERR, as an adapter's does, and
// what follows flushes (IBA 10.3.1). The lock of the completion queue is held.
func (q *QP) strike(f Faults, d *verbs.Completion, w *uabi.WC) {
	status, ok := f.Completed(verbs.QPID(q.qpn), d.Op)
	switch {
	case q.struck.Load():
		w.Status = uabi.WCWRFlushErr
	case ok:
		w.Status = status
		q.struck.Store(true)
		q.mu.Lock()
		c := q.taken
		q.mu.Unlock()
		q.errands.run(func() { q.endStruck(c) }) // no verb with the lock held
	}
}

// endStruck ends the queue pair of which strike has told the program, unless RESET has ended what it had with c.
func (q *QP) endStruck(c Connection) {
	q.stillWith(c, func() {
		q.releaseHeld()
		_ = q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
	})
}
