package cm_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/cm"
)

// Loggers made from a limited one have their records counted together, and keep what was given to them.
func TestLimitLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := cm.LimitLogger(slog.New(slog.NewTextHandler(&out, nil)))
		of := l.With("queue", 7).WithGroup("g")
		for range 8 {
			l.Warn("a")
			of.Warn("b", "k", 1)
		}
		assert.Equal(t, 10, strings.Count(out.String(), "\n"))
		assert.Equal(t, 5, strings.Count(out.String(), "msg=b queue=7 g.k=1\n"))
		time.Sleep(time.Second)
		out.Reset()
		l.Warn("c")
		assert.Contains(t, out.String(), "msg=c left_out=6\n")
	})
	cm.LimitLogger(nil).Error("goes nowhere")
}
