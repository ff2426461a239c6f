package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/printer"
	"go/token"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/softrnic/softrnic"

// promises is the page that names the packages that a program can import: first those that version 1 promises.
const promises = "docs/decisions/0010-api.md"

var quoted = regexp.MustCompile("`([a-z0-9/]+)`")

// packages are the folders of packages that the decision names, and how many of them, from the first on, it promises.
func (s *site) packages() (dirs []string, promised int, err error) {
	raw, err := s.sourceOf(promises)
	if err != nil {
		return nil, 0, err
	}
	text, _, _ := strings.Cut(string(raw), "\n## ")
	yes, no, ok := strings.Cut(text, "**Not promised**")
	if !ok {
		return nil, 0, fmt.Errorf("%s does not say which packages are **Not promised**", promises)
	}
	for _, piece := range []string{yes, no} {
		for _, m := range quoted.FindAllStringSubmatch(piece, -1) {
			sources, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(m[1]), "*.go"))
			if err == nil && len(sources) > 0 && !strings.HasPrefix(m[1], "internal/") && !slices.Contains(dirs, m[1]) {
				dirs = append(dirs, m[1])
			}
		}
		promised = cmp.Or(promised, len(dirs))
	}
	return dirs, promised, nil
}

// addAPI makes a page of each package that a program can import, and an index of them.
func (s *site) addAPI() error {
	dirs, promised, err := s.packages()
	if err != nil {
		return err
	}
	docs := make([]*apiPackage, len(dirs))
	for i, rel := range dirs {
		docs[i], err = readPackage(filepath.Join(s.root, filepath.FromSlash(rel)), rel)
		if err != nil {
			return err
		}
		s.add(&page{out: "api/" + rel + ".html", title: rel})
	}
	for _, pkg := range docs {
		if err := s.renderPackage(pkg); err != nil {
			return fmt.Errorf("%s: %w", pkg.rel, err)
		}
	}
	s.add(apiIndex(docs[:promised], docs[promised:]))
	s.apiNav = []navGroup{{Title: "Promised"}, {Title: "The engine"}}
	for i, rel := range dirs {
		g := &s.apiNav[min(1, i/promised)]
		g.Items = append(g.Items, navItem{Title: rel, Out: "api/" + rel + ".html"})
	}
	return nil
}

type apiPackage struct {
	*doc.Package
	rel     string
	set     *token.FileSet
	imports map[string]string // name to path
}

// readPackage is the package of a folder as amd64 Linux has it.
func readPackage(dir, rel string) (*apiPackage, error) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", "amd64", true
	found, err := ctx.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	pkg := &apiPackage{rel: rel, set: token.NewFileSet(), imports: map[string]string{}}
	var files []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.CgoFiles, found.TestGoFiles, found.XTestGoFiles) {
		f, err := parser.ParseFile(pkg.set, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	for to := range found.ImportPos {
		pkg.imports[path.Base(to)] = to
	}
	pkg.Package, err = doc.NewFromFiles(pkg.set, files, module+"/"+rel)
	return pkg, err
}

// address is where something of a package is described; "" if nowhere that we know.
func (s *site) address(from, importPath, name string) string {
	to := ""
	if rel, ours := strings.CutPrefix(importPath, module+"/"); ours {
		if s.byOut["api/"+rel+".html"] == nil {
			return ""
		}
		to = relative(from, "api/"+rel+".html")
	} else {
		to = "https://pkg.go.dev/" + importPath
	}
	if name != "" {
		to += "#" + name
	}
	return to
}

// apiWriter writes one package.
type apiWriter struct {
	s    *site
	p    *page
	pkg  *apiPackage
	b    bytes.Buffer
	html *comment.Printer
	own  map[string]bool // names of this package that have a heading or an anchor
}

func (s *site) renderPackage(pkg *apiPackage) error {
	p := s.byOut["api/"+pkg.rel+".html"]
	w := &apiWriter{s: s, p: p, pkg: pkg, own: map[string]bool{}}
	w.html = pkg.Printer()
	w.html.HeadingLevel = 3
	w.html.DocLinkURL = func(l *comment.DocLink) string {
		name := l.Name
		if l.Recv != "" {
			name = l.Recv + "." + name
		}
		return s.address(p.out, cmp.Or(l.ImportPath, pkg.ImportPath), name)
	}
	for _, t := range pkg.Types {
		w.own[t.Name] = true
		for _, v := range slices.Concat(t.Consts, t.Vars) {
			w.names(v)
		}
	}
	for _, v := range slices.Concat(pkg.Consts, pkg.Vars) {
		w.names(v)
	}
	fmt.Fprintf(&w.b, "<h1>package %s</h1>\n<pre><code>import \"%s\"</code></pre>\n", pkg.Name, pkg.ImportPath)
	p.parts = []part{{title: "package " + pkg.rel, text: pkg.Doc}}
	w.text(pkg.Doc)
	w.examples(pkg.Examples)
	w.values("Constants", pkg.Consts)
	w.values("Variables", pkg.Vars)
	if len(pkg.Funcs) > 0 {
		w.heading(2, "functions", "Functions")
	}
	for _, f := range pkg.Funcs {
		w.function(f)
	}
	if len(pkg.Types) > 0 {
		w.heading(2, "types", "Types")
	}
	for _, t := range pkg.Types {
		w.heading(3, t.Name, "type "+t.Name)
		w.note(t.Name, "type "+t.Name, t.Doc)
		w.decl(t.Decl)
		w.text(t.Doc)
		w.examples(t.Examples)
		for _, v := range slices.Concat(t.Consts, t.Vars) {
			w.value(v)
		}
		for _, f := range slices.Concat(t.Funcs, t.Methods) {
			w.function(f)
		}
	}
	p.body = template.HTML(w.b.String())
	return nil
}

func (w *apiWriter) names(v *doc.Value) {
	for _, n := range v.Names {
		w.own[n] = true
	}
}

func (w *apiWriter) heading(level int, id, said string) {
	fmt.Fprintf(&w.b, "<h%d id=\"%s\">%s</h%d>\n", level, id, template.HTMLEscapeString(said), level)
	w.p.ids[id] = true
	if level < 4 {
		w.p.toc = append(w.p.toc, heading{level, id, said})
	}
}

// note has search find something.
func (w *apiWriter) note(id, title, text string) {
	w.p.parts = append(w.p.parts, part{id: id, title: w.pkg.Name + ": " + title, text: text})
}

func (w *apiWriter) text(doc string) {
	w.b.Write(w.html.HTML(w.pkg.Parser().Parse(doc)))
}

func (w *apiWriter) values(title string, values []*doc.Value) {
	if len(values) == 0 {
		return
	}
	w.heading(2, strings.ToLower(title), title)
	for _, v := range values {
		w.value(v)
	}
}

func (w *apiWriter) value(v *doc.Value) {
	for _, n := range v.Names {
		if token.IsExported(n) {
			fmt.Fprintf(&w.b, "<span id=\"%s\"></span>", n)
			w.p.ids[n] = true
		}
	}
	w.decl(v.Decl)
	w.text(v.Doc)
	if len(v.Names) > 0 {
		w.note(v.Names[0], strings.Join(v.Names, ", "), v.Doc)
	}
}

func (w *apiWriter) function(f *doc.Func) {
	id, title := f.Name, "func "+f.Name
	if f.Recv != "" {
		id = strings.TrimPrefix(f.Recv, "*") + "." + f.Name
		id, _, _ = strings.Cut(id, "[")
		if !strings.Contains(id, ".") {
			id += "." + f.Name
		}
		title = "func (" + f.Recv + ") " + f.Name
	}
	w.heading(4, id, title)
	w.note(id, title, f.Doc)
	f.Decl.Body = nil
	w.decl(f.Decl)
	w.text(f.Doc)
	w.examples(f.Examples)
}

// decl prints a declaration, its names linked.
func (w *apiWriter) decl(d ast.Decl) {
	w.b.WriteString("<pre tabindex=\"0\"><code>" + colour(w.source(d), w.linkOf) + "</code></pre>\n")
}

// source is the text of a part of a tree.
func (w *apiWriter) source(node any) []byte {
	var b bytes.Buffer
	mode := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}
	if err := mode.Fprint(&b, w.pkg.set, node); err != nil {
		panic(err) // to a buffer, of a tree that was parsed
	}
	return b.Bytes()
}

func (w *apiWriter) linkOf(of, name string) string {
	if of != "" {
		to := w.pkg.imports[of]
		if to == "" || !token.IsExported(name) {
			return ""
		}
		return w.s.address(w.p.out, to, name)
	}
	if w.own[name] && token.IsExported(name) {
		return "#" + name
	}
	return ""
}

func (w *apiWriter) examples(list []*doc.Example) {
	for _, e := range list {
		title := "Example"
		if e.Suffix != "" {
			title += ": " + strings.ReplaceAll(e.Suffix, "_", " ")
		}
		fmt.Fprintf(&w.b, "<details><summary>%s</summary>\n", template.HTMLEscapeString(title))
		w.text(e.Doc)
		var node any = &printer.CommentedNode{Node: e.Code, Comments: e.Comments}
		if e.Play != nil {
			node = e.Play
		}
		fmt.Fprintf(&w.b, "<pre tabindex=\"0\"><code>%s</code></pre>\n", colour(w.source(node), nil))
		if e.Output != "" {
			fmt.Fprintf(&w.b, "<p>prints</p><pre tabindex=\"0\"><code>%s</code></pre>\n", template.HTMLEscapeString(e.Output))
		}
		w.b.WriteString("</details>\n")
	}
}

// apiIndex lists the packages, those of the promise first.
func apiIndex(promised, engine []*apiPackage) *page {
	p := &page{out: "api/index.html", title: "Go packages"}
	var b bytes.Buffer
	b.WriteString("<h1>Go packages</h1>\n<p>What a Go program imports. The pages are made from the sources.</p>\n")
	list := func(title, intro string, docs []*apiPackage) {
		id := namer{}.name(title)
		p.toc = append(p.toc, heading{2, id, title})
		fmt.Fprintf(&b, "<h2 id=\"%s\">%s</h2>\n<p>%s</p>\n<div class=\"wide\"><table>\n", id, title, intro)
		for _, d := range docs {
			fmt.Fprintf(&b, "<tr><td><a href=\"%s.html\"><code>%s</code></a></td><td>%s</td></tr>\n",
				d.rel, d.rel, template.HTMLEscapeString(d.Synopsis(d.Doc)))
		}
		b.WriteString("</table></div>\n")
	}
	const promise = `<a href="../docs/decisions/0010-api.html">what the API promises</a>`
	list("Promised", "Version 1 keeps these as they are: "+promise+".", promised)
	list("The engine", "To read, and for tests of one's own. They may change with every version.", engine)
	p.body = template.HTML(b.String())
	p.parts = []part{{title: p.title, text: "API of all packages"}}
	return p
}

// sourceOf reads a file of the project.
func (s *site) sourceOf(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
}
