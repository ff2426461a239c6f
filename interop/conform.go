package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/cases"
	"github.com/softrnic/softrnic/interop/internal/siw"
)

// caseTime bounds one try of a case. The waits in it are parts of that.
const caseTime = 30 * time.Second

// pingers is a guest with rping in it, again and again, as a target for cases.
type pingers interface {
	// start makes rping run: as a server, or as clients that connect to port of this
	// machine. What ran before is ended.
	start(ctx context.Context, role conformance.Role, port int) error
	// crashed is what the guest's kernel said when it failed, or "".
	crashed() (string, error)
	// reboot replaces the guest by a new one.
	reboot() error
	// addr is where the server can be reached.
	addr() string
}

// suite runs the cases that need no upper tester, one at a time.
type suite struct {
	guest pingers
	role  conformance.Role // of the cases
	only  *regexp.Regexp
	found *findings
	log   func(format string, args ...any)
}

// conform runs the cases in one role.
func (s *suite) conform(ctx context.Context, all []conformance.Case) (err error) {
	listen := "127.0.0.1:0"
	if s.role == conformance.Initiator {
		if err := s.guest.start(ctx, s.role, 0); err != nil {
			return err
		}
		listen = s.guest.addr()
	}
	target, err := conformance.NewRping(ctx, listen, s.role)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if s.role == conformance.Responder {
		if err := s.restart(ctx, target); err != nil {
			return err
		}
	}
	for i := range all {
		c := &all[i]
		if c.Need != conformance.NeedWire || c.Strict || !s.only.MatchString(c.Name) {
			continue
		}
		o, err := s.tries(ctx, c, &target)
		if err != nil {
			return err
		}
		s.found.add(s.role, o)
		s.log("%v: %s: %s %s", s.role, c.Name, o.Verdict, strings.ReplaceAll(o.line(), "\n", " "))
	}
	return nil
}

// restart ends rping in the guest and starts it anew.
func (s *suite) restart(ctx context.Context, target *conformance.Rping) error {
	if s.role == conformance.Initiator {
		return s.guest.start(ctx, s.role, 0)
	}
	_, port, err := net.SplitHostPort(target.Addr())
	if err != nil {
		return err
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return err
	}
	return s.guest.start(ctx, s.role, n)
}

// attempted is the result of a case's last try, with what became of those before.
type attempted struct {
	conformance.Result
	tries int
	crash string // what the guest's kernel said if it failed
}

// tries runs a case, and once more and again if the stream ended or nothing came: as
// in the matrix, siw may have missed an FPDU, and rping may hang or be gone, so it is
// started anew. A wrong answer is a finding at once: that another try, in which the
// answer is lost, passes would hide it. A guest whose kernel has failed is booted
// again, and the case is over.
func (s *suite) tries(ctx context.Context, c *conformance.Case, target **conformance.Rping) (o attempted, err error) {
	for o.tries < tries {
		if o.tries > 0 {
			if err := s.again(ctx, target); err != nil {
				return o, err
			}
		}
		o.tries++
		results, err := conformance.Run(ctx, []conformance.Case{*c}, *target, conformance.Options{
			Timeout: caseTime, Seed: 1,
		})
		if err != nil {
			return o, err
		}
		o.Result = results[0]
		if o.crash, err = s.guest.crashed(); err != nil {
			return o, err
		}
		if o.crash != "" {
			s.log("%v: %s: the guest's kernel failed: %s", s.role, c.Name, o.crash)
			return o, errors.Join(s.guest.reboot(), s.again(ctx, target))
		}
		if o.Verdict != conformance.Fail || !silent(o.Detail) {
			break
		}
	}
	return o, nil
}

// silent reports whether a failure may be that of a program that hangs or is gone.
func silent(detail string) bool {
	signs := []string{"in time", "timeout", "no client came", "not done within", "refused", "reset", "stream ended", "EOF"}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(detail, sign) })
}

// again starts rping anew, in a guest that may be another one.
func (s *suite) again(ctx context.Context, target **conformance.Rping) error {
	if err := s.restart(ctx, *target); err != nil {
		return err
	}
	if s.role == conformance.Responder || (*target).Addr() == s.guest.addr() {
		return nil
	}
	moved, err := conformance.NewRping(ctx, s.guest.addr(), s.role)
	if err != nil {
		return err
	}
	_ = (*target).Close()
	*target = moved
	return nil
}

// pingGuest is a harness's guest as pingers.
type pingGuest struct{ h *harness }

func (p pingGuest) addr() string { return fmt.Sprintf("127.0.0.1:%d", p.h.guest.Port) }

func (p pingGuest) reboot() error { return p.h.reboot() }

// peersScript runs rping for ever and returns. Its process group is noted, so that
// the next script of the kind can end it.
func peersScript(role conformance.Role, port int) string {
	run := fmt.Sprintf("rping -s -P -a %s -p %d", siw.GuestAddr, rpingPort)
	loops, ready := "1", fmt.Sprintf("grep -q ':%04X [0-9A-F]*:[0-9A-F]* 0A' /proc/net/tcp", rpingPort)
	if role == conformance.Responder {
		// rping hangs when it cannot connect, hence timeout. Two of them: a case may
		// want two streams, and one starts while the other is in use.
		run = fmt.Sprintf("timeout 20 rping -c -a %s -p %d -C 1000000 -S 64", siw.HostAddr, port)
		loops, ready = "1 2", "pidof rping >/dev/null"
	}
	return fmt.Sprintf(`
[ ! -s /tmp/peers ] || kill -KILL -$(cat /tmp/peers) 2>/dev/null
echo $$ >/tmp/peers
n=0
while pidof rping >/dev/null && [ $n -lt 100 ]; do n=$((n + 1)); usleep 50000; done
for i in %[1]s; do
  ( while :; do %[2]s; usleep 100000; done ) </dev/null >/tmp/rping.$i 2>&1 &
done
n=0
until %[3]s; do
  n=$((n + 1))
  [ $n -lt 100 ] || { echo "rping did not start"; exit 1; }
  usleep 50000
done
`, loops, run, ready)
}

func (p pingGuest) start(ctx context.Context, role conformance.Role, port int) error {
	out, err := p.h.guest.Command(ctx, cellTime, peersScript(role, port)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("starting rping in the guest: %w: %s", err, out)
	}
	return nil
}

func (p pingGuest) crashed() (string, error) {
	out, err := exec.Command(p.h.guest.Script, "log", "-n", p.h.guest.Name).Output()
	if err != nil {
		return "", fmt.Errorf("reading the guest's console: %w", err)
	}
	return crashIn(string(out)), nil
}

var (
	crashSign = regexp.MustCompile(`(kernel BUG at .*|BUG: .*|Oops: .*|general protection fault.*|Kernel panic.*|Unable to handle .*)`)
	uptime    = regexp.MustCompile(`^\[ *[0-9.]+\] *`)
)

// crashIn is the line of a console that says why the kernel failed, or "".
func crashIn(console string) string {
	for line := range strings.Lines(console) {
		line = uptime.ReplaceAllString(strings.TrimSpace(line), "")
		if m := crashSign.FindString(line); m != "" {
			return m
		}
	}
	return ""
}

// conformBoth runs the cases in both roles on the stock driver.
func conformBoth(ctx context.Context, h *harness, only *regexp.Regexp) (*findings, error) {
	found := newFindings()
	for _, role := range []conformance.Role{conformance.Initiator, conformance.Responder} {
		s := &suite{guest: pingGuest{h}, role: role, only: only, found: found, log: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}}
		if err := s.conform(ctx, cases.All()); err != nil {
			return found, err
		}
	}
	return found, nil
}
