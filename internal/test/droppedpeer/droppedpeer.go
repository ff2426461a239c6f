// Package droppedpeer makes connections whose peer ends them while they are made, at each step of it, and sees
// that the listener keeps nothing of them.
package droppedpeer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// Script is what a client says, of whatever protocol.
type Script struct {
	// Request asks for a connection.
	Request []byte
	// Answer reads the server's answer, and says whether it accepts; nil: whatever comes will do.
	Answer func(net.Conn) (accepted bool, err error)
	// Refused says that it is not to.
	Refused bool
	// From is the address to come from; nil: any.
	From net.IP
	// Next follows the answer; half of it is said.
	Next []byte
}

// MPA is the Script of an Initiator with this private data. Behind the Reply comes an FPDU.
func MPA(private []byte) Script {
	s := mpa.Startup{Rev: 2, Enhanced: true, CRC: true, IRD: 16, ORD: 16, PrivateData: private}
	b, err := s.Append(nil)
	if err != nil {
		panic(err) // too long: the caller's constant
	}
	f := mpa.NewFramer(true, false)
	return Script{Request: b, Answer: reply, Next: f.AppendFPDU(nil, make([]byte, 64))}
}

func reply(nc net.Conn) (accepted bool, err error) {
	r, err := rawpeer.ReadStartup(nc)
	return !r.Reject, err
}

// VI is the Script of the active end of VI/TCP, to a discriminator.
func VI(called segment.Discriminator, level segment.Level) Script {
	ce := segment.CE{Attributes: segment.WriteEnable.WithLevel(level), MTU: 1 << 16, ReadWindow: 1, Calling: "broken", Called: called}
	return Script{
		Request: ce.Append(nil, segment.Header{Type: segment.ConnectRequest, Number: 7}), Answer: connectAnswer, Next: make([]byte, 64),
	}
}

func connectAnswer(nc net.Conn) (accepted bool, err error) {
	c := segment.NewCutter(1024, false)
	for {
		s, ok, fault := c.Next()
		switch {
		case fault != 0:
			return false, fault
		case ok:
			return s.Type == segment.ConnectAccept, nil
		}
		n, err := nc.Read(c.Space())
		if err != nil {
			return false, err
		}
		c.Advance(n)
	}
}

func anything(nc net.Conn) (accepted bool, err error) {
	_, err = nc.Read(make([]byte, 1024))
	return false, err
}

// Step is how far a connection gets.
type Step struct {
	Name string
	say  func(s *Script) []byte
	hear bool // the answer, and say half of what follows
	next bool
	fin  bool // a close, else a reset
}

// Steps are those of connecting, in their order.
var Steps = []Step{
	{Name: "reset before the Request", say: none},
	{Name: "close before the Request", say: none, fin: true},
	{Name: "reset within the Request", say: half},
	{Name: "close within the Request", say: half, fin: true},
	{Name: "reset behind the Request", say: whole},
	{Name: "close behind the Request", say: whole, fin: true},
	{Name: "reset behind the answer", say: whole, hear: true},
	{Name: "close behind the answer", say: whole, hear: true, fin: true},
	{Name: "reset within what follows", say: whole, hear: true, next: true},
	{Name: "close within what follows", say: whole, hear: true, next: true, fin: true},
}

func none(*Script) []byte    { return nil }
func half(s *Script) []byte  { return s.Request[:len(s.Request)/2] }
func whole(s *Script) []byte { return s.Request }

// patience is how long a server may take for its answer.
const patience = 30 * time.Second

// Run makes one such connection. The error says that the server was not reached, or has given the
// wrong answer; that it gives none, and ends the connection, is no error.
func (p Step) Run(addr string, s Script) error {
	d := Dialer(s.From)
	d.Timeout = patience
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	if !p.fin {
		_ = nc.(*net.TCPConn).SetLinger(0)
	}
	_ = nc.SetDeadline(time.Now().Add(patience))
	if _, err := nc.Write(p.say(&s)); err != nil || !p.hear {
		return nil
	}
	if s.Answer == nil {
		s.Answer, s.Refused = anything, true
	}
	accepted, err := s.Answer(nc)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil && s.Refused: // a close, or a reset
		return nil
	case err != nil:
		return fmt.Errorf("instead of an answer: %w", err)
	case accepted == s.Refused:
		return fmt.Errorf("accepted: %v", accepted)
	case !p.next:
		return nil
	}
	_, _ = nc.Write(s.Next[:len(s.Next)/2])
	return nil
}

// Many makes n such connections, eight at a time.
func (p Step) Many(t testing.TB, n int, addr string, s Script) {
	t.Helper()
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	close(left)
	for range 8 {
		all.Go(func() {
			for range left {
				if err := p.Run(addr, s); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	if failed != nil {
		t.Fatalf("%s: %v", p.Name, failed)
	}
}

// enough connections show what stays of each, among what comes and goes by itself.
const enough = 300

// Leave has 300 connections end at each step, and fails if there is more of what is counted then than there
// was. One connection is answered first: by then there is all that the listener makes once, its goroutines among it.
func Leave(t *testing.T, addr string, s Script, counts ...leakcheck.Counts) {
	t.Helper()
	if err := Steps[6].Run(addr, s); err != nil {
		t.Fatalf("the first connection: %v", err)
	}
	for _, p := range Steps {
		ok := t.Run(p.Name, func(t *testing.T) {
			l := leakcheck.Open(t, counts...)
			p.Many(t, enough, addr, s)
			l.Settle()
		})
		if !ok {
			return // what is left over would be counted again
		}
	}
}

// RNIC counts what an RNIC has handed out.
func RNIC(nic *verbs.RNIC) leakcheck.Counts {
	return func() map[string]int {
		s := nic.Stats()
		return map[string]int{
			"PDs": int(s.PDs), "CQs": int(s.CQs), "SRQs": int(s.SRQs), "QPs": int(s.QPs), "regions": int(s.Regions),
			"windows": int(s.Windows),
		}
	}
}
