package nd2

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Every Completion Status, and what a request that has it ends with.
func TestCompletionStatuses(t *testing.T) {
	want := map[verbs.Status]Status{
		verbs.StatusSuccess: Success, verbs.StatusFlushed: ErrCanceled, verbs.StatusRemoteTermination: ErrRemoteError,
		verbs.StatusInvalidLength: ErrDataOverrun,
		verbs.StatusInvalidSTag:   ErrAccessViolation, verbs.StatusBaseBounds: ErrAccessViolation,
		verbs.StatusAccess: ErrAccessViolation, verbs.StatusInvalidPD: ErrAccessViolation,
		verbs.StatusWrap: ErrAccessViolation, verbs.StatusInvalidRegion: ErrAccessViolation,
		verbs.StatusInvalidateSTag: ErrAccessViolation,
		verbs.StatusInvalidWindow:  ErrInvalidDeviceRequest, verbs.StatusSTagNotInvalid: ErrInvalidDeviceRequest,
		verbs.StatusZeroReadResources: ErrInvalidDeviceRequest, verbs.StatusInvalidWQE: ErrInvalidDeviceRequest,
	}
	for s := range verbs.StatusInvalidLength + 1 {
		expected, known := want[s]
		if !known {
			expected = ErrInternalError
		}
		assert.Equal(t, expected, completionStatus(s), "%v", s)
		if s == verbs.StatusBaseBounds {
			expected = ErrBufferOverflow
		}
		assert.Equal(t, expected, receiveStatus(s), "%v of a Receive", s)
	}
}

func TestImmediateErrors(t *testing.T) {
	for _, m := range immediate {
		err := explain(fmt.Errorf("verb: %w", m.verbs))
		assert.ErrorIs(t, err, m.here)
		assert.ErrorIs(t, err, m.verbs)
	}
	assert.ErrorIs(t, explain(io.EOF), ErrInternalError)
	assert.NoError(t, explain(nil))
	assert.ErrorIs(t, postError(verbs.ErrInvalidState), ErrConnectionInvalid)
	assert.ErrorIs(t, postError(verbs.ErrInvalidRNIC), ErrDeviceRemoved)
}

// What connecting can fail with, on this system and on Windows.
func TestConnectErrors(t *testing.T) {
	for want, list := range map[Status][]error{
		ErrConnectionRefused: {
			&cm.RejectedError{}, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF,
			winsock(10061), winsock(10054), winsock(10053),
		},
		ErrNetworkUnreachable: {syscall.ENETUNREACH, winsock(10051)},
		ErrHostUnreachable:    {syscall.EHOSTUNREACH, winsock(10065)},
		ErrSharingViolation:   {syscall.EADDRINUSE, winsock(10048)},
		ErrInvalidAddress:     {syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, winsock(10049), winsock(10047)},
		ErrIOTimeout:          {context.DeadlineExceeded, syscall.ETIMEDOUT, winsock(10060)},
		ErrDeviceRemoved:      {verbs.ErrInvalidRNIC},
		ErrUnsuccessful:       {io.ErrShortWrite},
	} {
		for _, err := range list {
			got := connectError(context.Background(), fmt.Errorf("dial: %w", err))
			assert.ErrorIs(t, got, want)
			assert.ErrorIs(t, got, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, connectError(ctx, io.EOF), ErrCanceled)
}
