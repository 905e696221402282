package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// assign sets the field behind a pointer of a setting to a value as it comes out of the file, the environment or a
// flag. Errors say what was wanted, and never quote the value of a secret.
func assign(field, value any) error {
	switch f := field.(type) {
	case *string:
		return assignText(f, value)
	case *Secret:
		return assignText(f, value)
	case *RedisURL:
		return assignText(f, value)
	case *bool:
		return assignBool(f, value)
	case *int:
		return assignInt(f, value)
	case *float64:
		return assignFloat(f, value)
	case *time.Duration:
		return assignDuration(f, value)
	case *Bytes:
		return assignBytes(f, value)
	case *[]string:
		return assignList(f, value)
	case *[]RedisURL:
		return assignURLs(f, value)
	case *[]Zone:
		return assignZones(f, value)
	case *map[string]int:
		return assignCounts(f, value)
	default:
		return fmt.Errorf("a setting of the type %T cannot be set", field)
	}
}

func assignText[T ~string](f *T, value any) error {
	text, ok := value.(string)
	if !ok {
		return errors.New("must be a text (quote it)")
	}
	*f = T(text)
	return nil
}

func assignBool(f *bool, value any) error {
	switch v := value.(type) {
	case bool:
		*f = v
		return nil
	case string:
		if b, err := strconv.ParseBool(v); err == nil {
			*f = b
			return nil
		}
	}
	return fmt.Errorf("must be true or false, not %q", fmt.Sprint(value))
}

func assignInt(f *int, value any) error {
	switch v := value.(type) {
	case int:
		*f = v
		return nil
	case uint64:
		if v <= math.MaxInt {
			*f = int(v)
			return nil
		}
	case int64:
		*f = int(v)
		return nil
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			*f = n
			return nil
		}
	}
	return fmt.Errorf("must be a whole number, not %q", fmt.Sprint(value))
}

func assignFloat(f *float64, value any) error {
	switch v := value.(type) {
	case float64:
		*f = v
	case uint64:
		*f = float64(v)
	case int64:
		*f = float64(v)
	default:
		return fmt.Errorf("must be a number, not %q", fmt.Sprint(value))
	}
	return nil
}

func assignDuration(f *time.Duration, value any) error {
	switch v := value.(type) {
	case time.Duration:
		*f = v
		return nil
	case string:
		if d, err := time.ParseDuration(v); err == nil {
			*f = d
			return nil
		}
	}
	return fmt.Errorf(`must be a duration such as "15s" or "2m30s", not %q`, fmt.Sprint(value))
}

func assignList(f *[]string, value any) error {
	var list []string
	switch v := value.(type) {
	case []string:
		list = append(list, v...)
	case string:
		for part := range strings.SplitSeq(v, ",") {
			list = append(list, strings.TrimSpace(part))
		}
	case []any:
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return fmt.Errorf("must be a list of texts; %q is none", fmt.Sprint(item))
			}
			list = append(list, text)
		}
	default:
		return errors.New("must be a list")
	}
	*f = list
	return nil
}

// assignURLs takes a list of URLs. Errors quote none of them.
func assignURLs(f *[]RedisURL, value any) error {
	var texts []string
	if err := assignList(&texts, value); err != nil {
		return errors.New("must be a list of URLs such as redis://host:6379")
	}
	urls := make([]RedisURL, len(texts))
	for i, text := range texts {
		urls[i] = RedisURL(text)
	}
	*f = urls
	return nil
}

func assignZones(f *[]Zone, value any) error {
	items, ok := value.([]any)
	if !ok {
		return errors.New("must be a list")
	}
	zones := make([]Zone, len(items))
	for n, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("zone %d: must be a mapping", n+1)
		}
		for _, s := range zoneSettings() {
			v, ok := fields[s.key]
			if !ok {
				continue
			}
			if err := assign(s.at(&zones[n]), v); err != nil {
				return fmt.Errorf("zone %d: %s: %w", n+1, s.key, err)
			}
		}
	}
	*f = zones
	return nil
}

func assignCounts(f *map[string]int, value any) error {
	given, ok := value.(map[string]any)
	if !ok {
		return errors.New("must be a mapping of names to whole numbers, such as {A100: 8}")
	}
	counts := map[string]int{}
	for name, v := range given {
		var n int
		if err := assignInt(&n, v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		counts[name] = n
	}
	*f = counts
	return nil
}

// show prints the field behind a pointer of a setting, without secrets and on one line.
func show(field any) string {
	switch f := field.(type) {
	case *string:
		return strconv.Quote(*f)
	case *Secret:
		return strconv.Quote(f.String())
	case *RedisURL:
		return strconv.Quote(f.String())
	case *bool:
		return strconv.FormatBool(*f)
	case *int:
		return strconv.Itoa(*f)
	case *time.Duration:
		return f.String()
	case *Bytes:
		return f.String()
	case *[]string:
		return fmt.Sprintf("%q", *f)
	case *[]RedisURL:
		return fmt.Sprintf("%q", shown(*f))
	case *[]Zone:
		return showZones(*f)
	default:
		return "?"
	}
}

// shown are URLs without their passwords.
func shown(urls []RedisURL) []string {
	out := []string{}
	for _, u := range urls {
		out = append(out, u.String())
	}
	return out
}

func showZones(zones []Zone) string {
	texts := make([]string, len(zones))
	for i, z := range zones {
		texts[i] = fmt.Sprintf("{name: %q, capacity: %d, boot: %s, cpus: %g, memory: %g, price: %g, spot_price: %g%s}",
			z.Name, z.Capacity, z.Boot, z.CPUs, z.Memory, z.Price, z.SpotPrice, showCounts(", accelerators: ", z.Accelerators))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// showCounts prints a mapping after its name, or nothing if it is empty.
func showCounts(name string, counts map[string]int) string {
	if len(counts) == 0 {
		return ""
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%q: %d", key, counts[key]))
	}
	return name + "{" + strings.Join(texts, ", ") + "}"
}
