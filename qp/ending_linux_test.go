package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTimeIsUpAtOnce has the close timeout pass before the ending begins, as it does
// when the machine was busy elsewhere: what the LLP takes at once goes out all the
// same, and a close of the peer that is there already is an orderly one.
func TestTimeIsUpAtOnce(t *testing.T) {
	ran := 0
	for _, p := range partings {
		if p.set.closeTimeout != short.closeTimeout {
			continue
		}
		ran++
		p.set.closeTimeout = time.Nanosecond
		t.Run(p.name, p.run)
	}
	require.NotZero(t, ran)
}
