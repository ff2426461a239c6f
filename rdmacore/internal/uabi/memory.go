//go:build linux && (amd64 || arm64)

package uabi

// AllocPD and the types below are the structs of the commands of their names, and those with Resp
// what the device answers.
type (
	AllocPD     = Response
	AllocPDResp struct{ PDHandle Handle }
	DeallocPD   struct{ PDHandle Handle }

	RegMR struct {
		Response             uint64
		Start, Length, HCAVA uint64
		PDHandle             Handle
		AccessFlags          uint32
	}
	RegMRResp struct {
		MRHandle   Handle
		Lkey, Rkey uint32
	}

	ReregMR struct {
		Response             uint64
		MRHandle             Handle
		Flags                uint32
		Start, Length, HCAVA uint64
		PDHandle             Handle
		AccessFlags          uint32
	}
	ReregMRResp struct{ Lkey, Rkey uint32 }

	DeregMR struct{ MRHandle Handle }

	AllocMW struct {
		Response uint64
		PDHandle Handle
		MWType   uint8
		Reserved [3]uint8
	}
	AllocMWResp struct {
		MWHandle Handle
		Rkey     uint32
	}
	DeallocMW struct{ MWHandle Handle }
)
