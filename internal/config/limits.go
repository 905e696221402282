package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limit bounds calls: so many a second in the long run, and at most Burst at once. Zero is no limit.
type Limit struct {
	PerSecond float64
	Burst     float64
}

// CallLimits bound the calls of one provider, of all workers together, in each region.
type CallLimits struct {
	Write Limit // calls that make and end machines
	Read  Limit // calls that list them
}

// defaultLimits are those of each provider. Whoever has more says so. That of a cloud is what its account has at first:
// AWS allows RunInstances 2 a second and 5 at once, and DescribeInstances 20 and 100; GCE allows 1,500 a minute of either.
var defaultLimits = map[string]CallLimits{
	"local": {},
	"sim":   {Write: Limit{1000, 2000}, Read: Limit{200, 400}},
	"aws":   {Write: Limit{2, 5}, Read: Limit{20, 100}},
	"gcp":   {Write: Limit{25, 50}, Read: Limit{25, 50}},
}

// LimitsOf are the limits of a provider: what was set, else its defaults.
func (c Config) LimitsOf(provider string) CallLimits {
	limits := defaultLimits[provider]
	for _, text := range c.Limits {
		set, err := parseLimit(text)
		if err != nil || set.provider != provider {
			continue // Load has refused what cannot be read
		}
		if set.kind == "write" {
			limits.Write = set.limit
		} else {
			limits.Read = set.limit
		}
	}
	return limits
}

// oneLimit is one entry of the setting.
type oneLimit struct {
	provider, kind string
	limit          Limit
}

// parseLimit reads "aws.write=20" or "aws.write=20:50": calls a second, and how many at once. Without the latter it is what
// two seconds allow.
func parseLimit(text string) (oneLimit, error) {
	var out oneLimit
	bad := fmt.Errorf(`%q: must be a provider, write or read, calls a second and perhaps how many at once, such as "aws.write=20" or "aws.write=20:50"`, text)
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return out, bad
	}
	if out.provider, out.kind, ok = strings.Cut(name, "."); !ok || out.provider == "" || out.kind != "write" && out.kind != "read" {
		return out, bad
	}
	rate, burst, both := strings.Cut(value, ":")
	var err error
	if out.limit.PerSecond, err = number(rate); err != nil {
		return out, bad
	}
	out.limit.Burst = math.Max(1, math.Ceil(2*out.limit.PerSecond))
	if both {
		if out.limit.Burst, err = number(burst); err != nil || out.limit.Burst < 1 {
			return out, bad
		}
	}
	return out, nil
}

// mostPerSecond bounds a rate: what is beyond is no limit, and is written as 0.
const mostPerSecond = 1e6

func number(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	if !(n >= 0 && n <= mostPerSecond) { // neither is not-a-number
		return 0, fmt.Errorf("%g is not between 0 and %g", n, float64(mostPerSecond))
	}
	return n, nil
}

// validateLimits reports the first entry that cannot be read, or is there twice.
func validateLimits(list []string) error {
	seen := map[string]bool{}
	for _, text := range list {
		one, err := parseLimit(text)
		if err != nil {
			return err
		}
		key := one.provider + "." + one.kind
		if seen[key] {
			return fmt.Errorf("%s is there twice", key)
		}
		seen[key] = true
	}
	return nil
}
