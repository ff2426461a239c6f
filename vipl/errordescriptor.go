package vipl

import (
	"fmt"
	"log/slog"

	"github.com/softrnic/softrnic/internal/names"
)

// ResourceCode is a VIP_RESOURCE_CODE (VI Architecture 9.10.3): what an asynchronous
// error belongs to.
type ResourceCode uint8

// The resource codes, numbered as in the appendix.
const (
	ResourceNic ResourceCode = iota
	ResourceVi
	ResourceCQ
	ResourceDescriptor
	numResources
)

var resourceNames = [numResources]string{"NIC", "VI", "CQ", "Descriptor"}

func (r ResourceCode) String() string { return names.Of("ResourceCode", resourceNames[:], r) }

// ErrorCode is a VIP_ERROR_CODE (VI Architecture 9.10.3): an asynchronous error.
type ErrorCode uint8

// The error codes, numbered as in the appendix. It has VIP_ERROR_RDMAW_PROT twice; 9.9.1
// tells what the second is: of RDMA Reads.
const (
	// ErrorPostDesc: a posted Descriptor is not in the memory that the handle names.
	ErrorPostDesc ErrorCode = iota
	// ErrorConnLost: the connection broke; the VI is in StateError.
	ErrorConnLost
	// ErrorRecvQEmpty: a message came and there was no Receive Descriptor.
	ErrorRecvQEmpty
	// ErrorViOverrun: more was posted than the work queue holds.
	ErrorViOverrun
	// ErrorRdmaWProt: a remote RDMA Write met a protection error here; for an Unreliable
	// VI, so many with wrong memory handles that the remote end is slowed down.
	ErrorRdmaWProt
	// ErrorRdmaWData: a remote RDMA Write came damaged.
	ErrorRdmaWData
	// ErrorRdmaWAbort: a remote RDMA Write came in part.
	ErrorRdmaWAbort
	// ErrorRdmaRProt: a remote RDMA Read met a protection error here.
	ErrorRdmaRProt
	// ErrorCompProt: the memory of a Descriptor was deregistered before it was done.
	ErrorCompProt
	// ErrorNoCRC (extension): the VI asked for CRCs and is connected without, because the
	// remote end did not ask. Nothing has broken.
	ErrorNoCRC
	// ErrorCQOverrun (extension): a completion queue had no room for an entry, the first, the second, the fourth
	// and so on that it has lost (6.4.1).
	ErrorCQOverrun
	// ErrorListen (extension): the Nic has trouble with taking connections, of which Err tells. It goes on by itself,
	// unless ConnectWait fails.
	ErrorListen
	numErrorCodes
)

var errorCodeNames = [numErrorCodes]string{
	"Post Descriptor Error", "Connection Lost", "Receive Queue Empty", "VI Overrun",
	"RDMA Write Protection Error", "RDMA Write Data Error", "RDMA Write Packet Abort",
	"RDMA Read Protection Error", "Completion Protection Error", "Connected Without CRC",
	"Completion Queue Overrun", "Listening",
}

func (c ErrorCode) String() string { return names.Of("ErrorCode", errorCodeNames[:], c) }

// ErrorDescriptor is a VIP_ERROR_DESCRIPTOR (VI Architecture 9.10.3): what the handler
// of ErrorCallback is told. Handles that do not apply are nil.
type ErrorDescriptor struct {
	NicHandle     *Nic
	ViHandle      *Vi
	CQHandle      *CQ
	DescriptorPtr *Descriptor
	// OpCode is the operation that met the error: one of StatusOpSend to StatusOpRdmaRead;
	// StatusOpSend also if there is none, as when the connection is lost.
	OpCode       Status
	ResourceCode ResourceCode
	ErrorCode    ErrorCode

	// LocalAddr and RemoteAddr (extension) name the VI and the one that it is, or was to be, connected with; nil if it
	// is not.
	LocalAddr, RemoteAddr *NetAddress
	// Err (extension) is why a connection ended, or what trouble the Nic has; nil if the codes say all.
	Err error
}

// String is one line: codes, and if they are known, the VI, its peer and the cause.
func (e *ErrorDescriptor) String() string {
	s := fmt.Sprintf("%v (%v, %v)", e.ErrorCode, e.ResourceCode, e.OpCode)
	if e.ResourceCode == ResourceNic {
		s = fmt.Sprintf("%v (%v)", e.ErrorCode, e.ResourceCode)
	}
	if e.LocalAddr != nil && e.RemoteAddr != nil {
		s += fmt.Sprintf(": VI %v, connected with %v", e.LocalAddr, e.RemoteAddr)
	}
	if e.Err != nil {
		s += fmt.Sprintf(": %v", e.Err)
	}
	return s
}

// logError is the default error handler (9.9.1).
func logError(e *ErrorDescriptor) {
	args := []any{"error", e.ErrorCode.String(), "resource", e.ResourceCode.String(), "operation", e.OpCode.String()}
	if e.LocalAddr != nil && e.RemoteAddr != nil {
		args = append(args, "vi", e.LocalAddr.String(), "peer", e.RemoteAddr.String())
	}
	if e.Err != nil {
		args = append(args, "cause", e.Err.Error())
	}
	slog.Error("vipl: asynchronous error", args...)
}

// ErrorCallback is VipErrorCallback (VI Architecture 9.9.1): handler is called for each
// asynchronous error of the Nic from now on. A nil handler restores the default, which
// logs. Errors: ErrInvalidParameter (the Nic is closed).
//
// At the two reliable levels it is called once for each connection that breaks, by
// whatever error, and for no other reason (7.2, 7.3). An Unreliable VI calls it only
// when the connection is lost (7.1), and with ErrorRdmaWProt when the remote end tries
// one memory handle after the other. ErrorNoCRC, ErrorCQOverrun and ErrorListen come apart
// from that. What happens to a VI that is not connected is
// told when it is next to be connected (5.1).
func (n *Nic) ErrorCallback(handler func(*ErrorDescriptor)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errNicClosed
	}
	if handler == nil {
		handler = logError
	}
	n.onError = handler
	return nil
}
