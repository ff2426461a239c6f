//go:build !race

// What is here is a race, on purpose.

package stag

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestSumOfWhatChanges: a program that changes what is sent spoils its data and not the stream (docs/memory-model.md):
// the CRC is that of what is sent.
func TestSumOfWhatChanges(t *testing.T) {
	tb := NewTable(Config{})
	mem := make([]byte, 32<<10)
	r := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased})
	ref := resolve(t, tb, r.STag, 0, r.Length)
	require.True(t, ref.Hold())
	defer ref.Release()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for k := byte(1); ; k++ {
			select {
			case <-stop:
				return
			default:
			}
			for i := range mem {
				mem[i] = k
			}
		}
	}()
	got, before := make([]byte, len(mem)), make([]byte, len(mem))
	changes := 0 // the processors may be busy elsewhere
	for i := 0; changes < 300 && i < 2_000_000; i++ {
		crc, ok := ref.SumHeld(0, got, 0)
		require.True(t, ok)
		if want := crc32.Checksum(got, crc32.MakeTable(crc32.Castagnoli)); crc != want {
			assert.Equal(t, want, crc)
			break
		}
		if !bytes.Equal(got, before) {
			changes++
			got, before = before, got
		}
	}
	close(stop)
	<-stopped
	assert.NotZero(t, changes, "nothing changed")
}
