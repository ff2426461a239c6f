package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// mostTime is how long a case may keep its process, and mostTimeOfAll how long all of them may. A case itself has less.
const (
	mostTime      = time.Minute
	mostTimeOfAll = 8 * time.Minute
)

// ask runs one case in a built program. It answers whether the case passed, and if
// not, why not. A program that crashes has not passed.
func (f *forge) ask(ctx context.Context, program, name string) (passed bool, why string, err error) {
	most := mostTime
	if name == anyCase {
		most = mostTimeOfAll
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, judgeWord, name)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, "", nil
	case ctx.Err() != nil:
		return false, "", fmt.Errorf("case %s did not end within %v", name, most)
	case !errors.As(err, &exit):
		return false, "", err
	case exit.ExitCode() == statusFail:
		return false, firstLine(stdout.String()), nil
	case exit.ExitCode() == statusUnfit:
		return false, "", errors.New(firstLine(stdout.String()))
	}
	return false, "crashed: " + firstLine(stderr.String()), nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
