package uppertester_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// page is where the protocol is published.
const page = "../../docs/upper-tester.md"

// recorder is what goes over a session, a line each, with what the case does between the calls.
type recorder struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (r *recorder) add(prefix, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, prefix+strings.TrimRight(line, "\n"))
}

// relay passes the calls of one session on to addr, and what is answered.
func (r *recorder) relay(t *testing.T, addr string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	pass := func(prefix string, from, to net.Conn) {
		defer func() { _ = to.Close() }()
		for in := bufio.NewReader(from); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			r.add(prefix, line)
			if _, err := io.WriteString(to, line); err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		from, err := l.Accept()
		_ = l.Close()
		if !assert.NoError(t, err) {
			return
		}
		to, err := net.Dial("tcp", addr)
		if !assert.NoError(t, err) {
			_ = from.Close()
			return
		}
		wg.Go(func() { pass("-> ", from, to) })
		pass("<- ", to, from)
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// conversation is what a case does: a receive, a Send of the raw peer's into it, an answer by RDMA Write, a
// refusal, and the end.
func conversation(t *testing.T, u uppertester.Tester, note func(string)) (stag verbs.STag) {
	o := open(t, u, uppertester.OpenArgs{PD: 1})
	var r uppertester.Region
	require.NoError(t, u.Register(uppertester.RegisterArgs{
		PD: 1, Len: 16, Seed: 7, Access: verbs.LocalRead | verbs.LocalWrite, ZeroBased: true, Key: 0x5A,
	}, &r))
	sgl := []verbs.SGE{{STag: r.STag, Length: 8}}
	var p uppertester.Posted
	require.NoError(t, u.PostRecv(uppertester.PostRecvArgs{QP: o.QP, Recvs: []verbs.Recv{{ID: 1, SGL: sgl}}}, &p))
	var at uppertester.Listening
	require.NoError(t, u.Listen(uppertester.ConnectArgs{QP: o.QP, PrivateData: []byte("hi")}, &at))
	note("the raw peer connects to Addr: Request, Reply; and sends a Send of 5 octets")
	nc, err := net.Dial("tcp", at.Addr)
	require.NoError(t, err)
	peer, _, err := rawpeer.Initiate(nc, mpa.Startup{Rev: 1, CRC: true})
	require.NoError(t, err)
	defer func() { _ = peer.Close() }()
	require.NoError(t, peer.Send(rawpeer.Send(1, []byte("hello")).Octets()))
	wait := uppertester.Wait{Of: o.QP, Timeout: patience}
	var c uppertester.Connection
	require.NoError(t, u.Connected(wait, &c))
	var done uppertester.Completions
	require.NoError(t, u.Poll(uppertester.PollArgs{CQ: o.RecvCQ, N: 1, Timeout: patience}, &done))
	require.Len(t, done.Completions, 1)
	var m uppertester.Octets
	require.NoError(t, u.Memory(r.Region, &m))
	require.Equal(t, "hello", string(m.Octets[:5]))
	require.NoError(t, u.PostSend(uppertester.PostSendArgs{QP: o.QP, Sends: []verbs.Request{
		{ID: 2, Op: verbs.OpWrite, SGL: sgl, Remote: verbs.Remote{STag: 0xABCD1234, TO: 1 << 40}},
	}}, &p))
	note("an RDMA Write comes to the raw peer")
	_, err = peer.Segment()
	require.NoError(t, err)
	done = uppertester.Completions{}
	require.NoError(t, u.Poll(uppertester.PollArgs{CQ: o.SendCQ, N: 1, Timeout: patience}, &done))
	require.NoError(t, u.Deregister(r.Region, &none))
	require.ErrorIs(t, u.Deregister(r.Region, &none), verbs.ErrInvalidSTag, "an Immediate Error")
	note("the raw peer closes its half, and sees the end")
	require.NoError(t, peer.CloseWrite())
	var q uppertester.QPState
	require.NoError(t, u.Ended(wait, &q))
	var e uppertester.Events
	require.NoError(t, u.Events(uppertester.EventsArgs{N: 1, Timeout: patience}, &e))
	require.Len(t, e.Events, 1)
	return r.STag
}

// address is one that differs from run to run.
var address = regexp.MustCompile(`"Addr":"127\.0\.0\.1:[0-9]+"`)

// TestSession: the page has a whole session, as it is; -update writes it. Each call and each answer is as
// schema.json says.
func TestSession(t *testing.T) {
	var rec recorder
	r, err := uppertester.Dial(context.Background(), rec.relay(t, serve(t)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	stag := conversation(t, r, func(text string) { rec.add("   ", "("+text+")") })
	require.NoError(t, r.Close())

	root := protocol(t)
	text, err := json.Marshal(root)
	require.NoError(t, err)
	root = decoded(t, string(text)).(object)
	methods := root["methods"].(object)
	called := map[string]string{}
	shown := verbs.MakeSTag(0x123456, stag.Key()) // the index is random
	var b strings.Builder
	b.WriteString("\n")
	for _, line := range rec.lines {
		prefix, rest := line[:3], line[3:]
		switch prefix {
		case "-> ":
			call := decoded(t, rest).(object)
			method := call["method"].(string)
			called[fmt.Sprint(call["id"])] = method
			params := call["params"].([]any)
			require.Len(t, params, 1)
			require.Empty(t, valid(root, methods[method].(object)["params"].(object), params[0], method), rest)
		case "<- ":
			answer := decoded(t, rest).(object)
			method := called[fmt.Sprint(answer["id"])]
			if answer["error"] == nil {
				require.Empty(t, valid(root, methods[method].(object)["result"].(object), answer["result"], method), rest)
			}
		}
		rest = address.ReplaceAllString(rest, `"Addr":"192.0.2.2:40001"`)
		rest = strings.NewReplacer(fmt.Sprint(uint32(stag)), fmt.Sprint(uint32(shown)), stag.String(), shown.String()).Replace(rest)
		for i, part := range wrapped(rest, 110) {
			if i > 0 {
				prefix = "     "
			}
			b.WriteString("    " + prefix + part + "\n")
		}
	}
	b.WriteString("\n")
	docgen.Generated(t, page, "session", b.String())
}

// wrapped is a line in pieces, each ending with a comma.
func wrapped(line string, width int) (parts []string) {
	for len(line) > width {
		cut := strings.LastIndex(line[:width], ",") + 1
		if cut == 0 {
			cut = width
		}
		parts = append(parts, line[:cut])
		line = line[cut:]
	}
	return append(parts, line)
}

// TestMethodsArePublished: the page has a table of the methods; -update writes it.
func TestMethodsArePublished(t *testing.T) {
	said := comments(t, "uppertester.go")
	var b strings.Builder
	b.WriteString("\n| method | argument | reply | what it does |\n|---|---|---|---|\n")
	for _, m := range methodsOf() {
		text := said["Tester."+m.Name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, kind(m.Type.In(0).Name()), kind(m.Type.In(1).Elem().Name()), sentence(text, m.Name))
	}
	b.WriteString("\n")
	docgen.Generated(t, page, "methods", b.String())
}

// TestNumbersArePublished: the page has the numbers that have names; -update writes them.
func TestNumbersArePublished(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n")
	list := func(what string, typ reflect.Type) {
		var names []string
		for _, v := range values(typ) {
			o := v.(object)
			names = append(names, fmt.Sprintf("%v %v", o["const"], o["title"]))
		}
		require.NotEmpty(t, names, what)
		line := what + ": " + strings.Join(names, "; ") + "."
		for i, part := range split(line, 116) {
			b.WriteString(either(i == 0, "- ", "  ") + part + "\n")
		}
	}
	list("`Op`, of requests and completions", reflect.TypeFor[verbs.Op]())
	list("`Status` of a completion", reflect.TypeFor[verbs.Status]())
	list("`State` of a queue pair", reflect.TypeFor[verbs.State]())
	list("`Type` of a notification", reflect.TypeFor[verbs.NotifyType]())
	list("`ID` of an event", reflect.TypeFor[verbs.EventID]())
	list("Immediate Errors", reflect.TypeFor[verbs.ImmediateError]())
	for _, name := range []string{"Access", "Flags"} {
		for i, part := range split("`"+name+"`, a sum: "+bits[name]+".", 116) {
			b.WriteString(either(i == 0, "- ", "  ") + part + "\n")
		}
	}
	b.WriteString("\n")
	docgen.Generated(t, page, "numbers", b.String())
}

func either(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}

// split breaks a text between words.
func split(text string, width int) (lines []string) {
	for len(text) > width {
		cut := strings.LastIndex(text[:width], " ")
		lines = append(lines, text[:cut])
		text = text[cut+1:]
	}
	return append(lines, text)
}

// kind is a type in the table.
func kind(name string) string {
	switch name {
	case "int":
		return "a number"
	case "None":
		return ""
	}
	return "`" + name + "`"
}

// sentence is a comment without the name it begins with.
func sentence(text, name string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, name+" "), "is ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// TestSkeletonsAreWhole: each skeleton has each method, none other, and is short.
func TestSkeletonsAreWhole(t *testing.T) {
	var want []string
	for _, m := range methodsOf() {
		want = append(want, m.Name)
	}
	for file, find := range map[string]string{
		"skeleton/tester.c":  `(?m)^TODO\((\w+)\)`,
		"skeleton/tester.h":  `\bM\(([A-Z]\w+)\)`,
		"skeleton/tester.py": `(?m)^    def ([A-Z]\w+)\(self, \w+\):`,
	} {
		text := read(t, file)
		var got []string
		for _, m := range regexp.MustCompile(find).FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		assert.ElementsMatch(t, want, got, file)
	}
	assert.Less(t, strings.Count(read(t, "skeleton/tester.py"), "\n"), 200)
	assert.Less(t, strings.Count(read(t, "skeleton/tester.c"), "\n")+strings.Count(read(t, "skeleton/tester.h"), "\n"), 200)
}

// TestPatience: what a tester elsewhere is given as Timeout is in nanoseconds, as the page says.
func TestPatience(t *testing.T) {
	b, err := json.Marshal(uppertester.Wait{Of: 1, Timeout: 1500 * time.Millisecond})
	require.NoError(t, err)
	assert.JSONEq(t, `{"Of":1,"Timeout":1500000000}`, string(b))
	assert.True(t, slices.Equal(uppertester.Pattern(7, 3), []byte{7, 24, 57}))
}
