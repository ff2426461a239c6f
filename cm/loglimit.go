package cm

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// perSecond is how many records a second a limited logger writes.
const perSecond = 10

// LimitLogger gives a logger that writes to l, or to nothing if l is nil, ten records a second at most, and tells with the next record
// how many it has left out. It is for what peers can provoke: a log that an attacker fills is an attack of its own. A Listener does this
// with its Logger; programs and upper layers have to do it with what they log of each connection.
func LimitLogger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(limited{l.Handler(), new(logRate)})
}

// limited is a handler of a limited logger, or of one made from it: they share a rate.
type limited struct {
	slog.Handler
	rate *logRate
}

func (h limited) Handle(ctx context.Context, r slog.Record) error {
	leftOut, ok := h.rate.take(time.Now())
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

func (h limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{h.Handler.WithAttrs(attrs), h.rate}
}

func (h limited) WithGroup(name string) slog.Handler {
	return limited{h.Handler.WithGroup(name), h.rate}
}

// logRate counts the records of a second.
type logRate struct {
	mu      sync.Mutex
	since   time.Time // guarded by mu, as below: when this second began
	written int       // in it
	leftOut int       // since the last that was written
}

// take reports whether a record may be written now, and how many before it were not.
func (r *logRate) take(now time.Time) (leftOut int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= time.Second {
		r.since, r.written = now, 0
	}
	if r.written == perSecond {
		r.leftOut++
		return 0, false
	}
	leftOut = r.leftOut
	r.written, r.leftOut = r.written+1, 0
	return leftOut, true
}
