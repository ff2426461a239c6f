// Package vitcp is VI
// over TCP, draft-dicecco-vitcp-01: the Virtual Interface Architecture's connections,
// Sends and RDMA on a TCP stream. It has four rooms, each above the next:
//
//   - internal/vitcp/port has several processes, and several NICs of one, wait at one TCP port.
//   - vitcp establishes connections: Dial, Connect, Listener, Await and Peer run the
//     machines of the draft's section 4 over a net.Conn and end in an Agreed.
//   - internal/vitcp/endpoint takes what was agreed and moves messages.
//   - internal/vitcp/segment is the wire: headers, the CRC, and finding the segments in a stream.
//
// Section numbers are the draft's. Requirement keys (VT-...) are those of the
// project's list of its keywords.
//
// TCP's urgent pointer is never used: section 3.7 allows that, and demands it of
// a sender that cannot make the pointer name the urgent octet itself (VT-3.7-M2). The
// Urgent Marker Option is read, and obliges to nothing; it is never sent, as a
// stream read the ordinary way lacks the octet that is marked urgent.
package vitcp
