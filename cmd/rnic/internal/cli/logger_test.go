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
