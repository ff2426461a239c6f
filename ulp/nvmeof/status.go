package nvmeof

import "fmt"

// Status is the status field of a completion without its phase bit: code 7:0, type 10:8, DNR 14.
type Status uint16

// DNR tells a host that the command would fail again.
const DNR Status = 0x4000

// The statuses that the target gives.
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

func (s Status) Error() string {
	if s&DNR != 0 {
		return fmt.Sprintf("NVMe status %#03x, do not retry", uint16(s&^DNR))
	}
	return fmt.Sprintf("NVMe status %#03x", uint16(s))
}
