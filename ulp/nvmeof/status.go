package nvmeof

import "fmt"

// Status is the status field of a completion without its phase bit: code 7:0, type 10:8, DNR 14.
type Status uint16

// DNR tells a host that the command would fail again.
const DNR Status = 0x4000

// The statuses that the target of this package gives; a Host may meet others.
const (
	Success          Status = 0x000
	InvalidOpcode    Status = 0x001
	InvalidField     Status = 0x002
	CIDConflict      Status = 0x003
	TransferError    Status = 0x004
	InternalError    Status = 0x006
	Aborted          Status = 0x007
	InvalidNamespace Status = 0x00b
	SequenceError    Status = 0x00c
	SGLInvalidLength Status = 0x00f
	SGLInvalidType   Status = 0x011
	SGLInvalidOffset Status = 0x016
	WriteProtected   Status = 0x020
	LBARange         Status = 0x080
	TooManyEvents    Status = 0x105
	InvalidLogPage   Status = 0x109
	NotChangeable    Status = 0x10e
	ConnectFormat    Status = 0x180
	LimitExceeded    Status = 0x183 // of I/O commands
	ConnectBusy      Status = 0x181
	ConnectParameter Status = 0x182
	ConnectHost      Status = 0x184
	WriteFault       Status = 0x280
	UnrecoveredRead  Status = 0x281
)

// statusWords are the names of the statuses that hosts meet, those above among them: generic ones, of commands, of
// Fabrics, and of media (NVM Express 1.4, 4.6.1; NVMe over Fabrics 1.1, 2.2).
var statusWords = map[Status]string{
	Success: "success", InvalidOpcode: "invalid opcode", InvalidField: "invalid field in the command",
	CIDConflict: "command identifier in use", TransferError: "data transfer error", 0x005: "power loss",
	InternalError: "internal error", Aborted: "aborted", 0x008: "aborted, the queue was deleted",
	InvalidNamespace: "invalid namespace or format", SequenceError: "commands out of sequence",
	0x00d: "invalid SGL segment descriptor", 0x00e: "invalid number of SGL descriptors",
	SGLInvalidLength: "invalid SGL data length", 0x010: "invalid SGL metadata length",
	SGLInvalidType: "invalid SGL descriptor type", 0x012: "invalid use of the controller memory buffer",
	0x013: "invalid PRP offset", SGLInvalidOffset: "invalid SGL offset", 0x018: "host identifiers of different formats",
	0x019: "keep-alive timer expired", 0x01a: "keep-alive timeout invalid", WriteProtected: "namespace write protected",
	0x021: "interrupted", 0x022: "transient transport error", LBARange: "blocks beyond the end of the namespace",
	0x081: "capacity exceeded", 0x082: "namespace not ready", 0x083: "reservation conflict", 0x084: "format in progress",
	TooManyEvents: "too many asynchronous event requests", InvalidLogPage: "invalid log page",
	NotChangeable: "feature not changeable", 0x10f: "feature not of a namespace", 0x118: "namespace not attached",
	ConnectFormat: "incompatible format of Connect", ConnectBusy: "controller busy",
	ConnectParameter: "invalid parameter of Connect", 0x183: "limit exceeded, or restart discovery",
	ConnectHost: "host not allowed", 0x190: "discovery log changed", 0x191: "authentication required",
	WriteFault: "write fault", UnrecoveredRead: "unrecovered read error", 0x282: "guard check failed",
	0x285: "compare failed", 0x286: "access denied", 0x287: "deallocated or unwritten block",
	0x300: "internal path error", 0x301: "asymmetric access, persistent loss", 0x302: "asymmetric access, inaccessible",
	0x303: "asymmetric access, in transition", 0x360: "controller pathing error", 0x370: "host pathing error",
}

func (s Status) Error() string {
	text := fmt.Sprintf("NVMe status %#03x", uint16(s&^DNR))
	if words := statusWords[s&^DNR]; words != "" {
		text += " (" + words + ")"
	}
	if s&DNR != 0 {
		text += ", do not retry"
	}
	return text
}

// Is matches the same status with and without DNR.
func (s Status) Is(target error) bool {
	t, ok := target.(Status)
	return ok && s&^DNR == t&^DNR
}
