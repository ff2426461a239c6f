package uppertester

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/verbs"
)

// mark begins the text of an Immediate Error on its way from afar: its number
// follows.
const mark = "immediate "

// travelling makes an error one that net/rpc, which knows texts only, can carry.
func travelling(err error) error {
	if err == nil {
		return nil
	}
	var e verbs.ImmediateError
	if errors.As(err, &e) {
		return fmt.Errorf("%s%d: %w", mark, uint8(e), err)
	}
	return err
}

// arrived undoes travelling.
func arrived(text string) error {
	number, rest, ok := strings.Cut(strings.TrimPrefix(text, mark), ": ")
	if n, err := strconv.ParseUint(number, 10, 8); ok && err == nil && strings.HasPrefix(text, mark) {
		return &remoteError{rest, verbs.ImmediateError(n)}
	}
	return errors.New(text)
}

// remoteError is an Immediate Error from afar.
type remoteError struct {
	text string
	is   verbs.ImmediateError
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }
