package trace

import (
	"context"
	"log/slog"
)

// Slog gives each record to l, at a level, with its fields as attributes. It takes the time that l takes, where the RNIC works:
// for few records, or a handler that does not wait.
func Slog(l *slog.Logger, level slog.Level) func(Record) {
	return func(r Record) {
		ctx := context.Background()
		if !l.Enabled(ctx, level) {
			return
		}
		attrs := make([]slog.Attr, 0, 16)
		number := func(name string, v uint64) {
			if v != 0 {
				attrs = append(attrs, slog.Uint64(name, v))
			}
		}
		text := func(name, v string) {
			if v != "" {
				attrs = append(attrs, slog.String(name, v))
			}
		}
		text("name", r.Name)
		number("qp", uint64(r.QP))
		number("cq", uint64(r.CQ))
		number("id", r.ID)
		number("stag", uint64(r.STag))
		number("to", r.TO)
		number("msn", uint64(r.MSN))
		number("mo", uint64(r.MO))
		number("octets", r.Octets)
		if r.Kind == State {
			text("from", r.From.String())
			text("next", r.Next.String())
		}
		number("terminate", uint64(r.Code))
		text("note", r.Note)
		l.LogAttrs(ctx, level, "rnic "+r.Kind.String(), attrs...)
	}
}
