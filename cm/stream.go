package cm

import (
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// verbsStream is st for Modify QP.
func verbsStream(st *mpa.Stream) *verbs.StreamConfig {
	return &verbs.StreamConfig{
		Conn: st.Conn, Role: st.Role, CRC: st.CRC, MarkersOut: st.MarkersOut, MarkersIn: st.MarkersIn,
		Enhanced: st.Enhanced, IRD: st.IRD, ORD: st.ORD, PeerIRD: st.PeerIRD, PeerORD: st.PeerORD,
		P2P: st.P2P, RTR: st.RTR, Nudge: st.Nudge, EMSS: st.EMSS, Early: st.Early,
		Request: st.Request, Reply: st.Reply,
	}
}
