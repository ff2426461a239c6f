package main

import (
	"cmp"
	"go/scanner"
	"go/token"
	"html/template"
	"strings"
)

// colour is Go source as HTML: comments, strings and keywords marked, and names linked. linkOf gets a name and what
// stands before its point, if anything, and returns its address or ""; nil links nothing.
func colour(src []byte, linkOf func(of, name string) string) string {
	var b strings.Builder
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, func(token.Position, string) {}, scanner.ScanComments) // a fragment need not be whole
	at := 0
	var before [2]string // the two tokens before, for pkg.Name
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // the scanner's own
		}
		lit = cmp.Or(lit, tok.String())
		from := file.Offset(pos)
		if from < at || from+len(lit) > len(src) {
			continue
		}
		template.HTMLEscape(&b, src[at:from])
		said := template.HTMLEscapeString(lit)
		switch {
		case tok == token.COMMENT:
			said = `<span class="c">` + said + `</span>`
		case tok == token.STRING || tok == token.CHAR:
			said = `<span class="s">` + said + `</span>`
		case tok.IsKeyword():
			said = `<span class="k">` + said + `</span>`
		case tok == token.IDENT && linkOf != nil:
			of := ""
			if before[1] == "." {
				of = before[0]
			}
			if to := linkOf(of, lit); to != "" {
				said = `<a href="` + template.HTMLEscapeString(to) + `">` + said + `</a>`
			}
		}
		b.WriteString(said)
		at = from + len(lit)
		before = [2]string{before[1], lit}
	}
	template.HTMLEscape(&b, src[at:])
	return b.String()
}
