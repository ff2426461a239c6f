//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestErrands: the end waits for what is under way, and there is nothing behind it.
func TestErrands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e errands
		goes, ended := make(chan struct{}), make(chan struct{})
		assert.True(t, e.run(func() { <-goes }))
		go func() { e.end(); close(ended) }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("one is under way")
		default:
		}
		assert.False(t, e.run(func() { t.Error("behind the end") }))
		close(goes)
		<-ended
		e.end()
	})
}
