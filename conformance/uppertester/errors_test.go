package uppertester

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func TestErrorsTravel(t *testing.T) {
	require.NoError(t, travelling(nil))
	for e := verbs.ErrInsufficientResources; e <= verbs.ErrCQEmpty; e++ {
		back := arrived(travelling(fmt.Errorf("verb: %w: %d", e, 7)).Error())
		require.ErrorIs(t, back, e)
		assert.Equal(t, fmt.Sprintf("verb: %v: 7", e), back.Error())
	}
	for _, text := range []string{"some text", "immediate", "immediate x: y", "immediate 7", "immediate 700: y", "7: y", ""} {
		back := arrived(travelling(errors.New(text)).Error())
		assert.Equal(t, text, back.Error())
		var e verbs.ImmediateError
		assert.False(t, errors.As(back, &e), text)
	}
}
