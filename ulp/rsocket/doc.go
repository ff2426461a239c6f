// Package rsocket is net.Conn and net.Listener over RDMA: net/http, gRPC, io.Copy and crypto/tls run over it without a change. On the wire it
// is what the rsockets of librdmacm speak, so that the peer may also be a C program on rsockets.
//
//	Dial, Config.DialContext, Listen     ->  *Conn, *Listener
//	Conn.Map, Conn.WriteAt               one-sided: the peer's buffers, by offset
//
// Each side has a ring which the peer writes into, in two halves. A message of 32 bits says how much was written, or that a half of the ring is
// the peer's again; on iWARP that is a Send behind the RDMA Write, on InfiniBand a Write with Immediate Data (Config.Immediate).
//
//	config.go    what a program may ask for                        conn.go      a connection: making it, its parts
//	listener.go  listening and accepting
//	private.go   what the two tell one another as they connect     message.go   messages, descriptors
//	inbound.go   the ring, and what the peer may do                outbound.go  the peer's ring, and what this side may do
//	memory.go    registered memory, receives                       post.go      requests
//	progress.go  waiting for completions, and what they mean       end.go       half-close, close, how streams end
//	read.go, write.go, remote.go                                   deadline.go
//
// The design and its reasons are in docs/decisions/0022.
package rsocket
