package hook

import (
	"net/netip"
	"slices"
)

// never are addresses that no webhook is sent to, whatever is allowed: clouds serve the credentials of machines there, or
// nobody has them.
var never = prefixes(
	"0.0.0.0/8", "::/128",
	"169.254.0.0/16", "fe80::/10", // of links: most clouds
	"fd00:ec2::254/128", "fd20:ce::254/128", // the same over IPv6 at AWS and Google
	"100.100.100.200/32", // Alibaba
	"168.63.129.16/32",   // Azure: looks like a public one
	"192.0.0.192/32",     // Oracle
	"224.0.0.0/4", "ff00::/8", "255.255.255.255/32",
)

// private are addresses of this computer and its networks, and those that are kept for special purposes.
var private = prefixes(
	"127.0.0.0/8", "::1/128",
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10",
	"100.64.0.0/10",                                            // of carriers
	"192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "100::/64", // special
)

// carriers are prefixes of IPv6 addresses that lead to an IPv4 one, with the byte at which that begins.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 of a network's own
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4
}

// reachable reports whether a webhook may be sent to an address. With leave it may be one of this computer or its networks.
func reachable(ip netip.Addr, leave bool) bool {
	if ip = ip.Unmap().WithZone(""); !ip.IsValid() || within(never, ip) {
		return false
	}
	if within(private, ip) {
		return leave
	}
	for _, c := range carriers {
		if c.prefix.Contains(ip) {
			b := ip.As16()
			return leave && reachable(netip.AddrFrom4([4]byte(b[c.at:c.at+4])), leave)
		}
	}
	return true
}

func within(list []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}
