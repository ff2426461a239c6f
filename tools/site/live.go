package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// liveTime bounds one run.
const liveTime = 10 * time.Minute

// liveRun is a block of commands that begins with "sh live": the build runs it, and shows what it printed and a link to
// each page that it made.
type liveRun struct {
	script string
	mark   string // where in the page its result goes
}

// runLive runs the commands of a page, one block after the other, in one folder of the site.
func (s *site) runLive(out string, p *page) error {
	dir := filepath.Join(out, "live")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bin, err := filepath.Abs(filepath.Join(s.root, "bin"))
	if err != nil {
		return err
	}
	body := string(p.body)
	for _, run := range p.live {
		before, err := htmlFiles(dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "site: %s\n", strings.ReplaceAll(strings.TrimSpace(run.script), "\n", "; "))
		printed, took, err := execute(run.script, dir, bin)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", p.source, err, printed)
		}
		after, err := htmlFiles(dir)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if len(printed) > 0 {
			said := template.HTMLEscapeString(string(printed))
			fmt.Fprintf(&b, "<pre class=\"printed\" tabindex=\"0\"><code>%s</code></pre>\n", said)
		}
		fmt.Fprintf(&b, "<p class=\"made\">Run when this site was built, in %s.", round(took))
		for _, name := range after {
			if !slices.Contains(before, name) {
				fmt.Fprintf(&b, " <a class=\"button\" href=\"%s\">Open %s</a>", relative(p.out, path.Join("live", name)), name)
			}
		}
		b.WriteString("</p>\n")
		body = strings.Replace(body, run.mark, b.String(), 1)
	}
	p.body = template.HTML(body)
	return s.dropLeftovers(dir)
}

func execute(script, dir, bin string) (printed []byte, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), liveTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	cmd.WaitDelay = 10 * time.Second // for a server in the background that does not end
	start := time.Now()
	err = cmd.Run()
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return append(out.Bytes(), progress.Bytes()...), 0, err
	}
	return out.Bytes(), time.Since(start), nil
}

func htmlFiles(dir string) (names []string, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.html"))
	for _, f := range found {
		names = append(names, filepath.Base(f))
	}
	return names, err
}

// dropLeftovers removes what runs have written beside their pages, such as captures.
func (s *site) dropLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var problems []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".html" {
			problems = append(problems, os.Remove(filepath.Join(dir, e.Name())))
			continue
		}
		problems = append(problems, os.Chmod(filepath.Join(dir, e.Name()), 0o644))
	}
	return errors.Join(problems...)
}

// round is a time as people say it.
func round(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
