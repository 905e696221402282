package spec

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlast-dev/outlast/internal/didyoumean"
	"github.com/outlast-dev/outlast/internal/job"
)

// The forms of amounts, and the words that some fields are made of.
var (
	cpuPattern    = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,9})?)(\+?)$`)
	memoryPattern = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([A-Za-z]{0,2})(\+?)$`)
	sizePattern   = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([A-Za-z]{0,2})()$`)
	pricePattern  = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,9})?)$`)
	localDiskForm = regexp.MustCompile(`^(?:[a-z]{1,20}|(?:[a-z]{1,20}:)?[0-9]{1,9}\+?)$`)
	portForm      = regexp.MustCompile(`^[0-9]{1,5}(-[0-9]{1,5})?$`)

	diskTiers    = []string{"low", "medium", "high", "ultra", "best"}
	networkTiers = []string{"standard", "best"}
)

func (d *decoder) cpus(n *node, path string) job.Quantity {
	m := cpuPattern.FindStringSubmatch(n.text)
	if m == nil {
		d.add(n.at, path, "is "+describe(n), `write a number of CPUs such as 4, or "4+" for at least four`)
		return job.Quantity{}
	}
	return d.quantity(n, path, m[1], 1, m[2])
}

// memory reads an amount with an optional unit, GB by default.
func (d *decoder) memory(n *node, path string) job.Quantity {
	return d.bytes(n, path, memoryPattern, `write GB such as 16, or "16+" for at least that, with a unit if need be: "512MB"`)
}

// size is an amount like memory, but never at least.
func (d *decoder) size(n *node, path string) float64 {
	return d.bytes(n, path, sizePattern, `write GB such as 100, with a unit if need be: "1TB"`).N
}

// bytes reads an amount in a form. As in SkyPilot, units grow by 1024.
func (d *decoder) bytes(n *node, path string, form *regexp.Regexp, right string) job.Quantity {
	m := form.FindStringSubmatch(n.text)
	if m == nil {
		d.add(n.at, path, "is "+describe(n), right)
		return job.Quantity{}
	}
	power := strings.Index("KMGTP", strings.TrimSuffix(strings.ToUpper(cmp.Or(m[2], "GB")), "B"))
	if power < 0 || strings.EqualFold(m[2], "B") {
		d.add(n.at, path, "has the unit "+quote(m[2]), "units are KB, MB, GB, TB and PB")
		return job.Quantity{}
	}
	return d.quantity(n, path, m[1], math.Pow(1024, float64(power-2)), m[3])
}

// quantity makes an amount of what the forms above let through.
func (d *decoder) quantity(n *node, path, digits string, unit float64, plus string) job.Quantity {
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || v == 0 {
		d.add(n.at, path, "is "+quote(n.text), "it must be more than 0")
		return job.Quantity{}
	}
	return job.Quantity{N: v * unit, AtLeast: plus != ""}
}

func (d *decoder) price(n *node, path string) float64 {
	if !pricePattern.MatchString(n.text) {
		d.add(n.at, path, "is "+describe(n), "write a price per hour such as 1.5")
		return 0
	}
	return d.quantity(n, path, n.text, 1, "").N
}

// tier reads one of a few words.
func (d *decoder) tier(n *node, path string, words []string) string {
	word := strings.ToLower(n.text)
	switch {
	case n.kind != kindText || !slices.Contains(words, word):
		d.add(n.at, path, "is "+describe(n), choice(word, words))
		return ""
	case word == none: // as in SkyPilot: the provider's own
		return ""
	}
	return word
}

// choice says which word of a few was meant, or which there are.
func choice(word string, words []string) string {
	if near := didyoumean.Nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	return "it is one of " + strings.Join(words, ", ")
}

// localDisk reads a kind, a size in GB, or both: nvme, 1000+, nvme:1000+.
func (d *decoder) localDisk(n *node, path string) string {
	s := strings.ToLower(n.text)
	if n.kind >= kindMapping || !localDiskForm.MatchString(s) {
		d.add(n.at, path, "is "+describe(n), `write a kind, a size in GB, or both: "nvme:1000+"`)
		return ""
	}
	return s
}

// image reads one image for all regions, or one for each.
func (d *decoder) image(n *node, path string, c *candidate) {
	c.want.Image, c.images, c.imagesAt = "", nil, n.at
	if n.kind != kindMapping {
		c.want.Image = d.word(n, path)
		return
	}
	if len(n.fields) == 0 {
		d.add(n.at, path, "is "+describe(n), "write an image, or one for each region")
	}
	for _, f := range n.fields {
		at := join(path, f.name)
		if !infraPart.MatchString(f.name) {
			d.add(f.at, at, "is not the name of a region", "")
			continue
		}
		if c.images == nil {
			c.images = make(map[string]string, len(n.fields))
		}
		c.images[f.name] = d.word(f.value, at)
	}
}

// ports reads a port, a range, or a list of them.
func (d *decoder) ports(n *node, path string) []string {
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	var out []string
	for i, item := range items {
		at := path
		if n.kind == kindList {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		from, to, isRange := strings.Cut(item.text, "-")
		if !isRange {
			to = from
		}
		least, err1 := strconv.Atoi(from)
		most, err2 := strconv.Atoi(to)
		if item.kind >= kindMapping || !portForm.MatchString(item.text) || err1 != nil || err2 != nil || least < 1 || most < least || most > 65535 {
			d.add(item.at, at, "is "+describe(item), "write a port from 1 to 65535, or a range such as 8000-8010")
			continue
		}
		if !slices.Contains(out, item.text) {
			out = append(out, item.text)
		}
	}
	return out
}

const maxWord = 1024 // bytes of what goes to a provider as it is

// word reads text for a provider: printable, not long.
func (d *decoder) word(n *node, path string) string {
	s := d.asText(n, path)
	if what := badWord(s); s != "" && what != "" {
		d.add(n.at, path, what, "")
		return ""
	}
	return s
}

// badWord says what keeps text from a provider, or "".
func badWord(s string) string {
	switch {
	case len(s) > maxWord:
		return fmt.Sprintf("is longer than %d bytes", maxWord)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return quote(s) + " has characters that can not be printed"
	}
	return ""
}

// words reads names and their values, which need no quotes.
func (d *decoder) words(n *node, path string) map[string]string {
	if !d.isMapping(n, path) || len(n.fields) == 0 {
		return nil
	}
	out := make(map[string]string, len(n.fields))
	for _, f := range n.fields {
		at := join(path, f.name)
		switch what := cmp.Or(badWord(f.name), badWord(f.value.text)); {
		case f.value.kind >= kindMapping || f.value.kind == kindNull:
			d.add(f.at, at, "is "+describe(f.value), "it must be text, a number or a boolean")
		case what != "" || f.name == "":
			d.add(f.at, at, cmp.Or(what, "has no name"), "")
		default:
			out[f.name] = f.value.text
		}
	}
	return out
}

// autostopForm is how long a machine may be idle. It is checked though it has no meaning here: a slip is a slip.
var autostopForm = regexp.MustCompile(`^[0-9]{1,9}[mhdwMHDW]?$`)

// autostop checks what says when a cluster is to be stopped. The machine of a job ends with the job.
func (d *decoder) autostop(n *node, path string) {
	const right = "write true, false, minutes, 10m, or a mapping with idle_minutes and down; it has no effect on a job"
	if n.kind != kindBool || n.text != "false" {
		d.unused(path, "the machine of a job ends with the job")
	}
	switch n.kind {
	case kindBool, kindInteger:
	case kindMapping:
		d.checkFields(n, path, autostopSection)
	default:
		if n.kind != kindText || !autostopForm.MatchString(n.text) {
			d.add(n.at, path, "is "+describe(n), right)
		}
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
