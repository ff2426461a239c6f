package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/internal/siw"
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
				guest: guest{&siw.Guest{Script: "true"}},
				boot: func() (guest, error) {
					boots++
					return guest{&siw.Guest{Script: "true"}}, nil
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
		guest: guest{&siw.Guest{Script: "true"}},
		boot:  func() (guest, error) { return guest{}, errBroken },
	}
	got := h.attempt(3, func() error { return errWedged })
	assert.Equal(t, []error{errBroken}, got)
}

// What an rping that is done says when it exits is held against nobody; before that it is.
func TestRunClientWithAServerThatExitsBadly(t *testing.T) {
	const (
		fine    = `echo '{"rounds":3,"validated":true}'`
		short   = `echo '{"rounds":2,"validated":true}'`
		failed  = "wait for RDMA_READ_COMPLETE state 11"
		stopped = "rping server failed: -1"
	)
	tests := []struct{ name, rnic, server, want string }{
		{"late", fine, late, ""},
		{"late, but not all rounds", short, late, "2 of 3 rounds"},
		{"failed", fine, failed + "\n" + stopped, failed},
		{"failed, then late", fine, failed + "\n" + stopped + "\n" + late, failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			script := func(name, text string) string {
				path := filepath.Join(t.TempDir(), name)
				require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
				return path
			}
			h := &harness{
				rnic:   script("rnic", tt.rnic),
				guest:  guest{&siw.Guest{Script: script("guest", "printf '"+listening+"\\n"+strings.ReplaceAll(tt.server, "\n", "\\n")+"\\n'; exit 255")}},
				rounds: 3,
			}
			err := h.runClient(t.Context(), cell{size: 64})
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestRepeat(t *testing.T) {
	runs := []error{nil, errBroken, nil, errStalled}
	h := &harness{}
	again := func() func() error {
		calls := 0
		return func() error { calls++; return runs[calls-1] }
	}
	err := h.repeat(4, again())
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, err, errStalled)
	assert.ErrorContains(t, err, "2 of 4 connections failed: connection 2: broken\nconnection 4: ")
	assert.NoError(t, h.repeat(1, again()))
	assert.Equal(t, errBroken, h.repeat(1, func() error { return errBroken }), "one connection needs no count")
}

func TestEither(t *testing.T) {
	other := errors.New("other")
	assert.NoError(t, either(nil, nil))
	assert.Equal(t, errBroken, either(errBroken, nil))
	assert.Equal(t, errBroken, either(nil, errBroken))
	assert.EqualError(t, either(errBroken, other), "broken; other")
	assert.Equal(t, errStalled, either(errBroken, errStalled))
}
