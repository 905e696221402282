package cloud

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/outlast-dev/outlast/internal/job"
)

// A view is stored in blocks, each with the machines of some jobs whose ids are near each other, and beside them a mark of each
// machine. The next list is compared with the marks, machine by machine as it comes in: only blocks in which something differs
// are read and written, and nobody holds all machines of a large region.

const (
	blockJobs = 128 // jobs in one block: some kilobytes
	markSize  = 8   // bytes of a mark
)

func blockOf(id job.ID) int64 { return int64(id) / blockJobs }

// BlockChange is what becomes of one block of a stored view.
type BlockChange struct {
	Number   int64
	Was      string // the marks that it had when it was compared; "" if it was not there
	Marks    string // the marks that it gets; "" if it goes
	Machines []byte // its content
}

// Comparison compares a list with the view that was stored before. It is used by one goroutine.
type Comparison struct {
	all    bool // nothing counts as unchanged
	blocks map[int64]*compared
	marks  marker
}

// compared is one block on the way.
type compared struct {
	was   string
	found []bool // by mark: the list has that machine, unchanged
	came  []Node // machines that are new or differ
}

// Compare begins to compare a list with the marks of the stored view, by block. If all is set, every machine counts as
// changed: somebody else has stored a view otherwise.
func Compare(marks map[int64]string, all bool) *Comparison {
	c := &Comparison{all: all, blocks: make(map[int64]*compared, len(marks))}
	for number, was := range marks {
		c.blocks[number] = &compared{was: was, found: make([]bool, len(was)/markSize)}
	}
	return c
}

// Add takes the next machines of the list. A machine may be listed twice.
func (c *Comparison) Add(nodes []Node) {
	for i := range nodes {
		number := blockOf(nodes[i].Job)
		b := c.blocks[number]
		if b == nil {
			b = &compared{}
			c.blocks[number] = b
		}
		if at, ok := b.find(c.marks.of(&nodes[i])); ok && !c.all {
			b.found[at] = true
			continue
		}
		b.came = append(b.came, nodes[i])
	}
}

// find looks for a mark, which are in order.
func (b *compared) find(mark uint64) (int, bool) {
	low, high := 0, len(b.found)
	for low < high {
		mid := (low + high) / 2
		if b.at(mid) < mark {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < len(b.found) && b.at(low) == mark
}

func (b *compared) at(i int) uint64 {
	return binary.BigEndian.Uint64([]byte(b.was[i*markSize : (i+1)*markSize]))
}

// Changed are the numbers of the blocks in which something differs, in order.
func (c *Comparison) Changed() []int64 {
	var out []int64
	for number, b := range c.blocks {
		if len(b.came) > 0 || slices.Contains(b.found, false) || len(b.was)%markSize != 0 {
			out = append(out, number)
		}
	}
	slices.Sort(out)
	return out
}

// Merge makes the changes of the stored view, from what its changed blocks hold. It also returns the machines that were there
// before and have changed or gone, and those that have changed or come. A block that is damaged is taken out, so that the next
// list fills it again.
func (c *Comparison) Merge(stored map[int64][]byte) (changes []BlockChange, before, came []Node, err error) {
	pack := packer{}
	for _, number := range c.Changed() {
		b := c.blocks[number]
		change := BlockChange{Number: number, Was: b.was}
		kept, gone, err := c.split(b, stored[number])
		before = append(before, gone...)
		if err == nil {
			came = append(came, b.came...)
			err = c.fill(&change, append(kept, b.came...), &pack)
		} else if !errors.Is(err, errDamaged) {
			return nil, nil, nil, err
		}
		if err != nil && !errors.Is(err, errDamaged) {
			return nil, nil, nil, err
		}
		changes = append(changes, change)
	}
	return changes, before, came, nil
}

// errDamaged says that a block does not hold what its marks say.
var errDamaged = errors.New("damaged block of a view")

// split tells the machines of a stored block that are in the list as they were from the others.
func (c *Comparison) split(b *compared, stored []byte) (kept, gone []Node, err error) {
	nodes, err := unpack(stored)
	if err != nil {
		return nil, nil, err
	}
	met := 0
	for i := range nodes {
		if at, ok := b.find(c.marks.of(&nodes[i])); ok && b.found[at] {
			kept = append(kept, nodes[i])
			met++
		} else {
			gone = append(gone, nodes[i])
		}
	}
	for _, found := range b.found {
		if found {
			met--
		}
	}
	if met != 0 {
		return nil, gone, fmt.Errorf("%w: it lacks machines", errDamaged)
	}
	return kept, gone, nil
}

// fill puts machines into a block, each once.
func (c *Comparison) fill(change *BlockChange, nodes []Node, pack *packer) error {
	slices.SortStableFunc(nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	nodes = slices.CompactFunc(nodes, func(a, b Node) bool { return a.ID == b.ID })
	if len(nodes) == 0 {
		return nil
	}
	marks := map[uint64]bool{}
	for i := range nodes {
		marks[c.marks.of(&nodes[i])] = true
	}
	var text []byte
	for _, mark := range slices.Sorted(maps.Keys(marks)) {
		text = binary.BigEndian.AppendUint64(text, mark)
	}
	change.Marks = string(text)
	var err error
	change.Machines, err = pack.pack(nodes)
	return err
}

// marker makes the marks of machines.
type marker struct{ text []byte }

// of is a number that any change of a machine changes. It stays the same when a machine is written to a block and read again,
// and from one version of the program to the next.
func (m *marker) of(n *Node) uint64 {
	b := m.text[:0]
	for _, s := range []string{
		n.Deployment, n.Nonce, n.ID, n.Provider, n.Region, n.Zone, n.Type, string(n.State), n.Reason, n.Address,
	} {
		if !utf8.ValidString(s) {
			s = string([]rune(s)) // as it is when it has been JSON
		}
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	for _, i := range []int64{
		int64(n.Job), int64(n.Task), int64(n.Attempt), int64(n.Rank), n.CreatedAt.Unix(), int64(n.CreatedAt.Nanosecond()),
	} {
		b = binary.AppendVarint(b, i)
	}
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(n.Price))
	b = strconv.AppendBool(b, n.Spot)
	m.text = b
	return xxhash.Sum64(b)
}

// packer makes the content of blocks.
type packer struct{ w *flate.Writer }

func (p *packer) pack(nodes []Node) ([]byte, error) {
	var out bytes.Buffer
	if p.w == nil {
		w, err := flate.NewWriter(&out, flate.BestSpeed)
		if err != nil {
			return nil, fmt.Errorf("pack a view: %w", err)
		}
		p.w = w
	} else {
		p.w.Reset(&out)
	}
	if err := errors.Join(json.NewEncoder(p.w).Encode(nodes), p.w.Close()); err != nil {
		return nil, fmt.Errorf("pack a view: %w", err)
	}
	return out.Bytes(), nil
}

// unpack reads the content of a block; none for an empty one.
func unpack(block []byte) ([]Node, error) {
	if len(block) == 0 {
		return nil, nil
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(block)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	var nodes []Node
	if err := json.Unmarshal(text, &nodes); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nodes, nil
}

// Listed are the machines of a stored view: those of its blocks, or of the whole, if a worker of an older version has stored
// it as one text.
func Listed(whole []byte, blocks ...[]byte) ([]Node, error) {
	var nodes []Node
	if len(whole) > 0 {
		if err := json.Unmarshal(whole, &nodes); err != nil {
			return nil, fmt.Errorf("machines of a view: %w", err)
		}
		return nodes, nil
	}
	for _, block := range blocks {
		some, err := unpack(block)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, some...)
	}
	return nodes, nil
}
