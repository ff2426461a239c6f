package nd2

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wr"
)

// Status is a NetworkDirect status, with the value that Windows gives it. It is
// an error: methods return a Status, or an error that wraps one; match it with
// errors.Is. Result.Status holds one too.
type Status uint32

// The statuses. Names are those of NetworkDirect: ND_NO_MORE_ENTRIES is
// ErrNoMoreEntries.
const (
	Success                  Status = 0
	Timeout                  Status = 0x00000102
	Pending                  Status = 0x00000103
	ErrBufferOverflow        Status = 0x80000005
	ErrDeviceBusy            Status = 0x80000011
	ErrNoMoreEntries         Status = 0x8000001A
	ErrUnsuccessful          Status = 0xC0000001
	ErrAccessViolation       Status = 0xC0000005
	ErrInvalidHandle         Status = 0xC0000008
	ErrInvalidParameter      Status = 0xC000000D
	ErrInvalidDeviceRequest  Status = 0xC0000010
	ErrNoMemory              Status = 0xC0000017
	ErrInvalidParameterMix   Status = 0xC0000030
	ErrDataOverrun           Status = 0xC000003C
	ErrSharingViolation      Status = 0xC0000043
	ErrInsufficientResources Status = 0xC000009A
	ErrDeviceNotReady        Status = 0xC00000A3
	ErrIOTimeout             Status = 0xC00000B5
	ErrNotSupported          Status = 0xC00000BB
	ErrInternalError         Status = 0xC00000E5
	ErrInvalidParameter1     Status = 0xC00000EF
	ErrInvalidParameter2     Status = 0xC00000F0
	ErrInvalidParameter3     Status = 0xC00000F1
	ErrInvalidParameter4     Status = 0xC00000F2
	ErrInvalidParameter5     Status = 0xC00000F3
	ErrInvalidParameter6     Status = 0xC00000F4
	ErrInvalidParameter7     Status = 0xC00000F5
	ErrInvalidParameter8     Status = 0xC00000F6
	ErrInvalidParameter9     Status = 0xC00000F7
	ErrInvalidParameter10    Status = 0xC00000F8
	ErrCanceled              Status = 0xC0000120
	ErrRemoteError           Status = 0xC000013D
	ErrInvalidAddress        Status = 0xC0000141
	ErrInvalidDeviceState    Status = 0xC0000184
	ErrInvalidBufferSize     Status = 0xC0000206
	ErrTooManyAddresses      Status = 0xC0000209
	ErrAddressAlreadyExists  Status = 0xC000020A
	ErrConnectionRefused     Status = 0xC0000236
	ErrConnectionInvalid     Status = 0xC000023A
	ErrConnectionActive      Status = 0xC000023B
	ErrNetworkUnreachable    Status = 0xC000023C
	ErrHostUnreachable       Status = 0xC000023D
	ErrConnectionAborted     Status = 0xC0000241
	ErrDeviceRemoved         Status = 0xC00002B6
)

var statusNames = map[Status]string{
	Success: "ND_SUCCESS", Timeout: "ND_TIMEOUT", Pending: "ND_PENDING",
	ErrBufferOverflow: "ND_BUFFER_OVERFLOW", ErrDeviceBusy: "ND_DEVICE_BUSY", ErrNoMoreEntries: "ND_NO_MORE_ENTRIES",
	ErrUnsuccessful: "ND_UNSUCCESSFUL", ErrAccessViolation: "ND_ACCESS_VIOLATION", ErrInvalidHandle: "ND_INVALID_HANDLE",
	ErrInvalidParameter: "ND_INVALID_PARAMETER", ErrInvalidDeviceRequest: "ND_INVALID_DEVICE_REQUEST",
	ErrNoMemory: "ND_NO_MEMORY", ErrInvalidParameterMix: "ND_INVALID_PARAMETER_MIX", ErrDataOverrun: "ND_DATA_OVERRUN",
	ErrSharingViolation: "ND_SHARING_VIOLATION", ErrInsufficientResources: "ND_INSUFFICIENT_RESOURCES",
	ErrDeviceNotReady: "ND_DEVICE_NOT_READY", ErrIOTimeout: "ND_IO_TIMEOUT", ErrNotSupported: "ND_NOT_SUPPORTED",
	ErrInternalError: "ND_INTERNAL_ERROR", ErrInvalidParameter1: "ND_INVALID_PARAMETER_1",
	ErrInvalidParameter2: "ND_INVALID_PARAMETER_2", ErrInvalidParameter3: "ND_INVALID_PARAMETER_3",
	ErrInvalidParameter4: "ND_INVALID_PARAMETER_4", ErrInvalidParameter5: "ND_INVALID_PARAMETER_5",
	ErrInvalidParameter6: "ND_INVALID_PARAMETER_6", ErrInvalidParameter7: "ND_INVALID_PARAMETER_7",
	ErrInvalidParameter8: "ND_INVALID_PARAMETER_8", ErrInvalidParameter9: "ND_INVALID_PARAMETER_9",
	ErrInvalidParameter10: "ND_INVALID_PARAMETER_10", ErrCanceled: "ND_CANCELED", ErrRemoteError: "ND_REMOTE_ERROR",
	ErrInvalidAddress: "ND_INVALID_ADDRESS", ErrInvalidDeviceState: "ND_INVALID_DEVICE_STATE",
	ErrInvalidBufferSize: "ND_INVALID_BUFFER_SIZE", ErrTooManyAddresses: "ND_TOO_MANY_ADDRESSES",
	ErrAddressAlreadyExists: "ND_ADDRESS_ALREADY_EXISTS", ErrConnectionRefused: "ND_CONNECTION_REFUSED",
	ErrConnectionInvalid: "ND_CONNECTION_INVALID", ErrConnectionActive: "ND_CONNECTION_ACTIVE",
	ErrNetworkUnreachable: "ND_NETWORK_UNREACHABLE", ErrHostUnreachable: "ND_HOST_UNREACHABLE",
	ErrConnectionAborted: "ND_CONNECTION_ABORTED", ErrDeviceRemoved: "ND_DEVICE_REMOVED",
}

// String is the name that NetworkDirect has for it.
func (s Status) String() string {
	if n, ok := statusNames[s]; ok {
		return n
	}
	return fmt.Sprintf("ND_STATUS(0x%08X)", uint32(s))
}

func (s Status) Error() string { return s.String() }

// Err is nil for Success, else s.
func (s Status) Err() error {
	if s == Success {
		return nil
	}
	return s
}

// completionStatus is what a Completion Status of verbs is here, for all requests
// but Receive. What the document's table of statuses has no row for is
// ErrInternalError.
func completionStatus(s verbs.Status) Status {
	switch s {
	case verbs.StatusSuccess:
		return Success
	case verbs.StatusFlushed: // ND-Flush-M1
		return ErrCanceled
	case verbs.StatusRemoteTermination: // ND-Read-R6
		return ErrRemoteError
	case verbs.StatusInvalidLength:
		return ErrDataOverrun
	case verbs.StatusInvalidSTag, verbs.StatusBaseBounds, verbs.StatusAccess, verbs.StatusInvalidPD, verbs.StatusWrap,
		verbs.StatusInvalidRegion, verbs.StatusInvalidateSTag:
		return ErrAccessViolation
	case verbs.StatusInvalidWindow, verbs.StatusSTagNotInvalid, verbs.StatusZeroReadResources, verbs.StatusInvalidWQE:
		return ErrInvalidDeviceRequest
	default:
		return ErrInternalError
	}
}

// receiveStatus is completionStatus for a Receive: there the buffers that a
// message does not fit have one status with those that leave their region
// (ND-Receive-M4).
func receiveStatus(s verbs.Status) Status {
	if s == verbs.StatusBaseBounds {
		return ErrBufferOverflow
	}
	return completionStatus(s)
}

// immediate lists what the Immediate Errors of verbs are here, where the method
// does not know better.
var immediate = []struct {
	verbs wr.ImmediateError
	here  Status
}{
	{verbs.ErrInvalidRNIC, ErrDeviceRemoved},
	{verbs.ErrInsufficientResources, ErrInsufficientResources},
	{verbs.ErrWindowsBound, ErrDeviceBusy},
	{verbs.ErrCQInUse, ErrDeviceBusy},
	{verbs.ErrSRQInUse, ErrDeviceBusy},
	{verbs.ErrShrinkFailed, ErrBufferOverflow},
	{verbs.ErrTooManyCQE, ErrInvalidParameter},
	{verbs.ErrTooManyWR, ErrInvalidParameter},
	{verbs.ErrSRQLimitRange, ErrInvalidParameter},
	{verbs.ErrInvalidModifier, ErrInvalidParameter},
	{verbs.ErrInvalidState, ErrConnectionInvalid},
	{verbs.ErrQueueFull, ErrNoMoreEntries},
	{verbs.ErrInvalidCQ, ErrInvalidHandle},
	{verbs.ErrInvalidQP, ErrInvalidHandle},
	{verbs.ErrInvalidSRQ, ErrInvalidHandle},
	{verbs.ErrInvalidSTag, ErrInvalidHandle},
}

// statusOf finds the status of an error of verbs.
func statusOf(err error) Status {
	for _, m := range immediate {
		if errors.Is(err, m.verbs) {
			return m.here
		}
	}
	return ErrInternalError
}

// explain makes an error of verbs match a status; nil stays nil.
func explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("nd2: %w: %w", statusOf(err), err)
}

// refuse is a status with a reason.
func refuse(s Status, format string, args ...any) error {
	return fmt.Errorf("nd2: %w: %s", s, fmt.Sprintf(format, args...))
}

// canceled is the error of an operation whose context ended.
func canceled(ctx context.Context) error {
	return fmt.Errorf("nd2: %w: %w", ErrCanceled, context.Cause(ctx))
}
