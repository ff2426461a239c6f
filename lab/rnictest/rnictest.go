// Package rnictest is for go test: two connected queue pairs in one line, with faults between them or in one of
// them, and a check that they leave nothing behind.
//
//	a, b := rnictest.Pair(t, rnictest.Config{Faults: "message 2 out: cut"})
//
// Over pipes, which is what a Config asks for that does not say Loopback, it works inside the bubbles of
// testing/synctest.
package rnictest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/verbs"
)

// Config says what pair is wanted. The zero value is one over a pipe, with defaults, without faults.
type Config struct {
	// Loopback connects by TCP over the loopback; else it is a net.Pipe.
	Loopback bool
	// Faults is a fault plan (package fault) within the RNIC of a; Between is one between the two, where the
	// RNICs are as they are without one: Out is what a sends.
	Faults, Between string
	// RNIC configures both RNICs, but for ID and Faults, which are a's and not given here.
	RNIC verbs.Config
	// QP configures both queue pairs, which have an RNIC, a protection domain and a CQ of their own each.
	QP verbs.QPConfig
	// CM configures both ends of the connection. NoNudge is set in any case.
	CM cm.Config
	// Recvs are posted to each end before they connect, of RecvSize octets each (64 KiB if 0); their memory is End.Recv.
	Recvs, RecvSize int
}

// End is one end of a pair.
type End struct {
	NIC  *verbs.RNIC
	QP   *verbs.QP
	CQ   *verbs.CQ
	Conn *cm.Conn

	// Recv is the memory of the receives that Pair posted, RecvSize octets each: that of request ID i at i*RecvSize.
	Recv []byte

	t *testing.T
}

// log is what is shown of a test that fails.
type log struct {
	mu    sync.Mutex
	lines []string // guarded by mu, as rings
	rings []*trace.Ring
}

// patience is how long what has been told to end may take for that.
const patience = 10 * time.Second

// shown is how many records of each end are kept for a test that fails.
const shown = 200

// show shows which faults struck, and the last records of a and b.
func (l *log) show(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		t.Log("fault: " + line)
	}
	for i, r := range l.rings {
		var b strings.Builder
		_ = r.Dump(&b)
		t.Logf("%c:\n%s", 'a'+i, b.String())
	}
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// Pair makes two connected queue pairs, a the Initiator. They are gone when the test ends, which fails if anything is left of
// them. If the test fails it shows which faults struck, and the last of the trace of each end, unless Config.RNIC has a Trace.
func Pair(t *testing.T, c Config) (a, b *End) {
	t.Helper()
	a, b, err := pair(t, c)
	if err != nil {
		t.Fatalf("rnictest: %v", err)
	}
	return a, b
}

// TryPair is Pair for tests of connections that fail: the error is that of the end that failed first.
func TryPair(t *testing.T, c Config) (a, b *End, err error) {
	t.Helper()
	return pair(t, c)
}

func pair(t *testing.T, c Config) (a, b *End, err error) {
	c.CM.NoNudge = true // it would count as a message; and wait for a lock, with which the clock of a bubble stops
	stop := inventory.Keep()
	scope := inventory.Begin()
	t.Cleanup(func() {
		defer stop()
		defer scope.End()
		for _, line := range scope.WaitOwn(patience) {
			t.Errorf("rnictest: left behind: %s", line)
		}
	})
	l := &log{}
	t.Cleanup(func() {
		if t.Failed() {
			l.show(t)
		}
	})
	if a, err = open(t, c, l, c.Faults); err != nil {
		return nil, nil, err
	}
	if b, err = open(t, c, l, ""); err != nil {
		_ = a.NIC.Close()
		return nil, nil, err
	}
	na, nb, err := connection(c.Loopback)
	if err != nil {
		return nil, nil, err
	}
	var relay sync.WaitGroup
	if c.Between != "" {
		in, err := injector(c.Between, l, "between")
		if err != nil {
			return nil, nil, err
		}
		if err := in.Plan().NeedsRNIC(); err != nil {
			return nil, nil, err
		}
		ra, rb, err := connection(c.Loopback)
		if err != nil {
			return nil, nil, err
		}
		client, server := nb, ra
		nb = rb
		relay.Go(func() {
			if err := in.Relay(client, server); err != nil {
				l.add(err.Error())
			}
		})
	}
	t.Cleanup(func() {
		_ = a.NIC.Close()
		_ = b.NIC.Close()
		_ = na.Close()
		_ = nb.Close()
		relay.Wait()
	})
	return a, b, connect(a, b, na, nb, c)
}

// injector makes one of a text.
func injector(plan string, l *log, where string) (*fault.Injector, error) {
	p, err := fault.Parse(plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return fault.New(p, func(s fault.Strike) { l.add(s.String()) })
}

func open(t *testing.T, c Config, l *log, plan string) (*End, error) {
	rc := c.RNIC
	if plan != "" {
		in, err := injector(plan, l, "Faults")
		if err != nil {
			return nil, err
		}
		rc.Faults = in
	}
	if rc.Trace == nil {
		r := trace.NewRing(shown)
		rc.Trace = r.Add
		l.mu.Lock()
		l.rings = append(l.rings, r)
		l.mu.Unlock()
	}
	nic, err := verbs.Open(rc)
	if err != nil {
		return nil, err
	}
	e := &End{NIC: nic, t: t}
	if err := e.create(c); err != nil {
		_ = nic.Close()
		return nil, err
	}
	return e, nil
}

func (e *End) create(c Config) (err error) {
	qc := c.QP
	if e.CQ, err = e.NIC.CreateCQ(verbs.CQConfig{Entries: 4096}); err != nil {
		return err
	}
	if qc.PD, err = e.NIC.AllocatePD(); err != nil {
		return err
	}
	qc.SendCQ, qc.RecvCQ = e.CQ, e.CQ
	if e.QP, err = e.NIC.CreateQP(qc); err != nil {
		return err
	}
	if c.Recvs == 0 {
		return nil
	}
	size := cmp.Or(c.RecvSize, 64<<10)
	e.Recv = make([]byte, c.Recvs*size)
	mr, err := e.QP.PD().Register(e.Recv, verbs.LocalWrite)
	if err != nil {
		return err
	}
	for i := range c.Recvs {
		if _, err := e.QP.PostRecv(verbs.Recv{ID: uint64(i), SGL: mr.SGL(i*size, size)}); err != nil {
			return err
		}
	}
	return nil
}

// connection makes two ends.
func connection(loopback bool) (a, b net.Conn, err error) {
	if !loopback {
		a, b = net.Pipe()
		return a, b, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if b, err = l.Accept(); err != nil {
		_ = a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// connect brings both to RTS.
func connect(a, b *End, na, nb net.Conn, c Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		req, err := cm.Await(ctx, nb, c.CM)
		if err == nil {
			b.Conn, err = req.Accept(ctx, b.QP, c.CM)
		}
		failed <- err
	}()
	var err error
	a.Conn, err = cm.Connect(ctx, na, a.QP, c.CM)
	if err != nil {
		_ = na.Close()
	}
	if other := <-failed; err == nil {
		err = other
	}
	return err
}

// All are the rights of memory that is used in every way.
const All = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic

// Memory registers n octets, with all rights.
func (e *End) Memory(n int) ([]byte, *verbs.MR) {
	e.t.Helper()
	buf := make([]byte, n)
	mr, err := e.QP.PD().Register(buf, All)
	if err != nil {
		e.t.Fatalf("rnictest: %v", err)
	}
	return buf, mr
}

// Post posts to the Send Queue; the test ends if that is refused.
func (e *End) Post(reqs ...verbs.Request) {
	e.t.Helper()
	if _, err := e.QP.PostSend(reqs...); err != nil {
		e.t.Fatalf("rnictest: %v", err)
	}
}

// Wait waits for a completion, 30 s at most, and the test ends if none comes. Its own failure is the caller's to look at.
func (e *End) Wait() verbs.Completion {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var done [1]verbs.Completion
	if _, err := e.CQ.Wait(ctx, done[:]); err != nil {
		e.t.Fatalf("rnictest: no completion: %v", err)
	}
	return done[0]
}

// Break has the port of e's RNIC be so from now on: down, slow, or with the zero Link as it was. The test ends if l is out of range.
func Break(e *End, l fault.Link) {
	e.t.Helper()
	if err := fault.SetLink(e.NIC, l); err != nil {
		e.t.Fatalf("rnictest: %v", err)
	}
}

// Over waits until the stream is gone, 30 s at most, and says why: see cm.Conn.Err.
func (e *End) Over() error {
	e.t.Helper()
	select {
	case <-e.Conn.Done():
	case <-time.After(30 * time.Second):
		e.t.Fatalf("rnictest: the stream of QP %d goes on", e.QP.ID())
	}
	return e.Conn.Err()
}
