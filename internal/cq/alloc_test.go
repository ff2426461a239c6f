package cq

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestNoAllocation: nothing that a program or a queue pair does per completion
// allocates.
func TestNoAllocation(t *testing.T) {
	var s position
	var buf [4]wr.Completion
	var calls int
	q := New(Config{Entries: 4, Notify: func() { calls++ }, Event: func(wr.Event) { calls++ }})
	e := Entry{Owner: &s}
	for name, f := range map[string]func(){
		"poll":     func() { q.Push(e); q.Push(e); q.Poll(buf[:]) },
		"poll one": func() { q.Push(e); _, _ = q.PollOne() },
		"empty":    func() { _, _ = q.PollOne() },
		"notify": func() {
			_ = q.Request(wr.NotifySolicited)
			e := e
			e.Solicited = true
			q.Push(e)
			<-q.Events()
			q.Poll(buf[:])
		},
		"overflow": func() {
			for range 6 {
				q.Push(e)
			}
			q.Poll(buf[:])
		},
	} {
		require.Zero(t, testing.AllocsPerRun(500, f), name)
	}
	require.Positive(t, calls)
}

func BenchmarkPushPoll(b *testing.B) {
	q := New(Config{ID: 1, Entries: 16})
	var s position
	var buf [1]wr.Completion
	e := Entry{Owner: &s}
	b.ReportAllocs()
	for b.Loop() {
		q.Push(e)
		q.Poll(buf[:])
	}
}

func BenchmarkPushPollOne(b *testing.B) {
	q := New(Config{ID: 1, Entries: 16})
	var s position
	e := Entry{Owner: &s}
	b.ReportAllocs()
	for b.Loop() {
		q.Push(e)
		_, _ = q.PollOne()
	}
}

func BenchmarkNotify(b *testing.B) {
	var calls position
	q := New(Config{ID: 1, Entries: 16, Notify: func() { calls++ }})
	var buf [1]wr.Completion
	b.ReportAllocs()
	for b.Loop() {
		_ = q.Request(wr.NotifyNext)
		q.Push(Entry{})
		<-q.Events()
		q.Poll(buf[:])
	}
}

type position uint64

func (p *position) Release(pos uint64) { *p = position(pos) }
