//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// workers is how many pairs run at a time in the soak.
const workers = 3

// soakRow is a pair that moves data until it is ended; PORT in its commands is a port of its own.
type soakRow struct{ server, client, flags string }

var soakRows = []soakRow{
	{"rping -s -a 127.0.0.1 -p PORT -S 4096", "rping -c -V -a 127.0.0.1 -p PORT -S 4096", ""},
	{"ib_write_bw -R -p PORT -D 20", "ib_write_bw -R -p PORT -D 20 127.0.0.1", ""},
	{"ib_send_bw -R -b -e -n 10000000 -p PORT", "ib_send_bw -R -b -e -n 10000000 -p PORT 127.0.0.1", ""},
	{"ib_read_lat -n 10000000 -p PORT", "ib_read_lat -n 10000000 -p PORT 127.0.0.1", "--as roce"},
	{"rstream -p PORT -S 65536 -I 1000000 -T v", "rstream -p PORT -S 65536 -I 1000000 -T v -s 127.0.0.1", ""},
	{"qperf -lp PORT", "qperf 127.0.0.1 -lp PORT -cm 1 -t 20 rc_bw", ""},
}

// soaker keeps count of a soak.
type soaker struct {
	options
	s   *space
	dir string

	mu       sync.Mutex
	pairs    int
	handlers int    // signal handlers that ran
	killed   [3]int // of each side
	errs     []error
}

// soaked starts programs in one space, lets them connect and move data, kills one of the two, or neither, at a moment by
// chance, and starts again. The other has to end when it is asked to. At the end the space has no process, socket or
// temporary folder left, and the machine as many descriptors as before in a process that outlived them all.
func (o options) soaked(ctx context.Context) (ok bool, err error) {
	dir, err := o.folder()
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	s, err := newSpace()
	if err != nil {
		return false, err
	}
	defer s.end()
	k := &soaker{options: o, s: s, dir: dir}
	last, err := k.lasting(ctx)
	if err != nil {
		return false, err
	}
	before := last.descriptors()
	until := time.Now().Add(o.soak)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			seed := uint64(time.Now().UnixNano()) + uint64(i)
			r := rand.New(rand.NewPCG(seed, 0))
			for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
				k.note(k.pair(ctx, soakRows[r.IntN(len(soakRows))], 10000+1000*i+n%1000, r))
			}
		})
	}
	all.Go(func() {
		r := rand.New(rand.NewPCG(uint64(until.UnixNano()), 1))
		for time.Now().Before(until) && ctx.Err() == nil {
			k.note(k.visit(ctx, r))
		}
	})
	all.Go(func() { k.note(k.handled(ctx)) })
	all.Wait()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	after, err := k.settled(ctx, func() (int, error) {
		return max(0, last.descriptors()-before), nil
	}, "descriptors of the server that stayed, more than at first")
	k.note(err)
	last.quit()
	k.note(ended(ctx, last))
	_, err = k.settled(ctx, k.processes, "processes")
	k.note(err)
	_, err = k.settled(ctx, k.sockets, "sockets")
	k.note(err)
	k.note(o.residue(dir))
	fmt.Printf("soak: %v, %d signal handlers ran; %d pairs; killed: %d servers, %d clients, %d neither; descriptors of the server that stayed: %d, and %d more at the end; %d faults\n",
		o.soak, k.handlers, k.pairs, k.killed[server], k.killed[client], k.killed[neither], before, after, len(k.errs))
	for _, err := range k.errs {
		fmt.Println("  " + err.Error())
	}
	return len(k.errs) == 0, nil
}

func (k *soaker) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.errs = append(k.errs, err)
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
}

// under is the command line of a program under `rnic run`.
func (k *soaker) under(flags, command string, port int) []string {
	return []string{"sh", "-c", "exec " + k.rnic + " run " + flags + " -- " + strings.ReplaceAll(command, "PORT", strconv.Itoa(port))}
}

// pair runs one pair. It is an error if a program ends badly before anything was killed, or does not end after.
func (k *soaker) pair(ctx context.Context, r soakRow, port int, chance *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	srv, err := k.s.start(ctx, k.dir, k.under(r.flags, r.server, port))
	if err != nil {
		return err
	}
	if err := srv.ready(ctx, k.s, port); err != nil {
		srv.quit()
		return fmt.Errorf("%s: %w", r.server, err)
	}
	cl, err := k.s.start(ctx, k.dir, k.under(r.flags, r.client, port))
	if err != nil {
		return err
	}
	victim := side(chance.IntN(3))
	select {
	case <-time.After(time.Duration(chance.Int64N(int64(1500 * time.Millisecond)))):
	case <-cl.done:
		srv.quit()
		return errors.Join(fmt.Errorf("%s: it ended by itself: %w%s", r.client, orGood(cl.err), cl.said()), ended(ctx, srv))
	}
	switch victim {
	case server:
		srv.kill()
	case client:
		cl.kill()
	case neither, both:
	}
	cl.quit()
	srv.quit()
	k.mu.Lock()
	k.pairs++
	k.killed[victim]++
	k.mu.Unlock()
	return errors.Join(ended(ctx, cl), ended(ctx, srv))
}

// ended waits for a program that was asked to end, however it ends.
func ended(ctx context.Context, p *program) error {
	if err := p.wait(ctx); errors.Is(err, errTime) {
		return fmt.Errorf("%s: %w%s", p.cmd.Args[len(p.cmd.Args)-1], err, p.said())
	}
	return nil
}

// lastingPort is where the server listens that outlives all others.
const lastingPort = 9999

// lasting starts a server that stays, and lets one client finish, after which it has all the descriptors that it keeps.
func (k *soaker) lasting(ctx context.Context) (*program, error) {
	p, err := k.s.start(ctx, k.dir, k.under("", "rcopy -p PORT", lastingPort))
	if err != nil {
		return nil, err
	}
	if err := p.ready(ctx, k.s, lastingPort); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(k.dir, "original"), make([]byte, 50_000_000), 0o644); err != nil {
		return nil, err
	}
	c, err := k.copies(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.wait(ctx); err != nil {
		return nil, fmt.Errorf("rcopy: %w%s", err, c.said())
	}
	return p, nil
}

// copies starts a client of the server that stays.
func (k *soaker) copies(ctx context.Context) (*program, error) {
	return k.s.start(ctx, k.dir, k.under("", "rcopy original 127.0.0.1:copy -p PORT", lastingPort))
}

// visit starts a client of the server that stays, and kills it.
func (k *soaker) visit(ctx context.Context, chance *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c, err := k.copies(ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(chance.Int64N(int64(300 * time.Millisecond)))):
		c.kill()
	case <-c.done:
	}
	return ended(ctx, c)
}

// kill ends the program itself at once, which leaves `rnic run` to clear up behind it. A program that has not begun yet goes on.
func (p *program) kill() {
	switch pid := p.leaf(); comm(pid) {
	case "nsenter", "sh", "rnic":
	default:
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// leaf is the process of the program: below nsenter and `rnic run`, the first that has no child.
func (p *program) leaf() int {
	pid := p.cmd.Process.Pid
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
		children := strings.Fields(string(text))
		if len(children) == 0 || comm(pid) == "rcopy" {
			return pid
		}
		next, err := strconv.Atoi(children[0])
		if err != nil {
			return pid
		}
		pid = next
	}
}

func comm(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(text))
}

// descriptors counts the open descriptors of the program.
func (p *program) descriptors() int {
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.leaf()))
	return len(open)
}

// processes counts those of the space but its first and the one that counts.
func (k *soaker) processes() (int, error) {
	text, err := k.s.do(context.Background(), `set -- /proc/[0-9]*; echo $#`)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	return n - 2, err
}

// sockets counts TCP sockets of the space that a process of it would have to hold: all but TIME_WAIT and the like.
func (k *soaker) sockets() (int, error) {
	n := 0
	for _, name := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", k.s.first.Process.Pid, name))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 3 {
				switch fields[3] {
				case "01", "02", "03", "08", "0A": // ESTABLISHED, SYN_SENT, SYN_RECV, CLOSE_WAIT, LISTEN
					n++
				}
			}
		}
	}
	return n, nil
}

// settled waits until count is zero: what was killed takes the kernel a moment. It returns the last count.
func (k *soaker) settled(ctx context.Context, count func() (int, error), what string) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		n, err = count()
		if err != nil || n == 0 {
			return n, err
		}
		select {
		case <-ctx.Done():
			return n, fmt.Errorf("%d %s are left", n, what)
		case <-look.C:
		}
	}
}
