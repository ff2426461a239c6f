package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is what the forge has of Markdown. HTML of the sources passes: they are the project's own.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(blocks{}, 1))),
)

// read parses the page's file, and fills in all that comes from it.
func (s *site) read(p *page) error {
	src, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(p.source)))
	if err != nil {
		return err
	}
	return s.parse(p, src)
}

func (s *site) parse(p *page, src []byte) error {
	doc := markdown.Parser().Parse(text.NewReader(src))
	dropForeign(doc, src)
	names := namer{}
	var problems []error
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			said := textOf(n, src)
			id := names.name(said)
			n.SetAttributeString("id", []byte(id))
			p.ids[id] = true
			if n.Level == 1 && p.title == "" {
				p.title = said
			} else if n.Level == 2 || n.Level == 3 {
				p.toc = append(p.toc, heading{n.Level, id, said})
			}
		case *ast.Link:
			to, err := s.resolve(p, string(n.Destination))
			problems = append(problems, err)
			n.Destination = []byte(to)
		case *ast.Image:
			to, err := s.resolve(p, string(n.Destination))
			problems = append(problems, err)
			n.Destination = []byte(to)
		case *ast.FencedCodeBlock:
			if n.Info != nil && string(n.Info.Value(src)) == "sh live" {
				run := liveRun{script: string(n.Lines().Value(src)), mark: fmt.Sprintf("<!--live %d-->", len(p.live))}
				p.live = append(p.live, run)
				mark := ast.NewString([]byte(run.mark))
				mark.SetCode(true) // as it is
				n.Parent().InsertAfter(n.Parent(), n, mark)
			}
		}
		return ast.WalkContinue, nil
	})
	if err = errors.Join(err, errors.Join(problems...)); err != nil {
		return err
	}
	if p.title == "" {
		return fmt.Errorf("%s: no heading of the first level", p.source)
	}
	p.parts = partsOf(doc, src, p.title)
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, src, doc); err != nil {
		return err
	}
	p.body = template.HTML(b.String())
	return nil
}

// dropForeign leaves out pictures of other hosts, such as badges, and what they leave empty: the site asks nobody.
func dropForeign(doc ast.Node, src []byte) {
	var foreign []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if i, ok := n.(*ast.Image); ok && entering && strings.Contains(string(i.Destination), "://") {
			foreign = append(foreign, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range foreign {
		for n != doc {
			parent := n.Parent()
			parent.RemoveChild(parent, n)
			if textOf(parent, src) != "" || hasPicture(parent) {
				break
			}
			n = parent
		}
	}
}

func hasPicture(n ast.Node) (has bool) {
	_ = ast.Walk(n, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		has = has || n.Kind() == ast.KindImage
		return ast.WalkContinue, nil
	})
	return has
}

// partsOf cuts a page at its headings.
func partsOf(doc ast.Node, src []byte, title string) []part {
	parts := []part{{title: title}}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			if h.Level > 1 {
				id, _ := h.AttributeString("id")
				parts = append(parts, part{id: string(id.([]byte)), title: textOf(h, src)})
			}
			continue
		}
		last := &parts[len(parts)-1]
		last.text = strings.TrimSpace(last.text + "\n" + textOf(n, src))
	}
	return parts
}

// textOf is what a reader sees of a node.
func textOf(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(src))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(src))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(src))
			}
		case *ast.Image:
			return ast.WalkSkipChildren, nil
		case *ast.Paragraph, *ast.ListItem, *east.TableCell, *east.TableRow:
			if !entering {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// namer names headings as the forge does, so that a link to one works in both.
type namer map[string]int

func (names namer) name(said string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, said)
	n := names[id]
	names[id]++
	if n > 0 {
		return fmt.Sprintf("%s-%d", id, n)
	}
	return id
}

// blocks renders what is wide in a box of its own that scrolls, and colours Go.
type blocks struct{}

func (blocks) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(east.KindTable, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, err := w.WriteString("<div class=\"wide\"><table>\n")
			return ast.WalkContinue, err
		}
		_, err := w.WriteString("</table></div>\n")
		return ast.WalkContinue, err
	})
	code := func(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		said := n.Lines().Value(src)
		out := template.HTMLEscapeString(string(said))
		if f, ok := n.(*ast.FencedCodeBlock); ok && string(f.Language(src)) == "go" {
			out = colour(said, nil)
		}
		_, err := fmt.Fprintf(w, "<pre tabindex=\"0\"><code>%s</code></pre>\n", out)
		return ast.WalkSkipChildren, err
	}
	reg.Register(ast.KindCodeBlock, code)
	reg.Register(ast.KindFencedCodeBlock, code)
}
