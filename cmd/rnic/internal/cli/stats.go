package cli

import (
	"errors"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/stats"
	"github.com/softrnic/softrnic/verbs"
)

// Stats is the flag of a process that offers its counters.
type Stats struct{ on bool }

// AddTo adds it to fs.
func (s *Stats) AddTo(fs *pflag.FlagSet) {
	fs.BoolVar(&s.on, "stats", false, "offer the counters to rnic top, and control to rnic nic, on a socket that is this user's alone")
}

// On reports whether the counters are offered.
func (s *Stats) On() bool { return s.on }

// Serve offers the counters of nic, and control over it, if asked to, until finish is called, whose error is joined to that of the command.
func (s *Stats) Serve(log *slog.Logger, nic *verbs.RNIC) (finish func(error) error, err error) {
	if !s.on {
		return func(err error) error { return err }, nil
	}
	server, err := stats.OfferControl("", func() []*verbs.RNIC { return []*verbs.RNIC{nic} }, fault.Control("rnic0", nic, nil))
	if err != nil {
		return nil, err
	}
	log.Info("counters at " + server.Path())
	return func(err error) error { return errors.Join(err, server.Close()) }, nil
}
