//go:build !linux

package perf

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
)

const mtuClientAddress, mtuServerAddress = "", ""

var errNoNamespaces = errors.New("network namespaces are a thing of Linux")

func startInNamespace(context.Context, string, ...string) (*cli.Process, error) {
	return nil, errNoNamespaces
}

func joinNamespaces(context.Context, int, int) error { return errNoNamespaces }

func setUpLink(context.Context, string, int) error { return errNoNamespaces }
