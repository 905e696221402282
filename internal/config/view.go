package config

import (
	"fmt"
	"strings"
)

// Value is a setting as it holds now, without secrets.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`        // see [Config.Origin]
	Env    string `json:"env,omitempty"` // the variable that sets it
	Usage  string `json:"usage"`
}

// String is the value on one line.
func (v Value) String() string {
	if list, ok := v.Value.([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(v.Value)
}

// View lists all settings.
func (c Config) View() []Value {
	var out []Value
	for _, s := range settings() {
		value := plain(s.at(&c))
		if text, ok := value.(string); ok && s.mask != nil {
			value = s.mask(text)
		}
		v := Value{Key: s.key, Value: value, Origin: c.Origin(s.key), Env: s.env(), Usage: s.usage}
		if s.key == zonesKey {
			v.Env = "" // no text can express it
		}
		out = append(out, v)
	}
	return out
}

// plain is what a field holds, as programs read it.
func plain(field any) any {
	switch f := field.(type) {
	case *string:
		return *f
	case *Secret:
		return f.String()
	case *RedisURL:
		return f.String()
	case *[]string:
		return append([]string{}, *f...)
	case *[]RedisURL:
		return shown(*f)
	case *bool:
		return *f
	case *int:
		return *f
	default: // durations and lists of mappings
		return show(field)
	}
}
