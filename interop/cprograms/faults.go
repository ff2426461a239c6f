//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// plans are fault plans of which programs/breaks.c says what it sees, and what that is.
var plans = []struct{ plan, want string }{
	{"verb reg_mr 3: errno ENOMEM", "ibv_reg_mr 3: Cannot allocate memory\n"},
	{"verb create_qp 2: errno EAGAIN late 500ms", "ibv_create_qp 2: Resource temporarily unavailable, late\n"},
	{"seed 1<br>verb create_cq chance 0.5: errno EAGAIN", "ibv_create_cq 1: Resource temporarily unavailable\nibv_create_cq 3: Resource temporarily unavailable\n"},
	{"verb alloc_pd every 2: delay 500ms", "ibv_alloc_pd 2: succeeds, late\n"},
	{"verb open_device 1: errno EMFILE", "ibv_open_device 1: Too many open files\n"},
	{"verb modify_qp 5: errno ETIMEDOUT", "ibv_modify_qp 5: Connection timed out\n"},
	{"verb query_port times 1: errno EIO", "ibv_query_port 1: Input/output error\n"},
	{"registration 1 device softrnic0: fail", "ibv_reg_mr 1: Cannot allocate memory\n"},
	{"post 3 of write: fail", "ibv_post_send 3: Cannot allocate memory\n"},
	{"completion 5 of write: status RETRY_EXC_ERR", "Write 5: transport retry counter exceeded\nWrite 6: Work Request Flushed Error\nthe queue pair is in ERR\n"},
	{"completion 6 of write: status REM_ACCESS_ERR", "Write 6: remote access error\nthe queue pair is in ERR\n"},
	{"open 1: no device", "ibv_open_device 1: No such file or directory\n"},
}

// faults runs the plans, each twice, for the table of them.
func (o options) faults(ctx context.Context) (text string, ok bool, err error) {
	dir, err := o.folder()
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "breaks")
	build := exec.CommandContext(ctx, "gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, filepath.Join(o.here, "programs", "breaks.c"), "-libverbs")
	if out, err := build.CombinedOutput(); err != nil {
		return "", false, fmt.Errorf("breaks.c: %w\n%s", err, out)
	}
	var b strings.Builder
	b.WriteString("| plan | what a C program sees |\n|---|---|\n")
	ok = true
	file := filepath.Join(dir, "plan")
	for _, p := range plans {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(p.plan, "<br>", "\n")+"\n"), 0o600); err != nil {
			return "", false, err
		}
		for range 2 {
			run := exec.CommandContext(ctx, o.rnic, "run", "--faults", file, "--", program)
			var stderr strings.Builder
			run.Stderr = &stderr
			out, err := run.Output()
			if saw := string(out); err != nil || saw != p.want+"breaks: ok\n" {
				ok = false
				fmt.Fprintf(os.Stderr, "%s: %v\n%s%swant\n%s", p.plan, err, indent(saw), indent(stderr.String()), indent(p.want))
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(p.plan, "<br>", "`<br>`"), strings.ReplaceAll(strings.TrimSpace(p.want), "\n", "<br>"))
	}
	return b.String(), ok, nil
}
