package rnictest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// row is a fault, and what a program does that sees it.
type row struct {
	plan   string
	inside bool // a's RNIC; else between the two
	does   func(p *program)
	only   string // the end that is looked at; the other depends on what it had sent by then
}

// program is what runs with a fault. It notes what it sees.
type program struct {
	*testing.T
	a, b *End
	err  error // of connecting
	saw  []string

	ending bool // the stream ends by itself
}

func (p *program) see(format string, args ...any) {
	p.saw = append(p.saw, fmt.Sprintf(format, args...))
}

// size is how many octets a message has: one segment on each path.
const size = 1000

// sends is three Sends.
func (p *program) sends() {
	var reqs []verbs.Request
	want := make([]byte, 3*size)
	for i := range 3 {
		buf, mr := p.a.Memory(size)
		copy(buf, bytes.Repeat([]byte{byte(i + 1)}, len(buf)))
		copy(want[i*size:], buf)
		reqs = append(reqs, verbs.Request{ID: uint64(i), SGL: mr.All()})
	}
	n, refused := p.post(reqs)
	p.completions(n, "Send")
	if !refused {
		n = len(reqs)
	}
	for i := range n {
		got := p.b.Wait()
		switch {
		case got.Status != verbs.StatusSuccess:
			p.ending = true
			p.see("b: Recv %d: %v", i+1, got.Status)
		case !bytes.Equal(want[i*size:][:size], p.b.Recv[i*size:][:got.Bytes]):
			p.see("b: Recv %d: other bytes than sent", i+1)
		}
	}
	p.end()
}

// post posts all at once: one by one the later ones might find the stream closed, and wait in Idle.
func (p *program) post(reqs []verbs.Request) (n int, refused bool) {
	n, err := p.a.QP.PostSend(reqs...)
	if err == nil || errors.Is(err, verbs.ErrInvalidState) {
		return n, false
	}
	p.see("a: PostSend %d: %s", n+1, sentence(err))
	return n, true
}

// completions notes those of a that are no success; which are flushed depends on the time.
func (p *program) completions(n int, what string) {
	flushed := ""
	for i := range n {
		c := p.a.Wait()
		for c.Op == verbs.OpRecv { // flushed, on the same CQ
			c = p.a.Wait()
		}
		switch {
		case c.ID != uint64(i):
			p.Errorf("completion %d is of request %d", i, c.ID)
		case c.Status == verbs.StatusFlushed:
			p.ending = true
			flushed = "Flushed"
		case c.Status != verbs.StatusSuccess:
			p.ending = true
			p.see("a: %s %d: %v", what, i+1, c.Status)
		}
	}
	if flushed != "" && what == "Read" {
		p.see("a: the other Reads: %s", flushed)
	}
}

// reads is three RDMA Reads by a, and readsBack by b.
func (p *program) reads()     { p.read(p.a, p.b) }
func (p *program) readsBack() { p.read(p.b, p.a) }

func (p *program) read(by, from *End) {
	_, source := from.Memory(size)
	remote := source.Buffer().SGE(0, size)
	var reqs []verbs.Request
	for i := range 3 {
		_, sink := by.Memory(size)
		reqs = append(reqs, verbs.Request{
			ID: uint64(i), Op: verbs.OpRead, Local: sink.SGE(0, size), Remote: verbs.Remote{STag: remote.STag, TO: remote.TO},
		})
	}
	if by == p.a {
		n, _ := p.post(reqs)
		p.completions(n, "Read")
		p.end()
		return
	}
	_, mr := p.a.Memory(size) // the Responder sends nothing before the Initiator has (RFC 5044 7.1.2)
	p.a.Post(verbs.Request{SGL: mr.All()})
	p.a.Wait()
	p.b.Wait()
	by.Post(reqs...)
	for i := range reqs {
		if c := by.Wait(); c.Status != verbs.StatusSuccess {
			p.see("b: Read %d: %v", i+1, c.Status)
			p.ending = true
		}
	}
	p.end()
}

// fills looks at what becomes of a queue pair whose CQ has no room for its second Send.
func (p *program) fills() {
	_, mr := p.a.Memory(size)
	p.post([]verbs.Request{{ID: 0, SGL: mr.All()}, {ID: 1, SGL: mr.All()}})
	if c := p.a.Wait(); c.Status != verbs.StatusSuccess {
		p.see("a: Send 1: %v", c.Status)
	}
	p.ending = true
	p.end()
}

// waits does nothing.
func (p *program) waits() {
	p.ending = true
	p.end()
}

// end closes, and notes how the stream ended.
func (p *program) end() {
	if !p.ending {
		_ = p.a.Conn.Close()
	}
	for _, e := range []struct {
		name string
		*End
	}{{"a", p.a}, {"b", p.b}} {
		if err := e.Over(); err != nil {
			p.see("%s: stream: %s", e.name, sentence(err))
		}
	}
	if len(p.saw) == 0 {
		p.see("nothing but the time")
	}
}

// connects is of the end that sees that there is no connection.
func (p *program) connects() {
	if p.err == nil {
		p.end()
		return
	}
	p.see("a: Connect: %s", sentence(p.err))
}

// registers registers memory.
func (p *program) registers() {
	_, err := p.a.QP.PD().Register(make([]byte, 10), All)
	p.see("a: Register: %s", sentence(err))
	p.end()
}

// sentence is err without what differs from run to run.
func sentence(err error) string {
	var end *verbs.StreamError
	if failed := (*cm.ConnectError)(nil); errors.As(err, &failed) {
		err = failed.Err // the address differs
	}
	if !errors.As(err, &end) {
		return err.Error()
	}
	s := end.Reason
	if end.Event != 0 {
		s += fmt.Sprintf(" (event %v)", end.Event)
	}
	if t := end.Terminate; t != nil && t.Sent {
		s += fmt.Sprintf("; sent Terminate %v", t.Code)
	} else if t != nil {
		s += fmt.Sprintf("; the peer says %v", t.Code)
	}
	if end.Then != "" {
		s += "; then: " + end.Then
	}
	return s
}

var rows = []row{
	{plan: "message 2 out: cut", does: (*program).sends, only: "b"},
	{plan: "octet 1100 out: cut", does: (*program).sends, only: "b"},
	{plan: "message 2 out: reset", does: (*program).sends, only: "b"},
	{plan: "message 2 out: half-close", does: (*program).sends, only: "b"},
	{plan: "time 20ms: reset", inside: true, does: (*program).waits},
	{plan: "message 2 out: stall 50ms", does: (*program).sends},
	{plan: "message 2 out: delay 50ms", does: (*program).sends},
	{plan: "message 2 out: split 5", does: (*program).sends},
	{plan: "octet every 100: split", does: (*program).sends},
	{plan: "segment every 2 out: coalesce 2 10ms", does: (*program).sends},
	{plan: "message 2 out: flip 100 before crc", does: (*program).sends},
	{plan: "message 2 out: flip 100 behind crc", does: (*program).sends},
	{plan: "message 2 out: drop", does: (*program).sends},
	{plan: "message 2 out: double", does: (*program).sends},
	{plan: "message 2 out: terminate 0x1202", does: (*program).sends, only: "b"},
	{plan: "message 2 in of response: drop", does: (*program).reads},
	{plan: "message 2 out of read: drop", does: (*program).reads},
	{plan: "segment 3 in of response: invalidate stag", inside: true, does: (*program).reads},
	{plan: "connection 1: refuse", inside: true, does: (*program).connects},
	{plan: "connection 1: ird 0", inside: true, does: (*program).readsBack},
	{plan: "registration 2: fail", inside: true, does: (*program).registers},
	{plan: "post 2 of send: fail", inside: true, does: (*program).sends},
	{plan: "post 2 of send: invalidate stag", inside: true, does: (*program).sends},
	{plan: "completion 2 of send: delay 50ms", inside: true, does: (*program).sends},
	{plan: "completion 2 of send: full", inside: true, does: (*program).fills},
}

// run has a program see a fault.
func (r *row) run(t *testing.T, c Config) []string {
	c.Recvs, c.RecvSize = 4, size
	c.CM.Model = cm.ClientServer // the plans count the messages of the program
	if r.inside {
		c.Faults, c.Recvs = r.plan, 4
	} else {
		c.Between = r.plan
	}
	p := &program{T: t}
	p.a, p.b, p.err = TryPair(t, c)
	r.does(p)
	return slices.DeleteFunc(p.saw, func(s string) bool { return r.only != "" && !strings.HasPrefix(s, r.only) })
}

// TestFaults: each kind of fault, over the ways that it can occur on; docs/lab.md has what is seen.
func TestFaults(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| plan | in | over TCP | over a pipe, if different |\n|---|---|---|---|\n")
	for _, r := range rows {
		seen := map[string]string{}
		t.Run(r.plan, func(t *testing.T) {
			for i := range 2 {
				t.Run("pipe", func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { seen[fmt.Sprint("pipe", i)] = strings.Join(r.run(t, Config{}), "<br>") })
				})
				t.Run("loopback", func(t *testing.T) {
					seen[fmt.Sprint("tcp", i)] = strings.Join(r.run(t, Config{Loopback: true}), "<br>")
				})
			}
			assert.Equal(t, seen["pipe0"], seen["pipe1"])
			assert.Equal(t, seen["tcp0"], seen["tcp1"])
		})
		where, other := "the path", seen["pipe0"]
		if r.inside {
			where = "a's RNIC"
		}
		if other == seen["tcp0"] {
			other = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.plan, where, seen["tcp0"], other)
	}
	for what := fault.Cut; what <= fault.Full; what++ {
		assert.True(t, slices.ContainsFunc(rows, func(r row) bool { return fault.MustParse(r.plan).Rules[0].What == what }), "no row shows %v", what)
	}
	require.False(t, t.Failed())
	docgen.Generated(t, "../../docs/lab.md", "faults", b.String())
}
