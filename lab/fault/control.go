package fault

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// Control lets other processes of this user break an RNIC, with `rnic nic`, where stats.OfferControl takes it. They know the RNIC by
// name. in, unless nil, is what the RNIC was opened with (verbs.Config.Faults): it takes plans, and what it is asked about can be
// unplugged. move-gid is refused: a Go program's RNIC has no GID.
func Control(name string, nic *verbs.RNIC, in *Injector) stats.Controller {
	return &controller{name: name, nic: nic, in: in}
}

type controller struct {
	name string
	nic  *verbs.RNIC
	in   *Injector

	mu     sync.Mutex // one command at a time
	failed bool
}

// Port implements stats.Controller.
func (c *controller) Port(nic *verbs.RNIC) *stats.Port {
	if nic != c.nic {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := LinkOf(c.nic)
	p := &stats.Port{Device: c.name, State: "ACTIVE", Degraded: l.Degradation()}
	switch {
	case c.in != nil && c.in.Unplugged():
		p.State = "UNPLUGGED"
	case c.failed:
		p.State = "FAILED"
	case l.Down:
		p.State = "DOWN"
	}
	if c.in != nil {
		p.Rules = len(c.in.Plan().Rules)
	}
	return p
}

// Control implements stats.Controller.
func (c *controller) Control(cmd stats.Command) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmd.Device != "" && cmd.Device != c.name {
		return "", fmt.Errorf("there is no %s in this process: it has %s", cmd.Device, c.name)
	}
	l := LinkOf(c.nic)
	switch cmd.Do {
	case "down", "up":
		l.Down = cmd.Do == "down"
		return cmd.Do, SetLink(c.nic, l)
	case "degrade":
		to, err := ParseDegradation(cmd.Text)
		if err != nil {
			return "", err
		}
		to.Down = l.Down
		return "degraded to " + to.Degradation(), SetLink(c.nic, to)
	case "fatal":
		if !c.failed {
			c.failed = true
			verbsinternal.TellFault(c.nic, "fatal", c.name+": the RNIC has failed")
			Provoke(c.nic)
		}
		return "failed", nil
	case "unplug":
		if c.in == nil {
			return "", errWithout
		}
		c.failed = true
		c.in.Unplug(c.nic)
		return "unplugged", nil
	case "plan":
		return c.plan(cmd.Text)
	case "quiet":
		return c.quiet()
	}
	if slices.Contains(stats.Commands, cmd.Do) {
		return "", fmt.Errorf("%s is for C programs alone (rnic run): the RNIC of a Go program has no GIDs", cmd.Do)
	}
	return "", fmt.Errorf("%q is no command", cmd.Do)
}

var errWithout = errors.New("this program has opened its RNIC without a fault plan, so it takes none now, and nothing keeps it from opening " +
	"another (--faults, verbs.Config.Faults)")

func (c *controller) plan(text string) (string, error) {
	if c.in == nil {
		return "", errWithout
	}
	p, err := Parse(text)
	if err == nil {
		err = c.in.SetPlan(p)
	}
	if err != nil {
		return "", err
	}
	verbsinternal.TellFault(c.nic, "plan", fmt.Sprintf("%s: a fault plan of %d rules", c.name, len(p.Rules)))
	return fmt.Sprintf("a plan of %d rules", len(p.Rules)), nil
}

func (c *controller) quiet() (string, error) {
	var err error
	if c.in != nil {
		c.in.Plug()
		err = c.in.SetPlan(&Plan{})
	}
	if err = errors.Join(err, SetLink(c.nic, Link{})); err != nil {
		return "", err
	}
	verbsinternal.TellFault(c.nic, "quiet", c.name+": all is as it was")
	if c.failed {
		return "quiet, but it has failed for good: open another, or start the program anew", nil
	}
	return "quiet", nil
}
