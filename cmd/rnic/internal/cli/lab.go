package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/fault"
	"github.com/softrnic/softrnic/tap"
	"github.com/softrnic/softrnic/trace"
	"github.com/softrnic/softrnic/verbs"
)

// Lab are the flags about seeing what an RNIC does, and making things go wrong on purpose.
type Lab struct {
	Faults  string // a file; "": none
	Pcap    string // likewise
	Payload bool
	Trace   string // likewise
}

// AddCapture adds the flags of a capture to fs.
func (l *Lab) AddCapture(fs *pflag.FlagSet) {
	fs.StringVar(&l.Pcap, "pcap", "", "write what goes over the streams to this `FILE`, as pcapng, for rnic dump and Wireshark")
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

// Tap opens the capture; nil if there is none.
func (l *Lab) Tap() (*tap.Tap, error) {
	switch {
	case l.Pcap == "" && l.Payload:
		return nil, Usagef("--pcap-payload needs --pcap")
	case l.Pcap == "":
		return nil, nil
	}
	t, err := tap.Create(l.Pcap, tap.Config{Payload: l.Payload})
	if err != nil {
		return nil, WithStatus(2, fmt.Errorf("--pcap: %w", err))
	}
	return t, nil
}

// Absolute is for another process: it checks the plan, makes an empty capture, and has both by their absolute paths.
func (l *Lab) Absolute() error {
	if _, err := l.Plan(); err != nil {
		return err
	}
	if l.Pcap == "" && l.Payload {
		return Usagef("--pcap-payload needs --pcap")
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

// Empty makes an empty file that is this user's alone, or empties one, unless name is "". A pipe, or a terminal, is left to who writes: its
// reader would take this for the end.
func Empty(flag, name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Close()) // it may have been there with other rights
	}
	if err != nil {
		return WithStatus(2, fmt.Errorf("%s: %w", flag, err))
	}
	return nil
}

// RNIC is how to open the RNIC. Faults that strike are told to log. finish ends the capture and the trace, with their errors joined to that of the
// command.
func (l *Lab) RNIC(log io.Writer) (c verbs.Config, finish func(error) error, err error) {
	finish = func(err error) error { return err }
	plan, err := l.Plan()
	if err != nil {
		return c, finish, err
	}
	if plan != nil {
		in, err := fault.New(plan, func(s fault.Strike) { fmt.Fprintf(log, "rnic: fault: %v\n", s) })
		if err != nil {
			return c, finish, WithStatus(2, err)
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
