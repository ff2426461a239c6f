//go:build linux && cgo && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// control is what `rnic nic` does to the devices of a program, one command at a time: one looks at what it changes.
type control []*uverbs.Device

var controlling sync.Mutex

// Port implements stats.Controller.
func (c control) Port(nic *verbs.RNIC) *stats.Port {
	for _, d := range c {
		if d.RNIC() == nic {
			return portOf(d)
		}
	}
	return nil
}

func portOf(d *uverbs.Device) *stats.Port {
	s := d.PortState()
	p := &stats.Port{
		Device: d.Name(), State: s.State[len("4: "):], Rate: s.Rate(), Degraded: fault.Link(d.Link()).Degradation(), GID: d.GIDIndex(),
		Rules: len(injector(d).Plan().Rules),
	}
	switch {
	case d.Failed():
		p.State = "FAILED"
	case d.Unplugged():
		p.State = "UNPLUGGED"
	}
	return p
}

// Control implements stats.Controller.
func (c control) Control(cmd stats.Command) (string, error) {
	controlling.Lock()
	defer controlling.Unlock()
	var done, have []string
	var failed error
	for _, d := range c {
		have = append(have, d.Name())
		if cmd.Device != "" && cmd.Device != d.Name() {
			continue
		}
		did, err := obey(d, cmd)
		if err != nil {
			failed = errors.Join(failed, err)
		} else {
			done = append(done, did)
		}
	}
	if len(done) == 0 && failed == nil {
		return "", fmt.Errorf("there is no %s in this process: it has %s", cmd.Device, strings.Join(have, ", "))
	}
	return strings.Join(done, ", "), failed
}

// obey has one device carry a command out.
func obey(d *uverbs.Device, cmd stats.Command) (string, error) {
	if cmd.Do != "plan" && cmd.Do != "quiet" && d.Failed() {
		return "", fmt.Errorf("%s has failed for good: start the program anew", d.Name())
	}
	l := d.Link()
	switch cmd.Do {
	case "down", "up":
		l.Down = cmd.Do == "down"
		d.SetLink(l)
		return cmd.Do, nil
	case "degrade":
		to, err := fault.ParseDegradation(cmd.Text)
		if err != nil {
			return "", err
		}
		to.Down = l.Down
		d.SetLink(uverbs.Link(to))
		return "degraded to " + to.Degradation(), nil
	case "move-gid":
		return fmt.Sprintf("the GID is at index %d", d.MoveGID()), nil
	case "fatal":
		d.Fail()
		return "failed", nil
	case "unplug":
		d.Unplug()
		return "unplugged", nil
	case "plan":
		return carryOut(d, cmd.Text)
	case "quiet":
		return quiet(d)
	}
	return "", fmt.Errorf("%q is no command", cmd.Do)
}

// carryOut has the device carry out another plan.
func carryOut(d *uverbs.Device, text string) (string, error) {
	s, err := settings()
	if err != nil {
		return "", err
	}
	p, err := parsePlan(s, text)
	if err == nil {
		p = p.For(d.Name())
		err = injector(d).SetPlan(p)
	}
	if err != nil {
		return "", err
	}
	d.Struck("plan", fmt.Sprintf("a fault plan of %d rules", len(p.Rules)))
	return fmt.Sprintf("a plan of %d rules", len(p.Rules)), nil
}

// quiet takes back what can be.
func quiet(d *uverbs.Device) (string, error) {
	if err := injector(d).SetPlan(&fault.Plan{}); err != nil {
		return "", err
	}
	d.Quiet()
	d.Struck("quiet", "all is as it was")
	if d.Failed() {
		return "quiet, but it has failed for good: start the program anew", nil
	}
	return "quiet", nil
}
