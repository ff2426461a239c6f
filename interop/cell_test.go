package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

var errBroken = errors.New("broken")

func TestAttempt(t *testing.T) {
	tests := []struct {
		name  string
		n     int
		runs  []error // what each call returns
		boots int
		want  []error
	}{
		{"at once", 3, []error{nil}, 0, []error{nil}},
		{"later", 3, []error{errBroken, nil}, 0, []error{errBroken, nil}},
		{"never", 3, []error{errBroken, errBroken, errBroken}, 0, []error{errBroken, errBroken, errBroken}},
		{"one try", 1, []error{errBroken}, 0, []error{errBroken}},
		{"wedged at first", 1, []error{errWedged, nil}, 1, []error{nil}},
		{"wedged in between", 3, []error{errStalled, errWedged, errBroken, nil}, 1, []error{errStalled, errBroken, nil}},
		{"wedged for good", 1, []error{errWedged, errWedged}, 1, []error{errWedged}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls, boots := 0, 0
			h := &harness{
				guest: &guest{script: "true"},
				boot: func() (*guest, error) {
					boots++
					return &guest{script: "true"}, nil
				},
			}
			got := h.attempt(tt.n, func() error {
				calls++
				return tt.runs[calls-1]
			})
			assert.Equal(t, tt.want, got)
			assert.Equal(t, len(tt.runs), calls)
			assert.Equal(t, tt.boots, boots)
		})
	}
}

func TestAttemptWithoutAGuest(t *testing.T) {
	h := &harness{
		guest: &guest{script: "true"},
		boot:  func() (*guest, error) { return nil, errBroken },
	}
	got := h.attempt(3, func() error { return errWedged })
	assert.Equal(t, []error{errBroken}, got)
}

func TestEither(t *testing.T) {
	other := errors.New("other")
	assert.NoError(t, either(nil, nil))
	assert.Equal(t, errBroken, either(errBroken, nil))
	assert.Equal(t, errBroken, either(nil, errBroken))
	assert.EqualError(t, either(errBroken, other), "broken; other")
	assert.Equal(t, errStalled, either(errBroken, errStalled))
}
