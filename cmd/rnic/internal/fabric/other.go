//go:build !linux

package fabric

import (
	"context"
	"errors"
	"io"
)

var errSystem = errors.New("a fabric is made of network namespaces, which only Linux has; rnic fabric export works here too")

func keep(io.Reader, io.Writer) error { return errSystem }

func up(context.Context, string, string, bool) (*state, error) { return nil, errSystem }

func found(context.Context, string) (string, error) { return "", errSystem }

func fabrics(context.Context) ([]string, error) { return nil, errSystem }

func place(string) string { return "" }

func ask(context.Context, string, byte, any) (answer, error) { return answer{}, errSystem }

func down(context.Context, string) error { return errSystem }

func onHost(context.Context, string, *execRequest, io.Reader, io.Writer, io.Writer) (int, error) {
	return 0, errSystem
}
