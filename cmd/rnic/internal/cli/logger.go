package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// Logger writes what a command says of its work to standard error, a line each.
func Logger(cmd *cobra.Command) *slog.Logger { return NewLogger(cmd.ErrOrStderr()) }

// NewLogger writes a line for each record: "rnic: ", the message and what belongs to it.
func NewLogger(w io.Writer) *slog.Logger { return slog.New(&lineHandler{w: w, mu: new(sync.Mutex)}) }

// lineHandler formats records for people: no time and no level.
type lineHandler struct {
	attrs string // of WithAttrs, as they are written
	group string // before the name of an attribute

	mu *sync.Mutex
	w  io.Writer // guarded by mu
}

func (h *lineHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	line := r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		line += h.text(a)
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintf(h.w, "rnic: %s\n", inOneLine(line))
	return err
}

func (h *lineHandler) text(a slog.Attr) string {
	return fmt.Sprintf(" %s%s=%v", h.group, a.Key, a.Value)
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	for _, a := range attrs {
		with.attrs += h.text(a)
	}
	return &with
}

func (h *lineHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.group += name + "."
	return &with
}

// OneLine is the text of err, which may have several lines if it joins errors.
func OneLine(err error) string { return inOneLine(err.Error()) }

// inOneLine leaves nothing on which a terminal would act: there may be a peer's words in s.
func inOneLine(s string) string {
	return Printable(strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
}
