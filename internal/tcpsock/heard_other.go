//go:build !linux

package tcpsock

// HeardOf knows nothing here.
func HeardOf(uintptr) (h Heard, ok bool) { return h, false }

// Ask does nothing here.
func Ask(uintptr, bool) {}

// Mute does nothing here.
func Mute(uintptr) (unmute func(fd uintptr)) { return nil }
