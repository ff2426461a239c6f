package rdmap

// Linux siw builds the control word from C bit fields, which a little-endian
// compiler fills from the low bit of each octet: layer and error type change
// places in the first octet, and M, D, R become 0x01, 0x02, 0x04 of the third.
const (
	siwM    = 0x0100
	siwD    = 0x0200
	siwR    = 0x0400
	siwBits = siwM | siwD | siwR
)

// LooksSwapped reports whether the control word, as received, can only be read
// in siw's layout: its M, D, R bits stand where RFC 5040 4.8 has reserved bits,
// or its code means nothing until layer and type change places. A word that
// reads well both ways, such as 0x20060000, is not called swapped.
func (t *TerminateHeader) LooksSwapped() bool {
	if t.Raw&(termM|termD|termR) != 0 || t.Raw&termReserved&^siwBits != 0 {
		return false
	}
	if !t.SwappedCode().Defined() {
		return false
	}
	return t.Raw&siwBits != 0 || !t.Code.Defined()
}

// SwappedCode is the code as siw meant it, if LooksSwapped.
func (t *TerminateHeader) SwappedCode() TermCode {
	return MakeTermCode(t.Code.Type(), t.Code.Layer(), t.Code.Code())
}
