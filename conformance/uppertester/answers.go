package uppertester

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"time"
)

// mostAnswer bounds an answer, in octets of JSON: that of Memory for 8 MiB is the longest that a case
// asks for.
const mostAnswer = 32 << 20

// answerTime is how long an answer may take, beside the time that the call itself gives.
const answerTime = 30 * time.Second

// errAnswerTooLong ends a session.
var errAnswerTooLong = fmt.Errorf("the answer is longer than %d octets", mostAnswer)

// clientCodec is JSON-RPC 1.0 with answers of bounded length.
type clientCodec struct {
	rpc.ClientCodec
	in *boundedConn
}

func newClientCodec(c net.Conn) *clientCodec {
	in := &boundedConn{Conn: c}
	return &clientCodec{jsonrpc.NewClientCodec(in), in}
}

// ReadResponseHeader reads an answer.
func (c *clientCodec) ReadResponseHeader(r *rpc.Response) error {
	c.in.left = mostAnswer
	err := c.ClientCodec.ReadResponseHeader(r)
	return asAnswer(err)
}

// ReadResponseBody takes the result of the answer.
func (c *clientCodec) ReadResponseBody(x any) error {
	return asAnswer(c.ClientCodec.ReadResponseBody(x))
}

// asAnswer says of a text that it is no answer. What the connection says stays.
func asAnswer(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return fmt.Errorf("what came is no answer of JSON-RPC 1.0: %w", err)
	}
	return err
}

// boundedConn reads left octets at most, and writes in bounded time.
type boundedConn struct {
	net.Conn
	left int // used by the goroutine that reads answers
}

// Read reads.
func (c *boundedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errAnswerTooLong
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// Write writes.
func (c *boundedConn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(answerTime))
	return c.Conn.Write(b)
}
