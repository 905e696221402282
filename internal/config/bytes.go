package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Bytes is an amount of storage, written as a number with a unit: "256MiB", "1.5GB", or plain bytes.
type Bytes int64

// The units of amounts.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

var units = map[string]float64{
	"": 1, "b": 1, "k": float64(KiB), "kb": 1e3, "kib": float64(KiB), "m": float64(MiB), "mb": 1e6, "mib": float64(MiB),
	"g": float64(GiB), "gb": 1e9, "gib": float64(GiB), "t": float64(TiB), "tb": 1e12, "tib": float64(TiB),
}

var amount = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([a-zA-Z]*)$`)

// ParseBytes reads an amount.
func ParseBytes(text string) (Bytes, error) {
	wrong := fmt.Errorf(`must be an amount such as "256MiB" or "1GB", not %q`, text)
	match := amount.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return 0, wrong
	}
	n, err := strconv.ParseFloat(match[1], 64)
	unit, known := units[strings.ToLower(match[2])]
	if err != nil || !known {
		return 0, wrong
	}
	if n *= unit; n >= math.MaxInt64 {
		return 0, errors.New("is more than can be counted")
	}
	return Bytes(n), nil
}

// String writes the amount with the largest unit that needs no fraction.
func (b Bytes) String() string {
	for _, unit := range []struct {
		size Bytes
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b >= unit.size && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

func assignBytes(f *Bytes, value any) error {
	switch v := value.(type) {
	case Bytes:
		*f = v
		return nil
	case float64:
		value = strconv.FormatFloat(v, 'f', -1, 64)
	}
	b, err := ParseBytes(fmt.Sprint(value))
	if err == nil {
		*f = b
	}
	return err
}
