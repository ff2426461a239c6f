// Package endpoint moves
// the messages of an established VI/TCP connection, between its stream and registered
// memory. It is told what the ends agreed by a Config, and tells what becomes of requests
// and receives to a Handler; how the connection came about it does not know.
//
//	endpoint.go, types.go, events.go     what there is to be called, and what is told
//	drive.go                             the reader and the writer, without goroutines
//	queue.go, transmit.go, batch.go,
//	write.go, raw_linux.go               from a post to the stream: the writer
//	receive.go, inbound.go, reads.go     from the stream to memory: the reader
//	reject.go, guess.go                  what cannot be taken
//	memory.go                            spans of registered memory, held while they are used
//	deliver.go, end.go                   telling the Handler, in order; the end
package endpoint
