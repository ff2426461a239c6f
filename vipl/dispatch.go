package vipl

import "github.com/softrnic/softrnic/internal/lockorder"

// dispatcher calls the program's handlers, one after the other in the order in which they
// were asked for, on a goroutine that lives only while there is something to call. So a
// handler may make any call of this package, CloseNic included.
type dispatcher struct {
	mu      lockorder.Mutex[lockorder.VIEvents] // innermost
	calls   []func()                            // guarded by mu, as all below
	running bool
	closed  bool
}

// do has call called soon. After close it is not.
func (d *dispatcher) do(call func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.calls = append(d.calls, call)
	if !d.running {
		d.running = true
		go d.run()
	}
}

func (d *dispatcher) run() {
	for {
		d.mu.Lock()
		if len(d.calls) == 0 {
			d.running = false
			d.calls = nil
			d.mu.Unlock()
			return
		}
		call := d.calls[0]
		d.calls = d.calls[1:]
		d.mu.Unlock()
		call()
	}
}

// close cancels all calls that have not begun. It does not wait for the one that has, which
// may be where it is called from.
func (d *dispatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.closed = nil, true
}
