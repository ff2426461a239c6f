//go:build linux && (amd64 || arm64)

package uabi_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// TestVerbsSizes: the structs are as long as sizeof says of <rdma/ib_user_verbs.h> of Linux 6.1.
func TestVerbsSizes(t *testing.T) {
	for name, s := range map[string][2]uintptr{
		"CmdHdr":            {unsafe.Sizeof(uabi.CmdHdr{}), 8},
		"ExCmdHdr":          {unsafe.Sizeof(uabi.ExCmdHdr{}), 16},
		"AsyncEventDesc":    {unsafe.Sizeof(uabi.AsyncEventDesc{}), 16},
		"CompEventDesc":     {unsafe.Sizeof(uabi.CompEventDesc{}), 8},
		"GetContextResp":    {unsafe.Sizeof(uabi.GetContextResp{}), 8},
		"QueryDeviceResp":   {unsafe.Sizeof(uabi.QueryDeviceResp{}), 176},
		"ExQueryDevice":     {unsafe.Sizeof(uabi.ExQueryDevice{}), 8},
		"ExQueryDeviceResp": {unsafe.Sizeof(uabi.ExQueryDeviceResp{}), 304},
		"QueryPort":         {unsafe.Sizeof(uabi.QueryPort{}), 16},
		"QueryPortResp":     {unsafe.Sizeof(uabi.QueryPortResp{}), 40},
		"AllocPDResp":       {unsafe.Sizeof(uabi.AllocPDResp{}), 4},
		"RegMR":             {unsafe.Sizeof(uabi.RegMR{}), 40},
		"RegMRResp":         {unsafe.Sizeof(uabi.RegMRResp{}), 12},
		"ReregMR":           {unsafe.Sizeof(uabi.ReregMR{}), 48},
		"ReregMRResp":       {unsafe.Sizeof(uabi.ReregMRResp{}), 8},
		"AllocMW":           {unsafe.Sizeof(uabi.AllocMW{}), 16},
		"AllocMWResp":       {unsafe.Sizeof(uabi.AllocMWResp{}), 8},
		"CreateCQ":          {unsafe.Sizeof(uabi.CreateCQ{}), 32},
		"CreateCQResp":      {unsafe.Sizeof(uabi.CreateCQResp{}), 8},
		"ExCreateCQ":        {unsafe.Sizeof(uabi.ExCreateCQ{}), 32},
		"ExCreateCQResp":    {unsafe.Sizeof(uabi.ExCreateCQResp{}), 16},
		"ResizeCQ":          {unsafe.Sizeof(uabi.ResizeCQ{}), 16},
		"ResizeCQResp":      {unsafe.Sizeof(uabi.ResizeCQResp{}), 8},
		"PollCQ":            {unsafe.Sizeof(uabi.PollCQ{}), 16},
		"PollCQResp":        {unsafe.Sizeof(uabi.PollCQResp{}), 8},
		"ReqNotifyCQ":       {unsafe.Sizeof(uabi.ReqNotifyCQ{}), 8},
		"DestroyCQ":         {unsafe.Sizeof(uabi.DestroyCQ{}), 16},
		"DestroyCQResp":     {unsafe.Sizeof(uabi.DestroyCQResp{}), 8},
		"WC":                {unsafe.Sizeof(uabi.WC{}), 48},
		"QPAttr":            {unsafe.Sizeof(uabi.QPAttr{}), 144},
		"AHAttr":            {unsafe.Sizeof(uabi.AHAttr{}), 32},
		"QPDest":            {unsafe.Sizeof(uabi.QPDest{}), 32},
		"CreateQP":          {unsafe.Sizeof(uabi.CreateQP{}), 56},
		"CreateCQDriver":    {unsafe.Sizeof(uabi.CreateCQDriver{}), 56}, // as in rdmacore/preload
		"CreateQPDriver":    {unsafe.Sizeof(uabi.CreateQPDriver{}), 72},
		"AllocPDDriver":     {unsafe.Sizeof(uabi.AllocPDDriver{}), 16},
		"CreateQPResp":      {unsafe.Sizeof(uabi.CreateQPResp{}), 32},
		"ExCreateQP":        {unsafe.Sizeof(uabi.ExCreateQP{}), 64},
		"ExCreateQPResp":    {unsafe.Sizeof(uabi.ExCreateQPResp{}), 40},
		"QueryQP":           {unsafe.Sizeof(uabi.QueryQP{}), 16},
		"QueryQPResp":       {unsafe.Sizeof(uabi.QueryQPResp{}), 128},
		"ModifyQP":          {unsafe.Sizeof(uabi.ModifyQP{}), 112},
		"ExModifyQP":        {unsafe.Sizeof(uabi.ExModifyQP{}), 120},
		"DestroyQP":         {unsafe.Sizeof(uabi.DestroyQP{}), 16},
		"PostSend":          {unsafe.Sizeof(uabi.PostSend{}), 24},
		"SGE":               {unsafe.Sizeof(uabi.SGE{}), 16},
		"SendWR":            {unsafe.Sizeof(uabi.SendWR{}), 56},
		"RecvWR":            {unsafe.Sizeof(uabi.RecvWR{}), 16},
		"CreateAH":          {unsafe.Sizeof(uabi.CreateAH{}), 56},
		"CreateAHResp":      {unsafe.Sizeof(uabi.CreateAHResp{}), 4},
		"DestroyAH":         {unsafe.Sizeof(uabi.DestroyAH{}), 4},
		"CreateSRQ":         {unsafe.Sizeof(uabi.CreateSRQ{}), 32},
		"CreateSRQResp":     {unsafe.Sizeof(uabi.CreateSRQResp{}), 16},
		"ModifySRQ":         {unsafe.Sizeof(uabi.ModifySRQ{}), 16},
		"QuerySRQ":          {unsafe.Sizeof(uabi.QuerySRQ{}), 16},
		"QuerySRQResp":      {unsafe.Sizeof(uabi.QuerySRQResp{}), 16},
		"DestroySRQ":        {unsafe.Sizeof(uabi.DestroySRQ{}), 16},
	} {
		assert.Equal(t, s[1], s[0], name)
	}
}
