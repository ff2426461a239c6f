//go:build !unix

package top

import (
	"context"
	"io"
	"time"
)

// terminal is none: this system has no sockets to look at.
type terminal struct{ lines, columns int }

func openTerminal(io.Reader, io.Writer) *terminal { return nil }

func (*terminal) close() {}

func (*terminal) wait(context.Context, time.Time) event { return quit }
