package nvmeof

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Hosts that are refused, and whatever else they do, fill no log: ten lines a second.
func TestLogIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 16)
		target, err := New(Config{Logger: slog.New(lines(said))})
		require.NoError(t, err)
		q := &queue{target: target, cancel: func() {}}
		for range 12 {
			q.expire(nil)
		}
		require.Len(t, said, 10)
		time.Sleep(time.Second)
		q.expire(nil)
		require.Len(t, said, 11)
		require.NoError(t, target.Close())
	})
}
