package endpoint_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// guess writes to a wrong handle, and then sends. It returns after how long that came.
func (s *scene) guess(number uint32, handle uint32) time.Duration {
	s.t.Helper()
	s.recv()
	target := s.target(0, 1)
	target.Handle = handle
	begin := time.Now()
	s.put(segment.RDMAWrite, eom, 2*number+201, 0, target, 1)
	s.put(segment.Send, eom, 2*number+202, 0, nil, 0)
	require.Equal(s.t, endpoint.EventWriteProtection, s.expect("event").event)
	c := s.next()
	if c.kind == "event" {
		require.Equal(s.t, endpoint.EventGuessing, c.event)
		c = s.next()
	}
	require.Equal(s.t, result(endpoint.OpReceive, 0, 0), c.result)
	return time.Since(begin)
}

// A peer that tries one memory handle after the other is slowed down, by itself, and told
// of; its connection stays (VI Architecture 2.5.1).
func TestGuessesAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side, h := byHand(t, transports[0], endpoint.Config{Level: segment.Unreliable})
		events := make(map[uint32]bool)
		var number uint32
		side.hook = func(c told) {
			if c.kind == "event" && c.event == endpoint.EventGuessing {
				events[number+1] = true
			}
		}
		s := &scene{side, h, side.register(100, allRights)}
		s.Start()
		want := time.Duration(0)
		for number = range 40 {
			switch {
			case number == 15:
				want = time.Millisecond
			case number > 15:
				want = min(2*want, time.Second)
			}
			assert.Equal(t, want, s.guess(number, uint32(s.m.handle)+number+1), "guess %d", number+1)
		}
		assert.Equal(t, map[uint32]bool{16: true, 32: true}, events)
		assert.Zero(t, s.guess(number+1, uint32(s.m.handle)+number+1), "the one that was wrong just now is no guess")

		s.recv()
		s.put(segment.RDMAWrite, eom, 301, 0, s.target(0, 3), 3)
		s.put(segment.Send, eom, 302, 0, nil, 0)
		s.received(endpoint.OpReceive, 0, 0)
		want3 := make([]byte, 3)
		pattern(want3, 301)
		assert.Equal(t, want3, s.m.buf[:3], "a right handle is taken")
	})
}

// Nobody waits for a pause but the peer.
func TestCloseDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side, h := byHand(t, transports[0], endpoint.Config{Level: segment.Unreliable})
		s := &scene{side, h, side.register(100, allRights)}
		s.Start()
		for i := range uint32(30) {
			target := s.target(0, 1)
			target.Handle += i + 1
			s.put(segment.RDMAWrite, eom, 201+i, 0, target, 1)
		}
		synctest.Wait()
		begin := time.Now()
		s.Close()
		assert.Zero(t, time.Since(begin))
	})
}

// At the reliable levels one wrong handle is the last, and the end is not put off.
func TestOneGuessAtAReliableLevel(t *testing.T) {
	for _, l := range levels[1:] {
		side, h := byHand(t, transports[0], endpoint.Config{Level: l})
		s := &scene{side, h, side.register(100, allRights)}
		s.Start()
		target := s.target(0, 1)
		target.Handle++
		s.put(segment.RDMAWrite, eom, 201, 0, target, 1)
		require.Equal(t, endpoint.EventWriteProtection, s.expect("event").event)
		s.ended(endpoint.CauseInbound)
	}
}
