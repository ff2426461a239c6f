//go:build linux && (amd64 || arm64)

package uabi_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestCMSizes: the structs are as long as sizeof says of <rdma/rdma_user_cm.h> of Linux 6.1, and what was added later
// stands where offsetof says.
func TestCMSizes(t *testing.T) {
	for name, s := range map[string][2]uintptr{
		"CreateID":          {unsafe.Sizeof(uabi.CreateID{}), 24},
		"DestroyID":         {unsafe.Sizeof(uabi.DestroyID{}), 16},
		"BindIP":            {unsafe.Sizeof(uabi.BindIP{}), 40},
		"CMBindAddr":        {unsafe.Sizeof(uabi.CMBindAddr{}), 136},
		"ResolveIP":         {unsafe.Sizeof(uabi.ResolveIP{}), 64},
		"ResolveAddr":       {unsafe.Sizeof(uabi.ResolveAddr{}), 272},
		"ResolveRoute":      {unsafe.Sizeof(uabi.ResolveRoute{}), 8},
		"CMQueryCmd":        {unsafe.Sizeof(uabi.CMQueryCmd{}), 16},
		"QueryRouteResp":    {unsafe.Sizeof(uabi.QueryRouteResp{}), 208},
		"QueryAddrResp":     {unsafe.Sizeof(uabi.QueryAddrResp{}), 280},
		"QueryPathResp":     {unsafe.Sizeof(uabi.QueryPathResp{}), 8},
		"ResolveIBService":  {unsafe.Sizeof(uabi.ResolveIBService{}), 88},
		"ConnParam":         {unsafe.Sizeof(uabi.ConnParam{}), 272},
		"UDParam":           {unsafe.Sizeof(uabi.UDParam{}), 304},
		"EventResp.UDParam": {unsafe.Sizeof(uabi.ConnParam{}) + unsafe.Sizeof(uabi.EventResp{}.UD), unsafe.Sizeof(uabi.UDParam{})},
		"PathRec":           {unsafe.Sizeof(uabi.PathRec{}), 64},
		"Connect":           {unsafe.Sizeof(uabi.Connect{}), 288},
		"Connect.ECE":       {unsafe.Offsetof(uabi.Connect{}.ECE), uabi.ConnectMin},
		"Listen":            {unsafe.Sizeof(uabi.Listen{}), 8},
		"Accept":            {unsafe.Sizeof(uabi.Accept{}), 296},
		"Accept.ECE":        {unsafe.Offsetof(uabi.Accept{}.ECE), uabi.AcceptMin},
		"Reject":            {unsafe.Sizeof(uabi.Reject{}), 264},
		"Disconnect":        {unsafe.Sizeof(uabi.Disconnect{}), 4},
		"InitQPAttr":        {unsafe.Sizeof(uabi.InitQPAttr{}), 16},
		"GetEvent":          {unsafe.Sizeof(uabi.GetEvent{}), 8},
		"EventResp":         {unsafe.Sizeof(uabi.EventResp{}), 336},
		"EventResp.Res":     {unsafe.Offsetof(uabi.EventResp{}.Reserved), uabi.EventRespMin},
		"SetOption":         {unsafe.Sizeof(uabi.SetOption{}), 24},
		"Notify":            {unsafe.Sizeof(uabi.Notify{}), 8},
		"JoinIPMcast":       {unsafe.Sizeof(uabi.JoinIPMcast{}), 48},
		"JoinMcast":         {unsafe.Sizeof(uabi.JoinMcast{}), 152},
		"MigrateID":         {unsafe.Sizeof(uabi.MigrateID{}), 16},
		"SockaddrIn6":       {unsafe.Sizeof(uabi.SockaddrIn6{}), uabi.SockaddrIn6Len},
		"SockaddrStorage":   {unsafe.Sizeof(uabi.SockaddrStorage{}), 128},
		"route index":       {unsafe.Offsetof(uabi.QueryRouteResp{}.IBDevIndex), uabi.QueryRouteRespMin},
		"addr index":        {unsafe.Offsetof(uabi.QueryAddrResp{}.IBDevIndex), uabi.QueryAddrRespMin},
	} {
		assert.Equal(t, s[1], s[0], name)
	}
}
