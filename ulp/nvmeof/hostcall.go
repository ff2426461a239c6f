package nvmeof

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// CommandError says that the target has answered a command with another status than success. It wraps that Status:
// errors.Is(err, nvmeof.LBARange) holds with DNR and without.
type CommandError struct {
	Command   string // such as "Read"
	Namespace uint32 // 0: of none
	Status    Status
	Detail    string // what the target says beyond that; empty: nothing
}

func (e *CommandError) Error() string {
	text := "the target answers " + e.Command
	if e.Namespace != 0 {
		text += fmt.Sprintf(" of namespace %d", e.Namespace)
	}
	text += " with " + e.Status.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the Status.
func (e *CommandError) Unwrap() error { return e.Status }

// hostCall is a command, and what goes along.
type hostCall struct {
	queue   chan *hostSlot // where its slot comes from, and goes back to
	command command
	name    string
	data    []byte        // what the target reads, or with fetch writes; nil: nothing
	fetch   bool          // into data
	limit   time.Duration // for the answer; 0: CommandTimeout
}

// do runs a command, and returns its completion when the target has answered with success. The target has no way to the
// data any more then, and with any error but the end of ctx, which only a call of this package's own memory may have.
func (h *Host) do(ctx context.Context, c hostCall) (completion, error) {
	if err := h.enter(); err != nil {
		return completion{}, err
	}
	defer h.all.Done()
	c.limit = cmp.Or(c.limit, h.config.CommandTimeout)
	var s *hostSlot
	select {
	case s = <-c.queue:
	case <-h.gone:
		return completion{}, h.Err()
	case <-ctx.Done():
		return completion{}, context.Cause(ctx)
	}
	mr, err := h.begin(s, c)
	if err != nil {
		c.queue <- s
		return completion{}, err
	}
	if ctx.Done() == nil {
		return h.await(s, mr, c)
	}
	type outcome struct {
		completion
		error
	}
	done := make(chan outcome, 1)
	h.all.Go(func() {
		end, err := h.await(s, mr, c)
		done <- outcome{end, err}
	})
	select {
	case o := <-done:
		return o.completion, o.error
	case <-ctx.Done(): // the answer is awaited behind its back, and the slot with it
		return completion{}, context.Cause(ctx)
	}
}

// begin gives the target a way to the data, of exactly their octets, and sends the command. mr is nil if there are
// none, or in the capsule.
func (h *Host) begin(s *hostSlot, c hostCall) (mr *verbs.MR, err error) {
	var inCapsule []byte
	d := sgl{length: uint32(len(c.data))}
	switch {
	case len(c.data) == 0:
	case !c.fetch && len(c.data) <= s.q.capsule-commandSize:
		d.inline, inCapsule = true, c.data
	default:
		access := verbs.LocalRead | verbs.RemoteRead
		if c.fetch {
			access = verbs.LocalWrite | verbs.RemoteWrite
		}
		// The queue's peer alone may use it, and invalidate it; a key of before does not lead to it.
		mr, err = h.pd.RegisterRegion(verbs.RegionConfig{
			Memory: c.data, Access: access, Key: uint8(h.key.Add(1)), QP: s.q.qp,
		})
		if h.regions.took(err) != nil {
			return nil, err
		}
		r := mr.Remote(0)
		d.offset, d.key, d.invalidate = r.TO, r.STag, true
	}
	d.put(c.command)
	if err := s.post(c.command, inCapsule); err != nil { // the connection is about to end, and tells why
		_ = h.take(mr)
		_ = s.q.conn.Abort()
		<-h.gone
		return nil, h.Err()
	}
	return mr, nil
}

// take takes memory away from the target. It does not wait for it, and nothing is placed or read any more when it
// returns.
func (h *Host) take(mr *verbs.MR) error {
	if mr == nil {
		return nil
	}
	return h.regions.gave(mr.Deregister())
}

// await waits for the answer, and for the RNIC to be done with the capsule; then the slot is the next command's.
func (h *Host) await(s *hostSlot, mr *verbs.MR, c hostCall) (completion, error) {
	late := time.NewTimer(c.limit)
	defer late.Stop()
	expire := func(does string) error {
		h.fail(fmt.Errorf("the target %s has not %s %s (queue %d) for %v: %w",
			h.addr, does, c.name, s.q.id, c.limit, os.ErrDeadlineExceeded))
		return h.Err()
	}
	var a hostAnswer
	var err error
	select {
	case a = <-s.answer:
	case <-late.C:
		err = expire("answered")
	case <-h.gone:
		select {
		case a = <-s.answer: // that came before the end
		default:
			err = h.Err()
		}
	}
	if e := h.take(mr); e != nil && err == nil {
		err = e
	}
	if err != nil {
		return completion{}, err
	}
	if a.invalidated && (mr == nil || a.key != mr.STag()) {
		s.q.breach(fmt.Errorf("its answer to %s invalidates key %v, which is not the command's", c.name, a.key))
		return completion{}, h.Err()
	}
	select {
	case <-s.sent:
		c.queue <- s
	case <-late.C: // it has answered what it has not read
		return completion{}, expire("taken")
	case <-h.gone:
	}
	if a.status != Success {
		e := &CommandError{Command: c.name, Status: a.status}
		if op := c.command.opcode(); op != fabricsCommand {
			e.Namespace = c.command.nsid()
		}
		return a.completion, e
	}
	return a.completion, nil
}
