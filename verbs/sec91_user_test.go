package verbs_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestUserMethods: a Non-Privileged Consumer has four verbs and nothing else
// (RV-9.1-M1): no method, no field, no way to what lies behind.
func TestUserMethods(t *testing.T) {
	for want, v := range map[string]any{
		"PostRecv PostSend ": verbs.UserQP{}, "PostRecv ": verbs.UserSRQ{}, "Notify Poll ": verbs.UserCQ{},
	} {
		for _, typ := range []reflect.Type{reflect.TypeOf(v), reflect.PointerTo(reflect.TypeOf(v))} {
			got := ""
			for i := range typ.NumMethod() {
				got += typ.Method(i).Name + " "
			}
			assert.Equal(t, want, got, typ)
		}
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			assert.False(t, typ.Field(i).IsExported())
		}
	}
}

// TestUser: a consumer with nothing but its handles moves data.
func TestUser(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.connect()
	qp, err := w.qp.User()
	require.NoError(t, err)
	cq, srq := w.cq.User(), w.srq.User()
	require.NoError(t, second(w.peer.qp.PostRecv(verbs.Recv{SGL: w.peer.mr.SGL(0, 100)})))
	require.NoError(t, second(qp.PostRecv(verbs.Recv{ID: 5})))
	copy(w.mr.Bytes(), "user")
	require.NoError(t, second(qp.PostSend(verbs.Request{ID: 6, SGL: w.mr.SGL(0, 4)})))
	w.peer.wait(t, 1)
	assert.Equal(t, "user", string(w.peer.mr.Bytes()[:4]))
	var sent, got [1]verbs.Completion // the peer may have it before it is known to be sent
	require.Eventually(t, func() bool { return cq.Poll(sent[:]) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, cq.Notify(verbs.NotifyNext))
	require.NoError(t, second(w.peer.qp.PostSend(verbs.Request{})))
	<-w.cq.Events() // by whoever made the handle
	require.Equal(t, 1, cq.Poll(got[:]))
	assert.Equal(t, []uint64{6, 5}, []uint64{sent[0].ID, got[0].ID})

	require.NoError(t, second(srq.PostRecv(verbs.Recv{})))
	sharing, err := w.sharing.User()
	require.NoError(t, err)
	require.ErrorIs(t, second(sharing.PostRecv(verbs.Recv{})), verbs.ErrRQUsesSRQ)

	privileged, err := w.nic.CreateQP(verbs.QPConfig{PD: w.pd, SendCQ: w.cq, RecvCQ: w.cq, Privileged: true})
	require.NoError(t, err)
	require.ErrorIs(t, second(privileged.User()), verbs.ErrInvalidModifier)
}
