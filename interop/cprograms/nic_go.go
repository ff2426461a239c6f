//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// goProgram is a program in Go that reads from a peer, one Read after the other. It is in this process, as its peer is, whose RNIC nobody breaks.
type goProgram struct {
	rnic      string // the command
	in        *fault.Injector
	nic, peer *verbs.RNIC
	qp        *verbs.QP
	conn      *cm.Conn
	sink      *verbs.MR
	from      verbs.Remote
	events    chan verbs.Event
	saw       []string
}

// patient is how long the Go program waits for a Read while its port is down; longer, than a C program's queue pair of rdma_cm.
const (
	patient = 100 * time.Millisecond
	longer  = 6 * time.Second
)

// goSees connects two RNICs, and has `rnic nic` break one.
func (o options) goSees(ctx context.Context, dir, condition string) (saw string, err error) {
	g := &goProgram{rnic: o.rnic, events: make(chan verbs.Event, 16)}
	in, err := fault.New(&fault.Plan{}, nil)
	if err != nil {
		return "", err
	}
	g.in = in
	if g.nic, err = verbs.Open(verbs.Config{Faults: in}); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, g.nic.Close()) }()
	if g.peer, err = verbs.Open(verbs.Config{}); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, g.peer.Close()) }()
	if err := g.nic.SetEventHandler(func(e verbs.Event) { g.events <- e }); err != nil {
		return "", err
	}
	offer, err := stats.OfferControl("", func() []*verbs.RNIC { return []*verbs.RNIC{g.nic} }, fault.Control("rnic0", g.nic, in))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, offer.Close()) }()
	if err := g.connect(ctx); err != nil {
		return "", err
	}
	if _, err := g.read(ctx); err != nil {
		return "", err
	}
	err = g.meets(ctx, condition, dir)
	return strings.Join(g.saw, "\n"), err
}

// connect makes a connection over the loopback.
func (g *goProgram) connect(ctx context.Context) error {
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		return err
	}
	defer l.Close()
	ends := [2]*verbs.QP{}
	for i, nic := range []*verbs.RNIC{g.nic, g.peer} {
		if ends[i], err = nic.CreateEndpoint(verbs.QPConfig{}); err != nil {
			return err
		}
	}
	g.qp = ends[0]
	if g.sink, err = g.qp.PD().Register(make([]byte, 8), verbs.LocalWrite|verbs.RemoteWrite); err != nil {
		return err
	}
	source, err := ends[1].PD().Register(make([]byte, 8), verbs.LocalRead|verbs.RemoteRead)
	if err != nil {
		return err
	}
	g.from = source.Remote(0)
	accepted := make(chan error, 1)
	go func() {
		req, err := l.Accept(ctx)
		if err == nil {
			_, err = req.Accept(ctx, ends[1], cm.Config{})
		}
		accepted <- err
	}()
	g.conn, err = cm.Dial(ctx, l.Addr().String(), g.qp, cm.Config{})
	return errors.Join(err, <-accepted)
}

// tell has `rnic nic` do that to this process; an error is its sentence.
func (g *goProgram) tell(ctx context.Context, command string, args ...string) error {
	words := append([]string{"nic", command, strconv.Itoa(os.Getpid())}, args...)
	out, err := exec.CommandContext(ctx, g.rnic, words...).CombinedOutput()
	if err == nil {
		return nil
	}
	if _, sentence, ok := strings.Cut(string(out), "/rnic0: "); ok {
		return errors.New(strings.TrimSpace(sentence))
	}
	return fmt.Errorf("rnic nic %s: %w: %s", command, err, out)
}

// post posts a Read.
func (g *goProgram) post() error {
	_, err := g.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: g.sink.SGE(0, 8), Remote: g.from})
	return err
}

// ended waits for a Read.
func (g *goProgram) ended(ctx context.Context) (verbs.Completion, error) {
	return g.qp.SendCQ().WaitOne(ctx)
}

// read reads, and says how long that took.
func (g *goProgram) read(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	if err := g.post(); err != nil {
		return 0, err
	}
	c, err := g.ended(ctx)
	if err == nil && c.Status != verbs.StatusSuccess {
		err = fmt.Errorf("a Read ends with %v", c.Status)
	}
	return time.Since(begun), err
}

func (g *goProgram) see(format string, args ...any) {
	g.saw = append(g.saw, fmt.Sprintf(format, args...))
}

// goesOn sees whether Reads do.
func (g *goProgram) goesOn(ctx context.Context) error {
	for range 3 {
		if _, err := g.read(ctx); err != nil {
			return err
		}
	}
	g.see("Reads go on")
	return nil
}

// meets sees a condition.
func (g *goProgram) meets(ctx context.Context, condition, dir string) error {
	switch condition {
	case "down":
		return g.down(ctx, patient, "a Read waits")
	case "longer":
		return g.down(ctx, longer, fmt.Sprintf("a Read waits, for as long as the port is down (%v here)", longer))
	case "degrade":
		return g.degraded(ctx)
	case "fatal":
		return g.fails(ctx, condition)
	case "unplug":
		return g.unplugged(ctx)
	case "plan.verb", "plan.post":
		return g.planned(ctx, filepath.Join(dir, condition))
	case "quiet":
		return g.quiet(ctx, filepath.Join(dir, "plan.post"))
	}
	err := g.tell(ctx, condition)
	if err == nil {
		g.see("`rnic nic` does it")
	} else {
		g.see("`rnic nic` refuses: %v", err)
	}
	return g.goesOn(ctx)
}

func (g *goProgram) down(ctx context.Context, d time.Duration, waits string) error {
	if err := cmp.Or(g.tell(ctx, "down"), g.post()); err != nil {
		return err
	}
	while, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if c, err := g.ended(while); err == nil {
		g.see("a Read does not wait: %v", c.Status)
		return nil
	}
	g.see("%s", waits)
	if err := g.tell(ctx, "up"); err != nil {
		return err
	}
	if c, err := g.ended(ctx); err != nil || c.Status != verbs.StatusSuccess {
		g.see("then it ends: %v", c.Status)
		return err
	}
	return g.goesOn(ctx)
}

func (g *goProgram) degraded(ctx context.Context) error {
	if err := g.tell(ctx, "degrade", strings.Fields(nicSlow)...); err != nil {
		return err
	}
	for range 3 {
		took, err := g.read(ctx)
		if err != nil {
			return err
		}
		if took < nicDelay {
			g.see("a Read takes no longer")
			return nil
		}
	}
	g.see("a Read takes longer")
	return nil
}

// fails sees an RNIC that is no more.
func (g *goProgram) fails(ctx context.Context, condition string) error {
	if err := g.tell(ctx, condition); err != nil {
		return err
	}
	select {
	case e := <-g.events:
		g.see("the event %v", e.ID)
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := g.over(ctx); err != nil {
		return err
	}
	if err := g.post(); err != nil {
		g.see("PostSend: %s", refusal(err))
	}
	g.allocates("")
	return nil
}

func (g *goProgram) allocates(when string) {
	if _, err := g.nic.AllocatePD(); err != nil {
		g.see("%sAllocatePD: %s", when, refusal(err))
	}
}

// unplugged sees that, and that it is plugged in again.
func (g *goProgram) unplugged(ctx context.Context) error {
	if err := g.fails(ctx, "unplug"); err != nil {
		return err
	}
	open := func(when string) error {
		nic, err := verbs.Open(verbs.Config{Faults: g.in})
		if err != nil {
			g.see("%sOpen: %s", when, refusal(err))
			return nil
		}
		g.see("%sOpen: succeeds", when)
		return nic.Close()
	}
	if err := cmp.Or(open(""), g.tell(ctx, "quiet")); err != nil {
		return err
	}
	g.allocates("after `quiet` ")
	return open("after `quiet` ")
}

// over sees how the stream ends.
func (g *goProgram) over(ctx context.Context) error {
	select {
	case <-g.conn.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	err := g.conn.Err()
	if end := (*verbs.StreamError)(nil); errors.As(err, &end) {
		g.see("the stream ends: %s", end.Reason)
		return nil
	}
	g.see("the stream ends: %v", err)
	return nil
}

// refusal is why a verb was refused, without its parameters, which differ from run to run.
func refusal(err error) string {
	_, why, _ := strings.Cut(err.Error(), "refused: ")
	why, _, _ = strings.Cut(why, " (")
	return why
}

func (g *goProgram) planned(ctx context.Context, plan string) error {
	if err := g.tell(ctx, "plan", plan); err != nil {
		g.see("`rnic nic` refuses: %v", err)
		return g.goesOn(ctx)
	}
	for i := range 3 {
		if _, err := g.read(ctx); err != nil {
			g.see("PostSend %d: %s", i+1, refusal(err))
		}
	}
	return g.goesOn(ctx)
}

func (g *goProgram) quiet(ctx context.Context, plan string) error {
	err := cmp.Or(g.tell(ctx, "down"), g.tell(ctx, "degrade", "10g", "5s"), g.tell(ctx, "plan", plan), g.tell(ctx, "quiet"))
	if err != nil {
		return err
	}
	took, err := g.read(ctx)
	if err != nil {
		return err
	}
	if took >= 5*time.Second {
		g.see("a Read takes as long as before")
	}
	return g.goesOn(ctx)
}
