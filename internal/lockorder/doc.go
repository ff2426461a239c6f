// Package lockorder has the mutexes of the engine, each of a class, and the order in which classes may be waited for.
//
// In a build with the tag lockcheck a goroutine that waits for a lock while it holds one that does not come before panics,
// with both places, also if nothing comes of it this time. Without the tag a Mutex is a sync.Mutex, at no cost
// (docs/decisions/0034-lock-classes.md).
//
//	classes.go  the classes       order.go            which may be waited for while another is held
//	plain.go    without the tag   check.go, held.go   with it
package lockorder
