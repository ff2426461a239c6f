//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/softrnic/softrnic/interop/internal/procnet"
	"github.com/softrnic/softrnic/interop/internal/siw"
)

// Addresses of a guest on a tap: the guest's own, and this machine's on its network.
const (
	guestAddr = "10.77.0.2"
	tapAddr   = "10.77.0.1"
)

// siwTime bounds a connection with the guest, whose processor may be emulated.
const siwTime = 2 * time.Minute

// siwRow is a program at both ends, one of which is the guest's kernel.
type siwRow struct {
	server, client string
	port           int
	ours           side
}

func siwRows() []siwRow {
	var all []siwRow
	for _, ours := range []side{client, server} {
		all = append(all,
			siwRow{"rping -s -a HOST -C 10", "rping -c -V -a HOST -C 10", portRping, ours},
			siwRow{"rping -s -a HOST -C 10 -S 65535", "rping -c -V -a HOST -C 10 -S 65535", portRping, ours},
			siwRow{"ib_send_bw -R -n 1000 -s 4096", "ib_send_bw -R -n 1000 -s 4096 HOST", portPerftest, ours},
		)
	}
	return all
}

func (r siwRow) name() string {
	at := map[side]string{server: "siw", client: "siw"}
	at[r.ours] = "rnic run"
	return fmt.Sprintf("%s (%s) / %s (%s)", r.server, at[server], r.client, at[client])
}

// siw runs programs under `rnic run` against the same programs on Linux siw in a guest, both ways.
func (o options) siw(ctx context.Context) (text string, ok bool, err error) {
	g, err := siw.Start(ctx, filepath.Join(o.here, "..", "siw-guest"), "cprograms", 0, "--tap")
	if err != nil {
		return "", false, err
	}
	defer func() { _ = g.Stop() }()
	var b strings.Builder
	b.WriteString("| server | client | result | seconds |\n|---|---|---|---|\n")
	ok = true
	for _, r := range siwRows() {
		if !o.only.MatchString(r.name()) {
			continue
		}
		fmt.Fprintf(os.Stderr, "siw: %s ... ", r.name())
		begun := time.Now()
		printed, err := o.withGuest(ctx, g, r)
		took := time.Since(begun)
		if ctx.Err() != nil {
			return "", false, ctx.Err()
		}
		verdict := "ran"
		switch {
		case err != nil:
			ok = false
			verdict = "FAIL: " + err.Error()
		case strings.HasPrefix(r.server, "rping"):
			verdict = "ran, data compared"
		}
		fmt.Fprintf(os.Stderr, "%s, %.1f s\n", verdict, took.Seconds())
		if err != nil {
			fmt.Fprintln(os.Stderr, indent(tail(printed, 24)))
		}
		at := map[side]string{server: "siw: ", client: "siw: "}
		at[r.ours] = "`rnic run`: "
		fmt.Fprintf(&b, "| %s`%s` | %s`%s` | %s | %.1f |\n", at[server], r.server, at[client], r.client, cell(verdict), took.Seconds())
	}
	return b.String(), ok, nil
}

// withGuest runs one row, and returns what both printed.
func (o options) withGuest(ctx context.Context, g *siw.Guest, r siwRow) (printed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, siwTime)
	defer cancel()
	dir, err := o.folder()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	host := guestAddr
	if r.ours == server {
		host = tapAddr
	}
	prepare := func(s side, command string) *exec.Cmd {
		command = strings.ReplaceAll(command, "HOST", host)
		if s == r.ours {
			trace := ""
			if o.strace != "" {
				trace = " --strace " + filepath.Join(o.strace, "siw-"+fileName(r.name()))
			}
			return g.Beside(ctx, "sh", "-c", "exec "+o.rnic+" run"+trace+" -- "+command)
		}
		return g.Command(ctx, siwTime, command)
	}
	srv, err := begin(prepare(server, r.server), dir)
	if err != nil {
		return "", err
	}
	if err := o.siwReady(ctx, g, r, srv); err != nil {
		srv.quit()
		return srv.out.String(), err
	}
	cl, err := begin(prepare(client, r.client), dir)
	if err != nil {
		return "", err
	}
	if err = cl.wait(ctx); err != nil {
		err = fmt.Errorf("client: %w%s", err, cl.said())
		srv.quit()
	}
	// rping's server may fail when all is over: see cmRows.
	if serverErr := srv.wait(ctx); serverErr != nil && err == nil && !strings.HasPrefix(r.server, "rping") {
		err = fmt.Errorf("server: %w%s", serverErr, srv.said())
	}
	return "server:\n" + srv.out.String() + "client:\n" + cl.out.String(), err
}

// siwReady waits until the server's port listens, in the guest or beside it.
func (o options) siwReady(ctx context.Context, g *siw.Guest, r siwRow, srv *program) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		cmd := g.Beside(ctx, "cat", "/proc/net/tcp", "/proc/net/tcp6")
		if r.ours == client {
			// siw listens with a socket of the kernel's, which this file shows too.
			cmd = g.Command(ctx, 10*time.Second, "cat /proc/net/tcp")
		}
		if text, err := cmd.Output(); err == nil && procnet.ListensTCP(string(text), r.port) {
			return nil
		}
		select {
		case <-srv.done:
			return fmt.Errorf("the server ended before it listened: %w%s", orGood(srv.err), srv.said())
		case <-ctx.Done():
			return fmt.Errorf("the server does not listen on port %d", r.port)
		case <-look.C:
		}
	}
}
