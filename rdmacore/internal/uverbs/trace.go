//go:build linux && (amd64 || arm64)

package uverbs

import (
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// traced runs a command and tells of it, as strace does of a system call: decoded arguments, result, and why it was
// refused. err is what take says.
func (f *File) traced(c *call, cmd *command, err error) error {
	name, args := "?", ""
	if cmd == nil && len(c.buf) >= hdrSize {
		args = fmt.Sprintf("%#x", view[uabi.CmdHdr](c.buf).Command)
	}
	if cmd != nil {
		name = cmd.name
		if cmd.trace != nil && err == nil {
			args = cmd.trace(c)
		}
	}
	if err == nil {
		err = f.dev.Planned(cmd.verb)
	}
	if err == nil {
		err = cmd.run(c)
	}
	line := "uverbs " + name + "(" + args + ") = "
	if err != nil {
		r := refusal(err)
		line += fmt.Sprintf("-1 %s (%s)", errnoName(r.Errno), r.Why)
		if c.bad > 0 {
			line += fmt.Sprintf(" bad_wr=%d", c.bad)
		}
	} else {
		line += "0"
		if cmd.result != nil {
			line += " (" + cmd.result(c) + ")"
		}
	}
	f.dev.config.Trace(line)
	return err
}

// Fields lists the fields of a struct of the ABI that are not zero, under the names of the header; without the
// address of the response, which says nothing, and without private data, of which it is the length that does.
func Fields(v any) string {
	var out []string
	decode(reflect.ValueOf(v).Elem(), &out)
	return strings.Join(out, ", ")
}

var stringer = reflect.TypeFor[fmt.Stringer]()

func decode(v reflect.Value, out *[]string) {
	t := v.Type()
	for i := range t.NumField() {
		f := v.Field(i)
		name := t.Field(i).Name
		switch {
		case name == "Response" || name == "Reserved" || name == "PrivateData" || f.IsZero():
		case t.Field(i).Type.Implements(stringer):
			*out = append(*out, fmt.Sprintf("%s=%v", snake(name), f.Interface()))
		case f.Kind() == reflect.Struct:
			decode(f, out)
		case name == "QPState" || name == "CurQPState":
			*out = append(*out, snake(name)+"="+stateName(uint8(f.Uint())))
		case f.Kind() == reflect.Array:
			*out = append(*out, fmt.Sprintf("%s=%x", snake(name), f.Interface()))
		case strings.HasSuffix(name, "Handle") && name != "UserHandle":
			*out = append(*out, fmt.Sprintf("%s=%d", snake(strings.TrimSuffix(name, "Handle")), f.Interface()))
		case hexadecimal(name):
			*out = append(*out, fmt.Sprintf("%s=%#x", snake(name), f.Interface()))
		default:
			*out = append(*out, fmt.Sprintf("%s=%d", snake(name), f.Interface()))
		}
	}
}

// hexadecimal reports whether people read a field so.
func hexadecimal(name string) bool {
	switch name {
	case "UserHandle", "Start", "HCAVA", "Lkey", "Rkey", "QPN", "DestQPNum", "AccessFlags", "QPAccessFlags", "AttrMask", "DeviceCapFlags", "Addr", "QPNum", "SrcQP", "RemoteAddr", "UID", "OptVal":
		return true
	}
	return false
}

// snake is a field's name as the header has it: MaxSendWR is max_send_wr.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if upper(r) && i > 0 && (!upper(rune(name[i-1])) || i+1 < len(name) && !upper(rune(name[i+1]))) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func upper(r rune) bool { return r >= 'A' && r <= 'Z' }

// errnoName is the name that Linux's manuals use; glibc has another for one of them.
func errnoName(no syscall.Errno) string {
	if no == syscall.EOPNOTSUPP {
		return "EOPNOTSUPP"
	}
	return unix.ErrnoName(no)
}
