//go:build linux && cgo && (amd64 || arm64)

// Command clib is libsoftrnic-engine.so, built with -buildmode=c-shared: the devices uverbs0, uverbs1, ... and rdma_cm of a
// C program, as functions that the preload library (rdmacore/preload) calls for what the program does with them. It is
// loaded when a program opens its first device. What it is told comes from the environment
// that `rnic run`, or a container, sets: rdmacore.Settings. The preload library has kept it.
package main

// #include "own.h"
// #include "ring.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/rdmacore/internal/ucma"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

func main() {}

// file is an open of one of the devices.
type file interface {
	Write(addr uint64, n int) (int, error)
	Close()
}

// Kinds of devices. Of uverbsN, N is in the bits above.
const (
	kindUverbs = 1
	kindCM     = 2
	kindBits   = 8
)

// devices are those of the process: made when the first of them is opened, and there until it ends.
var devices = sync.OnceValues(func() (devs struct {
	verbs []*uverbs.Device
	cm    *ucma.Device
}, err error) {
	settings, err := settings()
	if err != nil {
		return devs, err
	}
	configs, err := deviceConfigs(settings)
	if err != nil {
		return devs, err
	}
	for _, c := range configs {
		d, err := uverbs.New(c)
		if err != nil {
			return devs, fmt.Errorf("device %s: %w", c.Name, err)
		}
		devs.verbs = append(devs.verbs, d)
	}
	made.Store(&devs.verbs)
	devs.cm = ucma.New(devs.verbs...)
	if settings.Stats {
		without := offer(devs.verbs)
		if without != nil {
			complain(without) // and the program runs on
		}
	}
	return devs, nil
})

// srn_begin is the first call: the n octets at text are the variables of the environment that the program began with which
// concern this library, NAME=value with an octet of 0 behind each.
//
//export srn_begin
func srn_begin(text *C.char, n C.ulong) {
	beginning = newVariables(C.GoStringN(text, C.int(n)))
}

// srn_open opens a device: kind is 1 for uverbs0, 1 + N<<8 for uverbsN, 2 for rdma_cm, fd an eventfd that the engine owns if it
// succeeds. It returns a handle, or -errno.
//
//export srn_open
func srn_open(kind, fd C.int) C.int {
	devs, err := devices()
	if err != nil {
		complain(err)
		return -C.int(syscall.ENODEV)
	}
	var f file
	switch kind & (1<<kindBits - 1) {
	case kindUverbs:
		number := int(kind >> kindBits)
		if number >= len(devs.verbs) {
			return -C.int(syscall.ENXIO)
		}
		d := devs.verbs[number]
		if in := injector(d); d.Unplugged() || in != nil && !in.Opens() {
			return -C.int(syscall.ENODEV)
		}
		_ = syscall.Close(int(fd)) // nothing of this device waits for the descriptor itself
		v := d.Open()
		h := files.add(v)
		v.Share((*uverbs.Rings)(C.srn_ring_memory(C.ulong(unsafe.Sizeof(uverbs.Rings{})))),
			(*uverbs.PostRings)(C.srn_post_ring_memory(C.ulong(unsafe.Sizeof(uverbs.PostRings{})))), h)
		return C.int(h)
	case kindCM:
		f = devs.cm.Open(int(fd))
	default:
		return -C.int(syscall.EINVAL)
	}
	return C.int(files.add(f))
}

// srn_file puts the text of a file in which rdma-core finds the device, by its name below the folder of them, into the n octets at
// buf: it returns the text's length, or -ENOENT for another name.
//
//export srn_file
func srn_file(name *C.char, buf unsafe.Pointer, n C.ulong) C.long {
	s, err := settings()
	if err != nil {
		complain(err)
		return -C.long(syscall.ENODEV)
	}
	text, ok := changed(s, C.GoString(name))
	if !ok && beginning.get("SYSFS_PATH") == "" { // there is no file of it
		text, ok = s.File(C.GoString(name))
	}
	if !ok || len(text) > int(n) {
		return -C.long(syscall.ENOENT)
	}
	return C.long(copy(unsafe.Slice((*byte)(buf), int(n)), text))
}

// srn_close ends an open: its last descriptor is closed.
//
//export srn_close
func srn_close(handle C.int) {
	if f := files.remove(int(handle)); f != nil {
		f.Close()
		files.release(int(handle)) // not before its rings are free
	}
}

// srn_write is a write of n octets at buf to an open: n, or -errno.
//
//export srn_write
func srn_write(handle C.int, buf unsafe.Pointer, n C.ulong) C.long {
	f := files.get(int(handle))
	if f == nil {
		return -C.long(syscall.EBADF)
	}
	done, err := f.Write(uint64(uintptr(buf)), int(n))
	if err != nil {
		return -C.long(errno(err))
	}
	return C.long(done)
}

// srn_watch is uverbs.Device.Watch for a thread that reads fd, which srn_channels has: at most n descriptors in fds, and
// how many, or uverbs.Received.
//
//export srn_watch
func srn_watch(fd C.int, fds *C.int, n C.int) C.int {
	devs, err := devices()
	if err != nil {
		return 0
	}
	room := unsafe.Slice((*int32)(unsafe.Pointer(fds)), int(n))
	found := 0
	for _, d := range devs.verbs {
		if d.Watches(int(fd)) {
			found = d.Watch(int(fd), room)
		} else {
			d.Settle() // who is about to sleep will post no more there for now
		}
	}
	return C.int(found)
}

// injector is what the device was opened with; nil if that was no plan.
func injector(d *uverbs.Device) *fault.Injector {
	in, _ := d.Config().Faults.(*fault.Injector)
	return in
}

func errno(err error) syscall.Errno {
	var refusal *uverbs.Refusal
	var no syscall.Errno
	switch {
	case errors.As(err, &refusal):
		return refusal.Errno
	case errors.As(err, &no):
		return no
	}
	return syscall.EINVAL
}

// complain tells the user, once for each sentence.
func complain(err error) {
	if _, said := complaints.LoadOrStore(err.Error(), true); !said {
		fmt.Fprintln(os.Stderr, "softrnic:", err)
	}
}

var complaints sync.Map

// files are the opens by handle.
var files table

// table finds an open without a lock: every command of a program comes through here.
type table struct {
	mu   sync.Mutex // of changes
	list atomic.Pointer[[]*atomic.Pointer[file]]
	free []int
}

func (t *table) add(f file) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		h := t.free[n-1]
		t.free = t.free[:n-1]
		(*t.list.Load())[h].Store(&f)
		return h
	}
	var list []*atomic.Pointer[file]
	if p := t.list.Load(); p != nil {
		list = *p
	}
	slot := new(atomic.Pointer[file])
	slot.Store(&f)
	list = append(list, slot) // readers of the old length do not look at the new element
	t.list.Store(&list)
	return len(list) - 1
}

func (t *table) get(h int) file {
	p := t.list.Load()
	if p == nil || h < 0 || h >= len(*p) {
		return nil
	}
	if f := (*p)[h].Load(); f != nil {
		return *f
	}
	return nil
}

func (t *table) remove(h int) file {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.get(h)
	if f != nil {
		(*t.list.Load())[h].Store(nil)
	}
	return f
}

// release has the handle of a file that was removed be another's.
func (t *table) release(h int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, h)
}
