// Package nvmeof is NVMe over Fabrics on RDMA, over packages verbs and cm, without a kernel's target or initiator. A
// Target exports files and memory as disks to hosts such as Linux's `nvme connect -t rdma`; a Host uses the disks of a
// target, Linux's as well.
//
//	Target ─ Subsystem ─ namespaces (Disk)
//	   └ controller, one an association of a host ─ queues, one a connection
//
//	Discover, Dial → Host, one end of an association ─ Namespace (io.ReaderAt, io.WriterAt)
//	   └ queues, one a connection ─ slots, one a command that is outstanding
//
// A queue is a connection (cm), its private data name the queue. A command is a Send of 64 octets and in-capsule data; the
// target moves other data by RDMA Write (reads) and RDMA Read (writes) with the key in the command's SGL, and answers
// with a Send, or Send with Invalidate of that key, of 16 octets. Names and numbers are those of Linux's nvme.h and
// nvme-rdma.h; all fields are little endian. Both halves read and write them by the same lines.
//
// A command that is wrong gets the status of the specification. A capsule without a whole command has no command identifier
// to answer, and a key that is not the host's ends the stream by its own RNIC's Terminate: these cost the host its connection, and
// nobody else anything. An answer that is wrong, or does not come, costs the target its association.
package nvmeof
