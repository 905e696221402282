package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/outlast-dev/outlast/internal/job"
)

// World says what there is. All who share a world should say the same.
type World struct {
	Name   string  `yaml:"name"` // of the world in its Redis
	Seed   uint64  `yaml:"seed"`
	Zones  []Zone  `yaml:"zones"`
	Faults []Fault `yaml:"faults"` // from the beginning; see [Cloud.Inject] for later ones

	// Settle is how long lists may lag: faults that make them lag are no longer than this.
	Settle time.Duration `yaml:"settle"`
	// ViewEvery is how often a worker lists all machines of a region; 0 means every second.
	ViewEvery time.Duration `yaml:"view_every"`
	// Keep is how long a machine stays listed after its end; 0 means ten minutes.
	Keep time.Duration `yaml:"keep"`
	// NoLedger leaves the ledger out, for benchmarks; in a file that is ledger: false.
	NoLedger bool `yaml:"-"`
}

// worldFile is a world as it is written.
type worldFile struct {
	World  `yaml:",inline"`
	Ledger *bool `yaml:"ledger"`
}

// Zone is a place with machines of one or more types, which share its capacity.
type Zone struct {
	Name     string        `yaml:"name"`
	Region   string        `yaml:"region"` // "" means that the zone is its own region
	Boot     time.Duration `yaml:"boot"`   // from create to running
	Notice   time.Duration `yaml:"notice"` // that a spot machine gets when the capacity falls below what is there
	Capacity Capacity      `yaml:"capacity"`
	Types    []Type        `yaml:"types"`
}

// Type is a kind of machine, on demand for Price and as spot for SpotPrice per hour; 0 means that there is no such market.
type Type struct {
	Name         string         `yaml:"name"`
	CPUs         float64        `yaml:"cpus"`
	Memory       float64        `yaml:"memory"` // GB
	Price        float64        `yaml:"price"`
	SpotPrice    float64        `yaml:"spot_price"`
	Accelerators map[string]int `yaml:"accelerators"` // at most one kind
}

const (
	defaultViewEvery = time.Second
	defaultKeep      = 10 * time.Minute
)

// UnmarshalYAML reads a capacity: a number of machines, or a mapping with one of steps, markov and trace.
func (c *Capacity) UnmarshalYAML(text []byte) error {
	var n int
	if yaml.Unmarshal(text, &n) == nil {
		*c = Capacity{N: n}
		return nil
	}
	var m struct {
		N      int           `yaml:"n"`
		Steps  []Step        `yaml:"steps"`
		Repeat time.Duration `yaml:"repeat"`
		Markov *Markov       `yaml:"markov"`
		Trace  string        `yaml:"trace"`
		Scale  *float64      `yaml:"scale"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&m); err != nil {
		return errors.New("must be a number of machines, or a mapping with steps, markov or trace (" + firstLine(err) + ")")
	}
	*c = Capacity{N: m.N, Steps: m.Steps, Repeat: m.Repeat, Markov: m.Markov}
	if m.Trace != "" {
		c.traceFile, c.traceScale = m.Trace, 1
		if m.Scale != nil {
			c.traceScale = *m.Scale
		}
	}
	return nil
}

// firstLine is the message of a YAML error without its excerpt.
func firstLine(err error) string {
	var at yaml.Error
	if errors.As(err, &at) {
		return at.GetMessage()
	}
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line)
}

// LoadWorld reads a world file. Its errors say where they are.
func LoadWorld(path string) (World, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return World{}, fmt.Errorf("read the world: %w", err)
	}
	var file worldFile
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&file); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			return World{}, fmt.Errorf("%s:%d: %s", path, at.GetToken().Position.Line, at.GetMessage())
		}
		return World{}, fmt.Errorf("%s: %w", path, err)
	}
	w := file.World
	w.NoLedger = file.Ledger != nil && !*file.Ledger
	for i := range w.Zones {
		if err := w.Zones[i].Capacity.readTrace(filepath.Dir(path)); err != nil {
			return World{}, located(path, text, &mistake{fmt.Sprintf("zones[%d].capacity", i), err.Error()})
		}
	}
	if err := w.check(); err != nil {
		return World{}, located(path, text, err)
	}
	return w, nil
}

// mistake is what is wrong with a world, and where.
type mistake struct{ path, text string }

func (m *mistake) Error() string { return m.path + ": " + m.text }

// located adds the line to a mistake.
func located(path string, text []byte, err error) error {
	var m *mistake
	if !errors.As(err, &m) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if at, bad := yaml.PathString("$." + m.path); bad == nil {
		if file, bad := parser.ParseBytes(text, 0); bad == nil {
			if node, bad := at.FilterFile(file); bad == nil && node != nil {
				return fmt.Errorf("%s:%d: %w", path, node.GetToken().Position.Line, err)
			}
		}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// worldName keeps names fit for a key, an infra such as sim/east, and a terminal.
var worldName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// typeName and accelerator are what job files may call a type of machine and what is in it.
var (
	typeName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$`)
	accelerator = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,30}$`)
)

const nameWanted = "must be up to 32 lower-case letters, digits and inner dashes"

// check says what is wrong with a world.
func (w World) check() error {
	switch {
	case !worldName.MatchString(w.Name):
		return &mistake{"name", nameWanted}
	case len(w.Zones) == 0:
		return &mistake{"zones", "must name at least one zone"}
	case w.Settle < 0 || w.ViewEvery < 0 || w.Keep < 0:
		return &mistake{"settle", "settle, view_every and keep must not be negative"}
	}
	seen := map[string]bool{}
	for i, z := range w.Zones {
		at := fmt.Sprintf("zones[%d]", i)
		if seen[z.Name] {
			return &mistake{at + ".name", z.Name + " is there twice"}
		}
		seen[z.Name] = true
		if err := z.check(at); err != nil {
			return err
		}
	}
	for i, f := range w.Faults {
		if err := w.checkFault(f); err != nil {
			return &mistake{fmt.Sprintf("faults[%d]", i), err.Error()}
		}
	}
	return nil
}

func (z Zone) check(at string) error {
	switch {
	case !worldName.MatchString(z.Name):
		return &mistake{at + ".name", nameWanted}
	case z.Region != "" && !worldName.MatchString(z.Region):
		return &mistake{at + ".region", nameWanted}
	case z.Boot < 0 || z.Notice < 0:
		return &mistake{at, "boot and notice must not be negative"}
	case len(z.Types) == 0:
		return &mistake{at, "must have at least one type of machine, such as types: [{name: s1, cpus: 4, memory: 16, price: 1, spot_price: 0.3}]"}
	}
	if err := z.Capacity.check(); err != nil {
		return &mistake{at + ".capacity", err.Error()}
	}
	seen := map[string]bool{}
	for i, t := range z.Types {
		at := fmt.Sprintf("%s.types[%d]", at, i)
		if seen[t.Name] {
			return &mistake{at + ".name", t.Name + " is there twice"}
		}
		seen[t.Name] = true
		if err := t.check(); err != nil {
			return &mistake{at, err.Error()}
		}
	}
	return nil
}

func (t Type) check() error {
	switch {
	case !typeName.MatchString(t.Name):
		return errors.New("name must be up to 61 letters, digits, dots, dashes and underscores")
	case t.CPUs < 0 || t.Memory < 0 || t.Price < 0 || t.SpotPrice < 0:
		return errors.New("cpus, memory and prices must not be negative")
	case t.Price == 0 && t.SpotPrice == 0:
		return errors.New("must have a price or a spot_price")
	case len(t.Accelerators) > 1:
		return errors.New("a type has at most one kind of accelerator: make it two types")
	}
	for kind, n := range t.Accelerators {
		if !accelerator.MatchString(kind) || n < 1 {
			return fmt.Errorf("accelerators: %q: %d must be a name and a number from 1 on", kind, n)
		}
	}
	return nil
}

func (c Capacity) check() error {
	forms := 0
	for _, set := range []bool{len(c.Steps) > 0, c.Markov != nil, c.Trace != nil} {
		if set {
			forms++
		}
	}
	if forms > 1 {
		return errors.New("must be one of steps, markov and trace")
	}
	if c.N < 0 || c.Repeat < 0 {
		return errors.New("must not be negative")
	}
	for i, s := range c.Steps {
		switch {
		case s.N < 0 || s.At < 0:
			return errors.New("steps must not be negative")
		case i > 0 && s.At <= c.Steps[i-1].At:
			return errors.New("each step must come after the one before")
		case c.Repeat > 0 && s.At >= c.Repeat:
			return errors.New("each step must come before repeat is over")
		}
	}
	if m := c.Markov; m != nil && (m.Up < 0 || m.Down < 0 || m.Every <= 0 || !probability(m.ToUp) || !probability(m.ToDown)) {
		return errors.New("markov must have an every, up and down from 0 on, and to_up and to_down from 0 to 1")
	}
	if t := c.Trace; t != nil && (t.Gap <= 0 || len(t.Machines) == 0) {
		return errors.New("a trace must have a gap and at least one number of machines")
	}
	return nil
}

func probability(p float64) bool { return p >= 0 && p <= 1 }

// readTrace reads the file of a trace, which is named from the folder of the world file.
func (c *Capacity) readTrace(folder string) error {
	if c.traceFile == "" {
		return nil
	}
	path := c.traceFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	c.Trace, err = ParseTrace(text, c.traceScale)
	return err
}

// ParseTrace reads a trace in the form of the public spot traces: {"metadata": {"gap_seconds": G}, "data": [...]}, in which
// each number is how many machines were there during one gap. They are multiplied by scale.
func ParseTrace(text []byte, scale float64) (*Trace, error) {
	var file struct {
		Metadata struct {
			Gap float64 `json:"gap_seconds"`
		} `json:"metadata"`
		Data []float64 `json:"data"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("the trace is not of the form {\"metadata\": {\"gap_seconds\": 60}, \"data\": [3, 4]}: %w", err)
	}
	if !(scale >= 0) || !(file.Metadata.Gap > 0) {
		return nil, errors.New("the trace must have a gap_seconds above 0, and a scale from 0 on")
	}
	t := &Trace{Gap: time.Duration(file.Metadata.Gap * float64(time.Second))}
	for _, n := range file.Data {
		t.Machines = append(t.Machines, max(0, int(n*scale)))
	}
	return t, Capacity{Trace: t}.check()
}

// zonesOf are the zones of a region.
func (w World) zonesOf(region string) []Zone {
	var zones []Zone
	for _, z := range w.Zones {
		if z.region() == region {
			zones = append(zones, z)
		}
	}
	return zones
}

// zone finds a zone by its name.
func (w World) zone(name string) (Zone, bool) {
	for _, z := range w.Zones {
		if z.Name == name {
			return z, true
		}
	}
	return Zone{}, false
}

// region is where the zone lies.
func (z Zone) region() string {
	if z.Region == "" {
		return z.Name
	}
	return z.Region
}

// offers are the markets of all types of a zone.
func (z Zone) offers() []job.Offer {
	var all []job.Offer
	for _, t := range z.Types {
		o := job.Offer{Provider: name, Region: z.region(), Zone: z.Name, Type: t.Name, CPUs: t.CPUs, MemoryGB: t.Memory}
		for kind, n := range t.Accelerators {
			o.Accelerator, o.AcceleratorCount = kind, float64(n)
		}
		if o.Price = t.Price; o.Price > 0 {
			all = append(all, o)
		}
		if o.Price, o.Spot = t.SpotPrice, true; o.Price > 0 {
			all = append(all, o)
		}
	}
	return all
}
