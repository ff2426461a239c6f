package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(&out)
	log.Warn(errors.Join(errors.New("one"), errors.New("two")).Error())
	log.With("peer", "a:1").WithGroup("cm").Info("startup failed", slog.Int("step", 2))
	log.Debug("and this")
	assert.Equal(t, "rnic: one; two\nrnic: startup failed peer=a:1 cm.step=2\nrnic: and this\n", out.String())
}

// TestLoggerOfAPeersWords: nothing that a peer calls itself is acted upon by the terminal of who runs a server: that of a host of
// rnic nvme serve, whose controller is not kept alive.
func TestLoggerOfAPeersWords(t *testing.T) {
	var out bytes.Buffer
	NewLogger(&out).Warn("a controller ends", "host_nqn", "nqn\x1b]0;title\x07\x9b2J\u009b2J\r")
	assert.Equal(t, "rnic: a controller ends host_nqn=nqn?]0;title?\ufffd2J?2J\n", out.String())
}
