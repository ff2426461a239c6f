package leak

import (
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
