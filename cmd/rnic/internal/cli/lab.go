package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/internal/safeopen"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/lab/trace"
	"github.com/softrnic/softrnic/verbs"
)

// Lab are the flags of captures, traces and fault injection.
type Lab struct {
	Faults  string // a file; "": none
	Pcap    string // likewise
	Payload bool
	Trace   string // likewise
}

// AddCapture adds the flags of a capture to fs.
func (l *Lab) AddCapture(fs *pflag.FlagSet) {
	fs.StringVar(&l.Pcap, "pcap", "",
		"write what goes over the streams to this `FILE`, as pcapng, for rnic dump and Wireshark")
	fs.BoolVar(&l.Payload, "pcap-payload", false, "with --pcap: the program's octets too; else they are zeros")
}

// AddFaults adds the flag of a fault plan to fs.
func (l *Lab) AddFaults(fs *pflag.FlagSet) {
	fs.StringVar(&l.Faults, "faults", "", "make things go wrong as the plan in this `FILE` says (docs/lab.md)")
}

// AddTo adds all flags to fs.
func (l *Lab) AddTo(fs *pflag.FlagSet) {
	l.AddFaults(fs)
	l.AddCapture(fs)
	l.AddTrace(fs)
}

// AddTrace adds the flag of a trace to fs.
func (l *Lab) AddTrace(fs *pflag.FlagSet) {
	fs.StringVar(&l.Trace, "trace", "", "write what the RNIC does to this `FILE`, record by record, for rnic trace")
}

// Plan reads the fault plan; nil if there is none.
func (l *Lab) Plan() (*fault.Plan, error) {
	if l.Faults == "" {
		return nil, nil
	}
	text, err := os.ReadFile(l.Faults)
	if err != nil {
		return nil, WithStatus(2, fmt.Errorf("--faults: %w", err))
	}
	p, err := fault.Parse(string(text))
	if err != nil {
		return nil, WithStatus(2, fmt.Errorf("--faults: %s, %w", l.Faults, err))
	}
	return p, nil
}

func (l *Lab) checkCapture() error {
	if l.Pcap == "" && l.Payload {
		return Usagef("--pcap-payload needs --pcap")
	}
	return nil
}

// Tap opens the capture; nil if there is none.
func (l *Lab) Tap() (*tap.Tap, error) {
	if err := l.checkCapture(); err != nil || l.Pcap == "" {
		return nil, err
	}
	t, err := tap.Create(l.Pcap, tap.Config{Payload: l.Payload})
	if err != nil {
		return nil, WithStatus(2, fmt.Errorf("--pcap: %w", err))
	}
	return t, nil
}

// Absolute is for another process: it checks the plan, makes an empty capture, and makes their paths absolute.
func (l *Lab) Absolute() error {
	if _, err := l.Plan(); err != nil {
		return err
	}
	if err := l.checkCapture(); err != nil {
		return err
	}
	for _, name := range []*string{&l.Faults, &l.Pcap, &l.Trace} {
		if *name == "" {
			continue
		}
		abs, err := filepath.Abs(*name)
		if err != nil {
			return err
		}
		*name = abs
	}
	return errors.Join(Empty("--pcap", l.Pcap), Empty("--trace", l.Trace))
}

// Empty makes an empty file that is this user's alone, or empties one, unless name is "". A pipe, or a terminal, is left
// to its writer: the reader would take this for the end.
func Empty(flag, name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	f, err := safeopen.Private(name, os.O_TRUNC)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return WithStatus(2, fmt.Errorf("%s: %w", flag, err))
	}
	return nil
}

// Injector makes the faults of a plan, each of which is a line of log.
func (l *Lab) Injector(plan *fault.Plan, log *slog.Logger) (*fault.Injector, error) {
	in, err := fault.New(plan, func(s fault.Strike) { log.Info(fmt.Sprintf("fault: %v", s)) })
	if err != nil {
		return nil, WithStatus(2, err)
	}
	return in, nil
}

// RNIC is how to open the RNIC. finish ends the capture and the trace, with their errors joined to that of the command.
func (l *Lab) RNIC(log *slog.Logger) (c verbs.Config, finish func(error) error, err error) {
	finish = func(err error) error { return err }
	plan, err := l.Plan()
	if err != nil {
		return c, finish, err
	}
	if plan != nil {
		in, err := l.Injector(plan, log)
		if err != nil {
			return c, finish, err
		}
		c.Faults = in
	}
	var ends []io.Closer
	finish = func(err error) error {
		for _, e := range ends {
			err = errors.Join(err, e.Close())
		}
		return err
	}
	t, err := l.Tap()
	if err != nil {
		return c, finish, err
	}
	if t != nil {
		c.Tap = t
		ends = append(ends, t)
	}
	if l.Trace != "" {
		w, err := trace.Create(l.Trace)
		if err != nil {
			return c, finish, finish(WithStatus(2, fmt.Errorf("--trace: %w", err)))
		}
		c.Trace = w.Add
		ends = append(ends, w)
	}
	return c, finish, nil
}
