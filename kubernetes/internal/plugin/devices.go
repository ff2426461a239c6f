package plugin

import (
	"strconv"
	"sync"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Devices are what the kubelet counts: as many as were asked for, named 0 to n-1, all healthy or none. A device in
// software takes nothing until a program opens it, so n is a limit that the administrator sets.
type Devices struct {
	n int

	mu      sync.Mutex
	ill     error         // nil: healthy
	changed chan struct{} // closed when ill changes between nil and not
}

// NewDevices makes n devices, ill until SetHealth says otherwise.
func NewDevices(n int, ill error) *Devices {
	return &Devices{n: n, ill: ill, changed: make(chan struct{})}
}

// SetHealth says why the devices cannot be used, or nil that they can. It is whether that is news.
func (d *Devices) SetHealth(ill error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.ill
	d.ill = ill
	if (ill == nil) != (before == nil) {
		close(d.changed)
		d.changed = make(chan struct{})
		return true
	}
	return ill != nil && ill.Error() != before.Error()
}

// Health is nil, or why the devices cannot be used.
func (d *Devices) Health() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ill
}

// List is the devices as the kubelet wants them, and a channel that is closed when this list is out of date.
func (d *Devices) List() (*api.ListAndWatchResponse, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	health := api.Healthy
	if d.ill != nil {
		health = api.Unhealthy
	}
	list := make([]*api.Device, d.n)
	for i := range list {
		list[i] = &api.Device{ID: strconv.Itoa(i), Health: health}
	}
	return &api.ListAndWatchResponse{Devices: list}, d.changed
}

// Has is whether there is a device of that name.
func (d *Devices) Has(id string) bool {
	i, err := strconv.Atoi(id)
	return err == nil && 0 <= i && i < d.n && strconv.Itoa(i) == id
}
