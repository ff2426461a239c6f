package cli

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New("second\n"))
	assert.Equal(t, "first; second", OneLine(err))
	assert.Equal(t, "connecting to ?[2J of h", OneLine(errors.New("connecting to \x1b[2J of h")), "a peer's words among it")
}

func TestStatusError(t *testing.T) {
	cause := errors.New("cause")
	assert.ErrorIs(t, WithStatus(3, cause), cause)
	assert.Equal(t, "cause", WithStatus(3, cause).Error())
	assert.Equal(t, "exit status 3", WithStatus(3, nil).Error())
}

// A command that a signal ended says so as a shell does, but a server that SIGTERM ends well does well.
func TestStopped(t *testing.T) {
	for _, status := range []int{0, 1} {
		assert.Equal(t, 130, stopped(status, os.Interrupt))
	}
	assert.Equal(t, 0, stopped(0, syscall.SIGTERM))
	assert.Equal(t, 143, stopped(1, syscall.SIGTERM))
}
