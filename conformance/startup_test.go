package conformance_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/mpa"
)

const (
	aRequest = "MPA ID Req Frame"
	aReply   = "MPA ID Rep Frame"
)

// frame is a startup frame that may say anything.
func frame(key string, flags, rev byte, says int, private string) []byte {
	b := binary.BigEndian.AppendUint16(append([]byte(key), flags, rev), uint16(says))
	return append(b, private...)
}

// behaviour is what a scripted target does with a connection: a server's when it has the Request.
type behaviour func(c net.Conn, request []byte)

// says sends octets and stays, and hangsUp sends them and closes.
func says(octets ...[]byte) behaviour {
	return func(c net.Conn, request []byte) {
		hangsUp(octets...)(c, request)
		_, _ = io.Copy(io.Discard, c)
	}
}

func hangsUp(octets ...[]byte) behaviour {
	return func(c net.Conn, _ []byte) {
		if len(octets) > 0 {
			_, _ = c.Write(slices.Concat(octets...)) // at once
		}
	}
}

// scripted is a target that behaves so with every connection.
type scripted struct {
	conformance.InProcess
	play   conformance.Role // of the cases
	do     behaviour        // nil: nobody comes
	resets bool             // what ends, ends with an RST
}

func (s *scripted) Lacks(n conformance.Need) string {
	if n == conformance.NeedWire {
		return ""
	}
	return "it is a script"
}

func (s *scripted) Role() conformance.Role { return s.play }

func (s *scripted) Stream(ctx context.Context, play conformance.Role) (net.Conn, error) {
	if play != s.play {
		return nil, conformance.ErrNoRole
	}
	if s.do == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a, b := net.Pipe()
	go func() {
		defer func() { _ = b.Close() }()
		var request []byte
		if s.play == conformance.Initiator {
			if request = aFrame(b); request == nil {
				return
			}
		}
		s.do(b, request)
	}()
	return &ending{a, s.resets}, nil
}

// ending is a connection whose end may be a reset.
type ending struct {
	net.Conn
	reset bool
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.Conn.Read(b)
	if e.reset && errors.Is(err, io.EOF) {
		err = syscall.ECONNRESET
	}
	return n, err
}

// aFrame reads a startup frame; nil if none comes.
func aFrame(c net.Conn) []byte {
	b := make([]byte, 20)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil
	}
	b = append(b, make([]byte, binary.BigEndian.Uint16(b[18:]))...)
	if _, err := io.ReadFull(c, b[20:]); err != nil {
		return nil
	}
	return b
}

// probed is one target, and what has to be said of it.
type probed struct {
	target scripted
	broken bool
	want   string
}

// probe looks at each, in a time of its own.
func probe(t *testing.T, play conformance.Role, all map[string]probed) {
	for name, x := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x.target.play = play
				s := conformance.Probe(t.Context(), &x.target, 5*time.Second)
				assert.Equal(t, x.want, s.Trouble)
				assert.Equal(t, x.broken, s.Broken)
				if x.want == "" {
					assert.Empty(t, s.Trace)
				} else if x.target.do != nil && play == conformance.Initiator {
					assert.NotEmpty(t, s.Trace, "what went over the wire is kept if there is trouble")
				}
			})
		})
	}
}

// What is wrong with a server's startup is said in a line.
func TestProbeOfServers(t *testing.T) {
	good := frame(aReply, 0x40, 2, 0, "")
	framer := mpa.NewFramer(true, false)
	early := framer.AppendFPDU(nil, append([]byte{0xC1, 0x40}, make([]byte, 12)...)) // an empty RDMA Write
	behind := "its PD_Length is too small, or it is not the Responder's turn to send (RFC 5044 7.1.2)"
	probe(t, conformance.Initiator, map[string]probed{
		"good":             {scripted{do: says(good)}, false, ""},
		"silence":          {scripted{do: says()}, true, "no Reply came within 5s"},
		"hangs up":         {scripted{do: hangsUp()}, true, "the connection was closed after the Request"},
		"resets":           {scripted{do: hangsUp(), resets: true}, true, "the connection was reset after the Request"},
		"another key":      {scripted{do: says([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))}, true, `the Reply's key is "HTTP/1.1 400 Bad", not 'MPA ID Rep Frame' (RFC 5044 7.1.1)`},
		"a Request back":   {scripted{do: says(frame(aRequest, 0x40, 2, 0, ""))}, true, `the Reply's key is "MPA ID Req Frame", not 'MPA ID Rep Frame' (RFC 5044 7.1.1)`},
		"revision 9":       {scripted{do: says(frame(aReply, 0x40, 9, 0, ""))}, false, "the Reply has revision 9, the Request 2 (RFC 5044 7.1.1, RFC 6581 10)"},
		"revision 1":       {scripted{do: says(frame(aReply, 0x40, 1, 0, ""))}, false, "the Reply has revision 1, the Request 2 (RFC 5044 7.1.1, RFC 6581 10)"},
		"rejects":          {scripted{do: says(frame(aReply, 0x60, 2, 0, ""))}, true, "the Reply rejects the Request (R is 1)"},
		"a part":           {scripted{do: hangsUp(good[:18])}, true, "the Reply breaks off: 18 of its first 20 octets came (4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65 40 02), then the connection was closed"},
		"a part, silence":  {scripted{do: says(good[:3])}, true, "the Reply breaks off: 3 of its first 20 octets came (4d 50 41), then nothing more in time"},
		"a part, reset":    {scripted{do: hangsUp(good[:3]), resets: true}, true, "the Reply breaks off: 3 of its first 20 octets came (4d 50 41), then the connection was reset"},
		"too long":         {scripted{do: says(frame(aReply, 0x40, 2, 600, ""))}, true, "the Reply's PD_Length is 600; it is 512 at most (RFC 5044 7.1.1)"},
		"S without a word": {scripted{do: says(frame(aReply, 0x50, 2, 3, "abc"))}, true, "the Reply has S, and a PD_Length of 3: IRD and ORD alone are 4 octets (RFC 6581 9)"},
		"less than said":   {scripted{do: hangsUp(frame(aReply, 0x40, 2, 64, "0123456789"))}, true, "the Reply says 64 octets of private data, and 10 came, then the connection was closed"},
		"less, silence":    {scripted{do: says(frame(aReply, 0x40, 2, 64, "0123456789"))}, true, "the Reply says 64 octets of private data, and 10 came, then nothing more in time"},
		"more than said":   {scripted{do: says(frame(aReply, 0x40, 2, 2, "0123456789"))}, true, "8 octets came behind the Reply (32 33 34 35 36 37 38 39): " + behind},
		"one more":         {scripted{do: says(frame(aReply, 0x40, 2, 0, "x"))}, true, "1 octet came behind the Reply (78): " + behind},
		"bad FPDU":         {scripted{do: says(good, early[:16], []byte("bad!"))}, true, "20 octets came behind the Reply (00 0e c1 40 00 00 00 00 00 00 00 00 00 00 00 00): " + behind},
		"out of turn":      {scripted{do: says(good, early)}, false, "an FPDU came behind the Reply, before the Initiator's first one (RFC 5044 7.1.2)"},
		"goes":             {scripted{do: hangsUp(good)}, true, "the connection was closed after the Reply"},
		"nobody":           {scripted{}, true, "no connection to begin on: context deadline exceeded"},
		"revision 1 only": {scripted{do: func(c net.Conn, request []byte) {
			if request[17] == 1 {
				says(frame(aReply, 0x40, 1, 0, ""))(c, request)
			}
		}}, false, "the connection was closed after the Request of revision 2, and with revision 1 the startup works: what needs RFC 6581 cannot pass"},
	})
}

// The same of clients, which the probe answers.
func TestProbeOfClients(t *testing.T) {
	good := frame(aRequest, 0x50, 2, 4, "\x00\x10\x00\x20")
	// then waits for the Reply, and does something.
	then := func(request []byte, do behaviour) behaviour {
		return func(c net.Conn, _ []byte) {
			_, _ = c.Write(request)
			if reply := aFrame(c); reply != nil {
				do(c, reply)
			}
		}
	}
	sends := says([]byte{0})
	probe(t, conformance.Responder, map[string]probed{
		"good": {scripted{do: then(good, func(c net.Conn, reply []byte) {
			if string(reply) == string(frame(aReply, 0x50, 2, 4, "\x00\x20\x00\x10")) { // its IRD for our ORD
				sends(c, reply)
			}
		})}, false, ""},
		"good, of revision 1": {scripted{do: then(frame(aRequest, 0, 1, 2, "hi"), sends)}, false, ""},
		"nobody":              {scripted{}, true, "no client connected within 5s"},
		"silence":             {scripted{do: says()}, true, "no Request came within 5s"},
		"hangs up":            {scripted{do: hangsUp()}, true, "the connection was closed without a Request"},
		"another key":         {scripted{do: says([]byte("GET / HTTP/1.1\r\n\r\n...."))}, true, `the Request's key is "GET / HTTP/1.1\r\n", not 'MPA ID Req Frame' (RFC 5044 7.1.1)`},
		"revision 9":          {scripted{do: then(frame(aRequest, 0x40, 9, 0, ""), sends)}, false, "the Request has revision 9; there are 1 and 2 (RFC 5044 7.1.1, RFC 6581 9)"},
		"goes":                {scripted{do: then(good, hangsUp())}, true, "the connection was closed after this side's Reply"},
		"nothing to say":      {scripted{do: then(good, says())}, true, "nothing came behind this side's Reply within 5s: the Initiator sends the first FPDU (RFC 5044 7.1.2)"},
	})
}

// A good RNIC behind an upper tester gives no trouble, on either side.
func TestProbeOfUpperTesters(t *testing.T) {
	addr := serve(t)
	for _, role := range []conformance.Role{conformance.Initiator, conformance.Responder} {
		target, err := conformance.NewRemote(t.Context(), addr, role)
		require.NoError(t, err)
		assert.Empty(t, conformance.Probe(t.Context(), target, time.Minute))
	}
}

// deaf is an upper tester that cannot listen yet.
type deaf struct{ conformance.InProcess }

func (d deaf) Upper(ctx context.Context) (uppertester.Tester, error) {
	u, err := d.InProcess.Upper(ctx)
	return deafTester{u}, err
}

type deafTester struct{ uppertester.Tester }

func (deafTester) Listen(uppertester.ConnectArgs, *uppertester.Listening) error {
	return errors.New("it is not made yet")
}

func TestProbeThroughUpperTesters(t *testing.T) {
	s := conformance.Probe(t.Context(), deaf{}, time.Minute)
	assert.Equal(t, "no connection to begin on: the upper tester's Listen: it is not made yet", s.Trouble)
	assert.True(t, s.Broken)
}

// A case that wants a stream to a target where none begins fails at once, with that reason; another is run.
func TestBarredCases(t *testing.T) {
	stream := func(play conformance.Role) func(*conformance.T) {
		return func(t *conformance.T) {
			_, err := t.Target().Stream(t.Context(), play)
			if errors.Is(err, conformance.ErrNoRole) {
				t.Skipf("%v", err)
			}
			require.NoError(t, err)
		}
	}
	calls := func(call func(uppertester.Tester) error) func(*conformance.T) {
		return func(t *conformance.T) {
			u, err := t.Target().Upper(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { _ = u.Close() })
			require.NoError(t, call(u))
		}
	}
	all := []conformance.Case{
		{Name: "1/stream", Need: conformance.NeedWire, Run: stream(conformance.Either)},
		{Name: "1/listen", Need: conformance.NeedUpper, Run: calls(func(u uppertester.Tester) error {
			return u.Listen(uppertester.ConnectArgs{}, &uppertester.Listening{})
		})},
		{Name: "1/dial", Need: conformance.NeedUpper, Run: calls(func(u uppertester.Tester) error {
			return u.Dial(uppertester.ConnectArgs{}, &uppertester.None{})
		})},
		{Name: "1/ping", Need: conformance.NeedUpper, Run: calls(func(u uppertester.Tester) error {
			return u.Ping(uppertester.ConnectArgs{}, &uppertester.Listening{})
		})},
		{Name: "1/open", Need: conformance.NeedUpper, Run: calls(func(u uppertester.Tester) error {
			return u.Open(uppertester.OpenArgs{}, &uppertester.Opened{})
		})},
		{Name: "1/wrong", Need: conformance.NeedUpper, Run: calls(func(u uppertester.Tester) error {
			return u.Open(uppertester.OpenArgs{IRD: -1}, &uppertester.Opened{})
		})},
	}
	o := conformance.Options{Barred: "it is dead"}
	results, err := conformance.Run(t.Context(), all, conformance.InProcess{}, o)
	require.NoError(t, err)
	for _, r := range results[:4] {
		assert.Equal(t, conformance.Fail, r.Verdict, r.Case)
		assert.Equal(t, "no stream to the target begins: it is dead", r.Detail, r.Case)
		assert.True(t, r.Barred, r.Case)
	}
	assert.Equal(t, conformance.Pass, results[4].Verdict, results[4].Detail)
	assert.Equal(t, conformance.Fail, results[5].Verdict)
	assert.False(t, results[5].Barred, "it fails by itself")
	assert.NotContains(t, results[5].Detail, "dead")

	all = []conformance.Case{{Name: "1/other", Need: conformance.NeedWire, Run: stream(conformance.Responder)}, all[0], all[1]}
	results, err = conformance.Run(t.Context(), all, &scripted{play: conformance.Initiator, do: hangsUp()}, o)
	require.NoError(t, err)
	assert.Equal(t, conformance.Skip, results[0].Verdict, "of the other role")
	assert.True(t, results[1].Barred)
	assert.Equal(t, conformance.Skip, results[2].Verdict)
}
