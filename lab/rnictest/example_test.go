package rnictest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/softrnic/softrnic/lab/rnictest"
	"github.com/softrnic/softrnic/verbs"
)

// A test of what a program does when the third message never comes.
func ExamplePair() {
	TestLostMessage := func(t *testing.T) {
		a, b := rnictest.Pair(t, rnictest.Config{Faults: "message 3 out: cut", Recvs: 4, RecvSize: 64})
		mr, err := a.QP.PD().Register(make([]byte, 64), verbs.LocalRead)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := a.QP.PostSend(verbs.Request{SGL: mr.All()}); err != nil {
				break // the stream has ended already
			}
		}
		for i := range 4 {
			c, err := b.CQ.WaitOne(t.Context())
			if came := i < 2; came != (err == nil) {
				t.Errorf("receive %d: %v, %v", i, c, err)
			}
		}
	}
	TestLostMessage(nil) // go test does
}

// Over pipes a pair works in a bubble of testing/synctest, in which a delay takes no time.
func ExamplePair_delay() {
	TestDelay := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := rnictest.Pair(t, rnictest.Config{Between: "message 1 out: delay 1h", Recvs: 1})
			began := time.Now()
			if _, err := a.QP.PostSend(verbs.Request{}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.CQ.WaitOne(context.Background()); err != nil || time.Since(began) < time.Hour {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	}
	TestDelay(nil) // go test does
}
