// Package safecopy copies to and from memory that may fault where Go cannot turn the fault into a
// panic: a program that Go is a library of may put signal handlers of its own over Go's, and a
// copy under debug.SetPanicOnFault ends the process then. The system copies in its place, from the
// process to itself, and says EFAULT. That takes some microseconds, so who copies looks first (Look,
// a system call or two) and then asks Foreign, which costs nothing.
//
// On Linux; elsewhere Go's handlers are taken to be there.
package safecopy
