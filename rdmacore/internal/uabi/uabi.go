//go:build linux && (amd64 || arm64)

// Package uabi has the structs and numbers of the two ABIs between the kernel's RDMA devices
// and user space, as <rdma/ib_user_verbs.h> and <rdma/rdma_user_cm.h> of Linux define them:
// the kernel never changes what is there. Names are those of the headers in Go's spelling,
// without the prefix ib_uverbs_ or rdma_ucm_. The structs have the layout of the C structs on the
// 64-bit little-endian machines this builds for, and hold neither pointers nor padding
// that is not a field. Data of a provider that may follow a struct (driver_data) is not part of it.
package uabi

// Handle names an object of one open of a device.
type Handle = uint32

// GID is an InfiniBand GID: of softrnic the IPv4-mapped, or the IPv6, address.
type GID = [16]byte
