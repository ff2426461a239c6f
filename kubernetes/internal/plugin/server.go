package plugin

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Injector says what a container that has these devices is given. An error says what is wrong with the devices.
type Injector func(ids []string) (*api.ContainerAllocateResponse, error)

// server answers the kubelet. It is for one session: one socket, one registration.
type server struct {
	api.UnimplementedDevicePluginServer
	devices *Devices
	inject  Injector
	// watched gets a value when a ListAndWatch begins, lost when one ends. Both have room for one: who reads them
	// wants to know that it happened.
	watched, lost chan struct{}
}

func newServer(d *Devices, inject Injector) *server {
	return &server{devices: d, inject: inject, watched: make(chan struct{}, 1), lost: make(chan struct{}, 1)}
}

// signal puts a value in a channel with room for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// GetDevicePluginOptions says that Allocate is all there is: no device is nearer than another, and none needs
// preparation.
func (s *server) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch sends the list now and whenever it changes, until the kubelet or the session ends it.
func (s *server) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	signal(s.watched)
	defer signal(s.lost)
	for {
		list, changed := s.devices.List()
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// Allocate says what each container is given.
func (s *server) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	if err := s.devices.Health(); err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "the devices cannot be used now: %v", err)
	}
	answer := &api.AllocateResponse{}
	for _, c := range r.GetContainerRequests() {
		ids := c.GetDevicesIds()
		if err := s.check(ids); err != nil {
			return nil, err
		}
		given, err := s.inject(ids)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

func (s *server) check(ids []string) error {
	if len(ids) == 0 {
		return status.Error(codes.InvalidArgument, "a container without a device; ask for one at least")
	}
	for i, id := range ids {
		if !s.devices.Has(id) {
			return status.Errorf(codes.InvalidArgument, "no device %q; there are 0 to %d", id, s.devices.n-1)
		}
		if slices.Contains(ids[:i], id) {
			return status.Errorf(codes.InvalidArgument, "device %q twice in one container; name each once", id)
		}
	}
	return nil
}
