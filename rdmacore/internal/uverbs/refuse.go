//go:build linux && (amd64 || arm64)

package uverbs

import "github.com/softrnic/softrnic/rdmacore/internal/uabi"

// Commands that Linux has and an iWARP device refuses, with the errno of its uverbs: what the driver has no function
// for is not there at all.
func init() {
	for number, name := range map[int]string{
		uabi.CmdModifyAH: "MODIFY_AH", uabi.CmdQueryAH: "QUERY_AH",
		uabi.CmdRegSMR: "REG_SMR", uabi.CmdQueryMR: "QUERY_MR", uabi.CmdBindMW: "BIND_MW",
		uabi.CmdPeekCQ: "PEEK_CQ", uabi.CmdAttachMcast: "ATTACH_MCAST", uabi.CmdDetachMcast: "DETACH_MCAST",
		uabi.CmdOpenXRCD: "OPEN_XRCD", uabi.CmdCloseXRCD: "CLOSE_XRCD", uabi.CmdCreateXSRQ: "CREATE_XSRQ", uabi.CmdOpenQP: "OPEN_QP",
	} {
		legacy[number] = &command{name: name}
	}
	for number, name := range map[int]string{
		uabi.ExCmdCreateFlow: "EX_CREATE_FLOW", uabi.ExCmdDestroyFlow: "EX_DESTROY_FLOW", uabi.ExCmdCreateWQ: "EX_CREATE_WQ",
		uabi.ExCmdModifyWQ: "EX_MODIFY_WQ", uabi.ExCmdDestroyWQ: "EX_DESTROY_WQ", uabi.ExCmdCreateRwqIndTbl: "EX_CREATE_RWQ_IND_TBL",
		uabi.ExCmdDestroyRwqIndTbl: "EX_DESTROY_RWQ_IND_TBL", uabi.ExCmdModifyCQ: "EX_MODIFY_CQ",
	} {
		extended[number] = &command{name: name}
	}
}
