package uppertester_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/internal/test/docgen"
	"github.com/softrnic/softrnic/verbs"
)

// object is a JSON object.
type object = map[string]any

// schema is the protocol as a JSON Schema, made from Tester and the types of its methods.
type schema struct {
	comments map[string]string // of types, fields and methods: "OpenArgs", "OpenArgs.PD", "Tester.Open"
	defs     object
}

// TestSchema: schema.json is what args.go says; -update writes it.
func TestSchema(t *testing.T) {
	want, err := json.MarshalIndent(protocol(t), "", "  ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *docgen.Update {
		require.NoError(t, os.WriteFile("schema.json", want, 0o644))
	}
	have, err := os.ReadFile("schema.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "run this test with -update")
}

// protocol makes the schema.
func protocol(t *testing.T) object {
	s := &schema{comments: comments(t, "args.go", "uppertester.go", "../../wr", "../../verbs"), defs: object{}}
	methods := object{}
	var calls []any
	for _, m := range methodsOf() {
		params, result := m.Type.In(0), m.Type.In(1).Elem()
		name := "Upper." + m.Name
		methods[name] = object{"description": s.comments["Tester."+m.Name], "params": s.of(params, true), "result": s.of(result, false)}
		calls = append(calls, object{"properties": object{
			"method": object{"const": name},
			"params": object{"type": "array", "prefixItems": []any{s.of(params, true)}, "minItems": 1, "maxItems": 1},
		}})
	}
	return object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "Calls of rnic conform run to an upper tester, JSON-RPC 1.0",
		"description": "An instance is a call. What it is answered with is under methods. See docs/upper-tester.md.",
		"type":        "object", "required": []any{"method", "params", "id"},
		"properties": object{"id": object{"type": "integer", "minimum": 0}},
		"oneOf":      calls, "methods": methods, "$defs": s.defs,
	}
}

// methodsOf are the methods of a Tester but Close, in the order of their names.
func methodsOf() []reflect.Method {
	var list []reflect.Method
	tester := reflect.TypeFor[uppertester.Tester]()
	for i := range tester.NumMethod() {
		if m := tester.Method(i); m.Name != "Close" {
			list = append(list, m)
		}
	}
	return list
}

// comments are the comments of exported names in files, or in the files of directories.
func comments(t *testing.T, paths ...string) map[string]string {
	all := map[string]string{}
	say := func(name string, groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if text := strings.Join(strings.Fields(g.Text()), " "); text != "" && all[name] == "" {
				all[name] = text
			}
		}
	}
	for _, p := range paths {
		files := []string{p}
		if filepath.Ext(p) == "" {
			var err error
			files, err = filepath.Glob(p + "/*.go")
			require.NoError(t, err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			require.NoError(t, err)
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.TYPE {
					continue
				}
				for _, spec := range g.Specs {
					typ := spec.(*ast.TypeSpec)
					say(typ.Name.Name, typ.Doc, g.Doc)
					var fields *ast.FieldList
					switch of := typ.Type.(type) {
					case *ast.StructType:
						fields = of.Fields
					case *ast.InterfaceType:
						fields = of.Methods
					default:
						continue
					}
					for _, field := range fields.List {
						for _, n := range field.Names {
							say(typ.Name.Name+"."+n.Name, field.Doc, field.Comment)
						}
					}
				}
			}
		}
	}
	return all
}

// of is the schema of a type. An argument has all fields, a reply those that are not zero.
func (s *schema) of(t reflect.Type, argument bool) object {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}
	case reflect.TypeFor[[]byte]():
		return object{"type": []any{"string", "null"}, "contentEncoding": "base64"}
	case reflect.TypeFor[*verbs.Reason]():
		return object{"description": "of softrnic alone: leave it out"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice:
		return object{"type": []any{"array", "null"}, "items": s.of(t.Elem(), argument)}
	case reflect.Pointer:
		return object{"anyOf": []any{object{"type": "null"}, s.of(t.Elem(), argument)}}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return s.ref(t, argument)
	default:
		if t.PkgPath() != "" {
			return s.ref(t, argument)
		}
		return integer(t)
	}
}

// ref names a type, which is defined if it was not yet.
func (s *schema) ref(t reflect.Type, argument bool) object {
	name := t.Name()
	if s.defs[name] == nil {
		def := object{}
		s.defs[name] = def
		if text := s.comments[name]; text != "" {
			def["description"] = text
		}
		if t.Kind() != reflect.Struct {
			maps.Copy(def, integer(t))
			if values := values(t); values != nil {
				def["oneOf"] = values
			}
			if bits[name] != "" {
				def["description"] = fmt.Sprint(def["description"], " A sum of ", bits[name], ".")
			}
		} else {
			s.fields(t, argument, def)
		}
	}
	return object{"$ref": "#/$defs/" + name}
}

// fields describes a struct. An embedded one is part of it.
func (s *schema) fields(t reflect.Type, argument bool, def object) {
	properties := object{}
	var names []any
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		p := s.of(f.Type, argument)
		owner := t
		if len(f.Index) > 1 {
			owner = t.Field(f.Index[0]).Type
		}
		if text := s.comments[owner.Name()+"."+f.Name]; text != "" && p["description"] == nil {
			p["description"] = text
		}
		properties[f.Name] = p
		names = append(names, f.Name)
	}
	def["type"], def["properties"] = "object", properties
	if argument && len(names) > 0 {
		def["required"] = names
	}
}

// integer is a number of a kind.
func integer(t reflect.Type) object {
	o := object{"type": "integer"}
	bits := t.Bits()
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		o["minimum"], o["maximum"] = 0, uint64(1)<<bits-1
	case reflect.Uint64:
		o["minimum"], o["maximum"] = 0, uint64(math.MaxUint64)
	}
	return o
}

// bits are what the bits of a set mean.
var bits = map[string]string{
	"Access": inBits(8, func(b uint8) string { return verbs.Access(b).String() }),
	"Flags":  fmt.Sprintf("%d unsignaled, %d read fence, %d local fence", verbs.Unsignaled, verbs.ReadFence, verbs.LocalFence),
}

func inBits(n int, name func(uint8) string) string {
	var list []string
	for i := range n {
		if text := name(1 << i); text != "none" {
			list = append(list, fmt.Sprintf("%d %s", 1<<i, text))
		}
	}
	return strings.Join(list, ", ")
}

// values are the numbers of a type that have names; nil if none has.
func values(t reflect.Type) (list []any) {
	name := func(v reflect.Value) string {
		if e, ok := v.Interface().(error); ok {
			return e.Error()
		}
		return fmt.Sprint(v.Interface())
	}
	if t.Kind() != reflect.Uint8 || t.Implements(reflect.TypeFor[interface{ Valid() bool }]()) {
		return nil
	}
	for i := range 256 {
		v := reflect.New(t).Elem()
		v.SetUint(uint64(i))
		if text := name(v); !strings.HasSuffix(text, fmt.Sprintf("(%d)", i)) && text != fmt.Sprint(i) {
			list = append(list, object{"const": i, "title": text})
		}
	}
	return list
}

// valid says what is wrong with a value, as json.Decoder.UseNumber has it; "" for nothing. It knows what this
// schema uses.
func valid(root, s object, v any, at string) string {
	if ref, ok := s["$ref"].(string); ok {
		s = root["$defs"].(object)[strings.TrimPrefix(ref, "#/$defs/")].(object)
	}
	if any, ok := s["anyOf"].([]any); ok {
		for _, one := range any {
			if valid(root, one.(object), v, at) == "" {
				return ""
			}
		}
		return at + ": none of what it may be"
	}
	kinds, _ := s["type"].([]any)
	if one, ok := s["type"].(string); ok {
		kinds = []any{one}
	}
	if kind := kindOf(v); kinds != nil && !slices.Contains(kinds, any(kind)) {
		return fmt.Sprintf("%s: %s, not %v", at, kind, kinds)
	}
	if oneOf, ok := s["oneOf"].([]any); ok && s["type"] == "integer" {
		if !slices.ContainsFunc(oneOf, func(c any) bool { return fmt.Sprint(c.(object)["const"]) == fmt.Sprint(v) }) {
			return fmt.Sprintf("%s: there is no %v", at, v)
		}
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if items, ok := s["items"].(object); ok {
				if wrong := valid(root, items, e, fmt.Sprintf("%s[%d]", at, i)); wrong != "" {
					return wrong
				}
			}
		}
	case object:
		properties, _ := s["properties"].(object)
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Sprintf("%s: %s is missing", at, name)
			}
		}
		for name, e := range v {
			p, ok := properties[name].(object)
			if !ok {
				return fmt.Sprintf("%s: there is no field %s", at, name)
			}
			if wrong := valid(root, p, e, at+"."+name); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "integer"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// TestValid: the validator finds what is wrong.
func TestValid(t *testing.T) {
	root := protocol(t)
	for text, want := range map[string]string{
		`{"Of":1,"Timeout":5}`:             "",
		`{"Of":1}`:                         "x: Timeout is missing",
		`{"Of":"1","Timeout":5}`:           "x.Of: string, not [integer]",
		`{"Of":1,"Timeout":5,"More":true}`: "x: there is no field More",
		`[]`:                               "x: array, not [object]",
	} {
		require.Equal(t, want, valid(root, object{"$ref": "#/$defs/Wait"}, decoded(t, text), "x"), text)
	}
	events := object{"$ref": "#/$defs/Events"}
	require.Empty(t, valid(root, events, decoded(t, `{"Events":[{"ID":1,"QP":7,"Why":null}]}`), "x"))
	require.Equal(t, "x.Events[0].ID: there is no 200", valid(root, events, decoded(t, `{"Events":[{"ID":200}]}`), "x"))
}

func read(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

func decoded(t *testing.T, text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), text)
	return v
}
