// Package segment is the
// wire of VI over TCP, draft-dicecco-vitcp-01 3: Segment is a view of a received segment;
// Header, RDMA and CE are what is appended to make one, and a Cutter finds the segments
// in a stream. None of them does any I/O, or knows a connection.
package segment
