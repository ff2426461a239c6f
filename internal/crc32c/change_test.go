//go:build !race

// What is here is a race, on purpose.

package crc32c

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCopyOfWhatChanges: the CRC is that of the copy, whatever somebody does to the source meanwhile.
func TestCopyOfWhatChanges(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		src := make([]byte, 40_000)
		dst := make([]byte, len(src))
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for k := byte(1); ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				for i := range src {
					src[i] = k
				}
			}
		}()
		before, changes := make([]byte, len(src)), 0 // the processors may be busy elsewhere
		for i := 0; changes < 300 && i < 2_000_000; i++ {
			crc := Copy(0, dst, src)
			if want := portable(0, dst); crc != want {
				assert.Equal(t, want, crc)
				break
			}
			if !bytes.Equal(dst, before) {
				changes++
				dst, before = before, dst
			}
		}
		close(stop)
		<-stopped
		assert.NotZero(t, changes, "nothing changed")
	})
}
