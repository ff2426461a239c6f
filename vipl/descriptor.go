package vipl

import (
	"sync/atomic"
	"unsafe"
)

// MemHandle is a VIP_MEM_HANDLE: it names a registered memory region, here and on the
// wire.
type MemHandle uint32

// Address is a VIP_PVOID64: a virtual address, of this process in a data segment and of
// the remote one in an address segment.
type Address uint64

// AddressOf is the virtual address of the first octet of memory: of any slice, so
// AddressOf(descriptors) too. The memory does not move while it is registered.
func AddressOf[T any](memory []T) Address {
	return Address(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}

// ControlSegment is a VIP_CONTROL_SEGMENT (VI Architecture 9.10.2, 10.2).
type ControlSegment struct {
	// Next and NextHandle link the Descriptors of a queue in the appendix's example
	// format. Softrnic's queues are rings: it neither reads nor writes them.
	Next       Address
	NextHandle MemHandle
	// SegCount is how many segments follow: len(Data), and one more for an RDMA
	// operation, which has an address segment.
	SegCount uint16
	Control  Control
	// Reserved is zero.
	Reserved uint32
	// ImmediateData is valid with ControlImmediate; once received, with
	// StatusImmediate.
	ImmediateData uint32
	// Length is the sum of the data segments' lengths, set by the program for all
	// that is posted to the send queue. Once done it is what was transferred, in
	// octets; after an error it means nothing.
	Length uint32
	// Status is zero when posted.
	Status Status
}

// AddressSegment is a VIP_ADDRESS_SEGMENT: the remote memory of an RDMA operation
// (10.3).
type AddressSegment struct {
	Data   Address
	Handle MemHandle
	// Reserved is zero.
	Reserved uint32
}

// DataSegment is a VIP_DATA_SEGMENT: Length octets of local memory from Data on, in the
// region of Handle (10.4).
type DataSegment struct {
	Data   Address
	Handle MemHandle
	Length uint32
}

// Descriptor is a VIP_DESCRIPTOR: a request for one work queue. Fill in the fields, or
// call one of the Set methods, which fill in all of them.
type Descriptor struct {
	Control ControlSegment
	// Address is part of RDMA operations only; SegCount counts it then.
	Address AddressSegment
	// Data are up to NicAttributes.MaxSegmentsPerDesc segments, and may be none.
	Data []DataSegment
}

// SetSend makes d a Send of data.
func (d *Descriptor) SetSend(data ...DataSegment) {
	d.set(ControlOpSendRecv, AddressSegment{}, 0, data)
}

// SetRecv makes d a Receive into data.
func (d *Descriptor) SetRecv(data ...DataSegment) {
	d.set(ControlOpSendRecv, AddressSegment{}, 0, data)
}

// SetRdmaWrite makes d an RDMA Write of data to the remote memory at to.
func (d *Descriptor) SetRdmaWrite(to AddressSegment, data ...DataSegment) {
	d.set(ControlOpRdmaWrite, to, 1, data)
}

// SetRdmaRead makes d an RDMA Read of the remote memory at from into data.
func (d *Descriptor) SetRdmaRead(from AddressSegment, data ...DataSegment) {
	d.set(ControlOpRdmaRead, from, 1, data)
}

func (d *Descriptor) set(op Control, remote AddressSegment, more int, data []DataSegment) {
	d.Data = append(d.Data[:0], data...)
	d.Address = remote
	d.Control = ControlSegment{
		SegCount: uint16(len(data) + more),
		Control:  op,
		Length:   uint32(d.total()),
	}
}

// SetImmediate adds immediate data to a Send or an RDMA Write.
func (d *Descriptor) SetImmediate(v uint32) {
	d.Control.Control |= ControlImmediate
	d.Control.ImmediateData = v
}

// Fence sets the Queue Fence bit.
func (d *Descriptor) Fence() { d.Control.Control |= ControlQFence }

// Done reports whether the provider has completed d. It may be called at any time, by
// the poller of d; once it is true the other fields may be read.
func (d *Descriptor) Done() bool { return d.status()&StatusDone != 0 }

func (d *Descriptor) status() Status {
	return Status(atomic.LoadUint32((*uint32)(&d.Control.Status)))
}

// setStatus is the last write to a Descriptor that completes (VA-6.4.1-M2), and the
// first to one that is posted.
func (d *Descriptor) setStatus(s Status) {
	atomic.StoreUint32((*uint32)(&d.Control.Status), uint32(s))
}

// total is the sum of the data segments' lengths: at most 1<<16 of 32 bits.
func (d *Descriptor) total() uint64 {
	var n uint64
	for i := range d.Data {
		n += uint64(d.Data[i].Length)
	}
	return n
}
