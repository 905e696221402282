package place

// Market is what all providers of a deployment have, as far as is known.
type Market struct {
	Catalogs []Catalog
	Doubts   []string // why there may be more than is known, one sentence each
}

// Certain reports whether what is not in the market does not exist. Where it is not, nothing may be refused for a lack of
// offers: unknown is not no.
func (m Market) Certain() bool { return len(m.Catalogs) > 0 && len(m.Doubts) == 0 }
