package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New("second\n"))
	assert.Equal(t, "first; second", OneLine(err))
}

func TestStatusError(t *testing.T) {
	cause := errors.New("cause")
	assert.ErrorIs(t, WithStatus(3, cause), cause)
	assert.Equal(t, "cause", WithStatus(3, cause).Error())
	assert.Equal(t, "exit status 3", WithStatus(3, nil).Error())
}
