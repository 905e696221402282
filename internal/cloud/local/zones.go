package local

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// name is the provider's name, and the type of its machines without accelerators.
const name = "local"

// Config says where machines are kept and what there is to be had.
type Config struct {
	// Root is the directory of all machines on this computer. Several workers, and several deployments, share it.
	Root string
	// Deployment is whose machines this provider makes, lists and ends.
	Deployment string
	// Zones is what there is; none means the zones a, b, c and d.
	Zones []Zone
	// Machine is the argv that makes a program call [MachineMain] with the arguments that follow, such as
	// {"/proc/self/exe", "machine"}. The same program must serve {"/proc/self/exe", "agent"} as the agent.
	Machine []string
}

// Zone is a region with a single zone of the same name. Zero fields have defaults.
type Zone struct {
	Name      string        // lower-case letters, digits and inner dashes
	Capacity  int           // machines at a time, of all deployments; 0 means 16, negative none
	Boot      time.Duration // from create to running; 0 means 50 ms, negative none
	CPUs      float64       // nominal, as is memory: nothing holds a machine to it
	MemoryGB  float64
	Price     float64   // per hour, on demand
	SpotPrice float64   // per hour; 0 means about a third of Price
	Fail      job.Class // every new machine is refused with this class, to try out what happens then

	// Accelerators that a machine may have, and how many at most: {"A100": 8}. They are nominal, too.
	Accelerators map[string]int
}

// The defaults of a zone. Its on-demand price grows with its place in the list, so that offers have one order.
const (
	defaultCapacity  = 16
	defaultBoot      = 50 * time.Millisecond
	defaultCPUs      = 8
	defaultMemoryGB  = 32
	defaultPrice     = 0.10
	defaultPriceStep = 0.01
	spotPart         = 1.0 / 3
	acceleratorPrice = 1.0 // per hour and accelerator, on demand
)

// zoneName keeps names fit for a directory, an infra such as local/a, and a terminal.
var zoneName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// zonesOf fills in the defaults.
func zonesOf(given []Zone) ([]Zone, error) {
	if len(given) == 0 {
		given = []Zone{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	}
	zones := make([]Zone, 0, len(given))
	for i, z := range given {
		if !zoneName.MatchString(z.Name) {
			return nil, fmt.Errorf("zone name %q: must be up to 32 lower-case letters, digits and inner dashes", z.Name)
		}
		if slices.ContainsFunc(zones, func(other Zone) bool { return other.Name == z.Name }) {
			return nil, fmt.Errorf("zone %s is there twice", z.Name)
		}
		if z.CPUs < 0 || z.MemoryGB < 0 || z.Price < 0 || z.SpotPrice < 0 {
			return nil, fmt.Errorf("zone %s: cpus, memory and prices must not be negative", z.Name)
		}
		if err := checkAccelerators(z.Accelerators); err != nil {
			return nil, fmt.Errorf("zone %s: %w", z.Name, err)
		}
		zones = append(zones, z.filled(i))
	}
	return zones, nil
}

// acceleratorName is what job files may call an accelerator.
var acceleratorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,30}$`)

// maxAccelerators bounds those of one machine, and with them the length of the list of offers.
const maxAccelerators = 1024

func checkAccelerators(all map[string]int) error {
	lower := map[string]bool{} // they are compared without regard to case
	for kind, n := range all {
		switch {
		case !acceleratorName.MatchString(kind):
			return fmt.Errorf("accelerator %q: must be up to 31 letters, digits, dots and dashes", kind)
		case lower[strings.ToLower(kind)]:
			return fmt.Errorf("accelerator %s is there twice", kind)
		case n < 1 || n > maxAccelerators:
			return fmt.Errorf("accelerator %s: must be 1 to %d of them, not %d", kind, maxAccelerators, n)
		}
		lower[strings.ToLower(kind)] = true
	}
	return nil
}

// filled is the zone at place i of the list with its defaults.
func (z Zone) filled(i int) Zone {
	z.Capacity = max(0, cmp.Or(z.Capacity, defaultCapacity))
	z.Boot = max(0, cmp.Or(z.Boot, defaultBoot))
	z.CPUs = cmp.Or(z.CPUs, defaultCPUs)
	z.MemoryGB = cmp.Or(z.MemoryGB, defaultMemoryGB)
	z.Price = cmp.Or(z.Price, cents(defaultPrice+defaultPriceStep*float64(i)))
	z.SpotPrice = cmp.Or(z.SpotPrice, cents(z.Price*spotPart))
	return z
}

// cents rounds a price to a hundredth of a cent, so that it reads well.
func cents(price float64) float64 { return math.Round(price*1e4) / 1e4 }

// offers are both markets of each kind of machine that the zone has: one without accelerators, and for each kind of
// accelerator those with 1, 2, 4 and so on of them, and with all.
func (z Zone) offers() []job.Offer {
	plain := job.Offer{Provider: name, Region: z.Name, Zone: z.Name, Type: name, CPUs: z.CPUs, MemoryGB: z.MemoryGB}
	all := z.markets(plain)
	for _, kind := range slices.Sorted(maps.Keys(z.Accelerators)) {
		for _, n := range counts(z.Accelerators[kind]) {
			o := plain
			o.Type = fmt.Sprintf("%s-x%d", strings.ToLower(kind), n)
			o.Accelerator, o.AcceleratorCount = kind, float64(n)
			all = append(all, z.markets(o)...)
		}
	}
	return all
}

// markets are an offer on demand and as spot. Each accelerator adds to the price.
func (z Zone) markets(o job.Offer) []job.Offer {
	spot := o
	o.Price = cents(z.Price + acceleratorPrice*o.AcceleratorCount)
	spot.Price, spot.Spot = cents(z.SpotPrice+acceleratorPrice*spotPart*o.AcceleratorCount), true
	return []job.Offer{o, spot}
}

// counts are the powers of two below n, and n.
func counts(n int) []int {
	var all []int
	for c := 1; c < n; c *= 2 {
		all = append(all, c)
	}
	return append(all, n)
}

// deploymentName keeps a deployment's name fit for an environment variable and a terminal.
var deploymentName = regexp.MustCompile(`^[[:graph:]]{1,128}$`)

// checked returns the configuration with its defaults, or says what is wrong with it.
func (c Config) checked() (Config, error) {
	root, err := filepath.Abs(c.Root)
	switch {
	case c.Root == "":
		return c, errors.New("the root directory of local machines is not given")
	case err != nil:
		return c, fmt.Errorf("root directory of local machines: %w", err)
	case !deploymentName.MatchString(c.Deployment):
		return c, fmt.Errorf("deployment %q: must be 1 to 128 printable characters without spaces", c.Deployment)
	case len(c.Machine) == 0:
		return c, errors.New("the command that runs a local machine is not given")
	}
	c.Root = root
	c.Zones, err = zonesOf(c.Zones)
	return c, err
}

// refuse makes a classified error of one call.
func refuse(op string, class job.Class, scope, format string, args ...any) error {
	return &cloud.Error{Op: op, Class: class, Scope: scope, Err: fmt.Errorf(format, args...)}
}
