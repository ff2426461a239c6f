package greet

import (
	"testing"

	"github.com/softrnic/softrnic/lab/rnictest"
)

// TestGreet: the greeting comes.
func TestGreet(t *testing.T) {
	a, b := rnictest.Pair(t, rnictest.Config{Recvs: 1, RecvSize: 64})
	if err := Greet(t.Context(), a.QP, "peer"); err != nil {
		t.Fatal(err)
	}
	c, err := b.CQ.WaitOne(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b.Recv[:c.Bytes]); got != "hello, peer" {
		t.Errorf("got %q", got)
	}
}

// TestGreetNobody: a connection that is cut under the greeting is an error where that is waited for, not a wait without end.
func TestGreetNobody(t *testing.T) {
	a, b := rnictest.Pair(t, rnictest.Config{Faults: "message 2 out: cut", Recvs: 1, RecvSize: 64})
	_ = Greet(t.Context(), a.QP, "peer") // sent is what the connection has taken, whatever becomes of it
	if _, err := b.CQ.WaitOne(t.Context()); err == nil {
		t.Error("nobody was greeted, and no error says so")
	}
}
