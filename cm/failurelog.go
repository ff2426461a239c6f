package cm

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"
)

// perSecond is how many failures a second are logged: a log that an attacker
// fills is an attack of its own.
const perSecond = 10

// failureLog logs startups that failed.
type failureLog struct {
	to *slog.Logger // nil: nowhere

	mu      sync.Mutex
	since   time.Time // guarded by mu, as below: when this second began
	logged  int       // in it
	leftOut int       // since the last that was logged
}

// add logs a failure, or counts it if there were too many. remote is nil if it is
// one of accepting.
func (f *failureLog) add(remote net.Addr, err error) {
	if f.to == nil {
		return
	}
	f.mu.Lock()
	now := time.Now()
	if now.Sub(f.since) >= time.Second {
		f.since, f.logged = now, 0
	}
	if f.logged == perSecond {
		f.leftOut++
		f.mu.Unlock()
		return
	}
	leftOut := f.leftOut
	f.logged, f.leftOut = f.logged+1, 0
	f.mu.Unlock()

	message, attrs := "accepting a connection failed", make([]slog.Attr, 0, 3)
	if remote != nil {
		message, attrs = "a connection failed in its startup", append(attrs, slog.String("remote", remote.String()))
	}
	attrs = append(attrs, slog.Any("error", err))
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", leftOut))
	}
	f.to.LogAttrs(context.Background(), slog.LevelWarn, message, attrs...)
}
