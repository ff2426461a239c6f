package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

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

// Answer is what the process that offers its counters at Socket says, or why it says nothing.
type Answer struct {
	stats.Snapshot
	Socket string
	Err    error
}

// ReadStats asks the processes at some sockets, all at once: one that is stopped costs all of them one wait.
func ReadStats(sockets []string) []Answer {
	all := make([]Answer, len(sockets))
	var readers sync.WaitGroup
	for i, path := range sockets {
		readers.Go(func() {
			s, err := stats.Read(path)
			all[i] = Answer{s, path, err}
		})
	}
	readers.Wait()
	return all
}

// NoStats is the error of a command that finds no process of this user.
func NoStats(command string) error {
	return fmt.Errorf("%s: no process of this user offers its counters in %s: start one with --stats, as in rnic run --stats -- PROGRAM", command, stats.Folder())
}
