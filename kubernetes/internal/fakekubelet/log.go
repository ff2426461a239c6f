package fakekubelet

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Log keeps what a program says, for tests that wait for it to be said.
type Log struct {
	mu      sync.Mutex
	text    string
	changed chan struct{}
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return len(p), nil
}

// Text is what was said so far.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// Await waits until a text was said.
func (l *Log) Await(t *testing.T, text string) {
	t.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		l.mu.Lock()
		said := l.text
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if strings.Contains(said, text) {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			require.Fail(t, "was not said", "%q in\n%s", text, said)
		}
	}
}
