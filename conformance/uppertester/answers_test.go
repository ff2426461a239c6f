package uppertester

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostile is a Remote whose other side does something when the first call has come. It ends with it.
func hostile(t testing.TB, do func(c net.Conn)) *Remote {
	a, b := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = b.Close() }()
		if _, err := bufio.NewReader(b).ReadBytes('\n'); err == nil {
			do(b)
		}
	}()
	r := newRemote(context.Background(), a)
	t.Cleanup(func() {
		_ = r.Close()
		<-ended
	})
	return r
}

// stays answers with a text and waits for the end.
func stays(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

// TestHostileAnswers: whatever a tester answers, a call ends, and with a sentence.
func TestHostileAnswers(t *testing.T) {
	flood := strings.Repeat(" ", 1<<16)
	for name, x := range map[string]struct {
		do   func(net.Conn)
		want string
	}{
		"silence":          {stays(""), "uppertester: Open: no answer within 30s"},
		"half an answer":   {stays(`{"id":0,"result":{"QP":1`), "uppertester: Open: no answer within 30s"},
		"hangs up":         {func(net.Conn) {}, "uppertester: Open: the session is over: unexpected EOF"},
		"half, hangs up":   {func(c net.Conn) { _, _ = io.WriteString(c, `{"id":`) }, "uppertester: Open: the session is over: unexpected EOF"},
		"another protocol": {stays("HTTP/1.1 400 Bad Request\r\n\r\n"), "uppertester: Open: what came is no answer of JSON-RPC 1.0: invalid character 'H' looking for beginning of value"},
		"another answer":   {stays(`{"id":5,"result":{},"error":null}`), "uppertester: Open: no answer within 30s"},
		"a list":           {stays(`[]`), "uppertester: Open: what came is no answer of JSON-RPC 1.0: json: cannot unmarshal array into Go value of type jsonrpc.clientResponse"},
		"no result":        {stays(`{"id":0,"result":null,"error":null}`), "uppertester: Open: invalid error <nil>"},
		"an error object":  {stays(`{"id":0,"result":null,"error":{"code":1}}`), "uppertester: Open: invalid error map[code:1]"},
		"another result":   {stays(`{"id":0,"result":{"QP":"one"},"error":null}`), "uppertester: Open: reading body what came is no answer of JSON-RPC 1.0: json: cannot unmarshal string into Go struct field Opened.QP of type int"},
		"without an end": {func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, flood); err != nil {
					return
				}
			}
		}, "uppertester: Open: the answer is longer than 33554432 octets"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := hostile(t, x.do)
				var o Opened
				require.EqualError(t, r.Open(OpenArgs{}, &o), x.want)
				require.Error(t, r.Destroy(1, &None{}), "the session is over")
			})
		})
	}
}

// TestDeafTester: one that reads nothing.
func TestDeafTester(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer func() { _ = b.Close() }()
		r := newRemote(t.Context(), a)
		defer func() { _ = r.Close() }()
		require.ErrorContains(t, r.Open(OpenArgs{}, &Opened{}), "uppertester: Open: ")
	})
}

// TestWaitingCalls: a call that waits has its own time too.
func TestWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hostile(t, func(c net.Conn) {
			time.Sleep(answerTime + 9*time.Second)
			stays(`{"id":0,"result":{"Completions":[]},"error":null}`)(c)
		})
		require.NoError(t, r.Poll(PollArgs{N: 1, Timeout: 10 * time.Second}, &Completions{}))
	})
}

// FuzzAnswers: what a tester elsewhere answers, whatever it is, is a result or an error, and costs no
// more than its session.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"id":0,"result":{"QP":1001,"SendCQ":1,"RecvCQ":1,"ID":1},"error":null}`,
		`{"id":0,"result":null,"error":"immediate 7: no"}{"id":1,"result":{"Octets":"AAEC"},"error":null}`,
		`{"id":0,"result":{},"error":null}` + "\n" + `{"id":1,"result":{"Completions":[{"ID":1,"Op":10,"Bytes":5}]},"error":null}`,
		`{"id":18446744073709551615,"result":{}}`, `{"id":-1}`, `{"id":0,"error":7}`, `[{}]`, `nul`, `{"id":0,"result":{"Terminate":{"Raw":"!"}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, b := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, b) }()
		r := newRemote(t.Context(), a)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = b.Write(text)
			_ = b.Close()
		}()
		var q QPState
		for _, call := range []func() error{
			func() error { return r.Open(OpenArgs{}, &Opened{}) },
			func() error { return r.Poll(PollArgs{N: 1}, &Completions{}) },
			func() error { return r.Memory(1, &Octets{}) },
			func() error { return r.Events(EventsArgs{}, &Events{}) },
			func() error { return r.Query(1, &q) },
		} {
			if err := call(); err != nil {
				assert.NotEmpty(t, err.Error())
			}
		}
		_ = r.Close()
		<-answered
	})
}

// What one RNIC says of another is not read twice: an answer has to be that of one call.
func TestAnswersByNumber(t *testing.T) {
	a, b := net.Pipe()
	r := newRemote(t.Context(), a)
	defer func() { _ = r.Close() }()
	go func() {
		defer func() { _ = b.Close() }()
		in := bufio.NewReader(b)
		for n := range 2 {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var req struct {
				Method string `json:"method"`
				ID     int    `json:"id"`
			}
			if json.Unmarshal(line, &req) != nil || req.Method != "Upper.Open" || req.ID != n {
				return
			}
			var out bytes.Buffer
			_ = json.NewEncoder(&out).Encode(map[string]any{"id": req.ID, "result": Opened{QP: 10 + n}, "error": nil})
			_, _ = b.Write(out.Bytes())
		}
	}()
	for n := range 2 {
		var o Opened
		require.NoError(t, r.Open(OpenArgs{}, &o))
		assert.Equal(t, 10+n, o.QP)
	}
}
