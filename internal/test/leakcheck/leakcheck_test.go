package leakcheck

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWaitFindsAGoroutine(t *testing.T) {
	release, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		<-release
	}()
	left := Wait(time.Millisecond)
	require.Len(t, left, 1)
	assert.Contains(t, left[0], "TestWaitFindsAGoroutine")
	close(release)
	<-ended
	assert.Empty(t, Wait(patience), "it has ended")
}

// failing is a test that may fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
}

func TestLedger(t *testing.T) {
	f := &failing{TB: t}
	things := 1
	l := Open(f, func() map[string]int { return map[string]int{"things": things} })
	l.Settle()
	assert.Empty(t, f.said)

	release, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		<-release
	}()
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	things = 2
	left := l.left()
	assert.Contains(t, left, "things: 2, there were 1")
	assert.Contains(t, left, "goroutines: 1, there were 0")
	if runtime.GOOS == "linux" {
		assert.Contains(t, left, "descriptors: ")
	}
	close(release)
	<-ended
	require.NoError(t, file.Close())
	things = 0
	l.Settle()
	assert.Empty(t, f.said, "less is no leak")
}
