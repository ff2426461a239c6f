package tcpsock

import "time"

// Past is a deadline that has passed on any clock: one that is set to end a read or a
// write that is under way.
var Past = time.Unix(1, 0)
