package conform

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/report"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/safeopen"
)

// conformOutputs are the destinations of the results of a run besides the text.
type conformOutputs struct {
	json, junit, html, record, pcapDir string
}

func (o *conformOutputs) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.json, "json", "", "write the verdicts as JSON to `FILE`; - is standard output, instead of the text")
	f.StringVar(&o.junit, "junit", "", "write JUnit's XML to `FILE`")
	f.StringVar(&o.html, "html", "", "write a page of HTML to `FILE`, with every octet that a case sent or received that did not pass")
	f.StringVar(&o.pcapDir, "pcap-dir", "", "write a pcapng of each case that failed into `DIR`")
}

// conformFiles are the opened files of conformOutputs.
type conformFiles struct {
	stdout  io.Writer
	text    bool // goes to stdout
	writers []conformWriter
	pcapDir string
}

type conformWriter struct {
	w     io.WriteCloser
	write func(io.Writer, *report.Report) error
}

// open creates the files, before a run rather than after it.
func (o *conformOutputs) open(stdout io.Writer) (*conformFiles, error) {
	files := &conformFiles{stdout: stdout, text: true, pcapDir: o.pcapDir}
	if o.pcapDir != "" {
		if err := os.MkdirAll(o.pcapDir, 0o755); err != nil {
			return nil, cli.WithStatus(2, err)
		}
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer, *report.Report) error
	}{
		{o.json, report.WriteResults},
		{o.junit, report.WriteJUnit},
		{o.html, report.WriteHTML},
		{o.record, func(w io.Writer, r *report.Report) error { return report.WriteRecord(w, r.Run) }},
	} {
		switch {
		case f.name == "":
			continue
		case f.name == "-" && !files.text:
			files.close()
			return nil, cli.Usagef("only one output can be -, standard output")
		case f.name == "-":
			files.text = false
			files.writers = append(files.writers, conformWriter{unclosed{stdout}, f.write})
			continue
		}
		w, err := safeopen.Create(f.name)
		if err != nil {
			files.close()
			return nil, cli.WithStatus(2, err)
		}
		files.writers = append(files.writers, conformWriter{w, f.write})
	}
	return files, nil
}

// unclosed is standard output, which is not ours to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func (f *conformFiles) close() {
	for _, w := range f.writers {
		_ = w.w.Close()
	}
}

// write writes a report everywhere. Its error has exit status 1 if a case failed.
func (f *conformFiles) write(r *report.Report) error {
	var errs []error
	for _, w := range f.writers {
		errs = append(errs, w.write(w.w, r), w.w.Close())
	}
	if f.pcapDir != "" {
		errs = append(errs, writePcaps(f.pcapDir, r))
	}
	if f.text {
		errs = append(errs, report.WriteText(f.stdout, r))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if r.Total.Fail > 0 {
		return cli.WithStatus(1, nil)
	}
	return nil
}

// writePcaps writes a capture of each case that failed, if it has a stream, and of a startup with trouble.
func writePcaps(dir string, r *report.Report) error {
	failed := r.Failed()
	if s := r.Startup(); s != nil {
		s.Case = "startup" // no case is called so: their names have a slash
		failed = append(failed, s)
	}
	for _, c := range failed {
		if !report.HasStreams(c.Result) {
			continue
		}
		if err := writePcap(filepath.Join(dir, pcapName(c.Case)), c.Result, r); err != nil {
			return err
		}
	}
	return nil
}

func writePcap(path string, c conformance.Result, r *report.Report) error {
	f, err := safeopen.Create(path)
	if err != nil {
		return err
	}
	err = report.WritePcap(f, c, r.Run.Started)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// pcapName is the file of a case: 7.10.6/bind is in 7.10.6_bind.pcapng.
func pcapName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name) + ".pcapng"
}
