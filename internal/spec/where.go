package spec

import (
	"regexp"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

var (
	// infraPart is what clouds name their regions and zones with.
	infraPart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	// contextPart is what clusters are called: more than clouds allow, such as user@host or arn:aws:eks:...
	contextPart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,252}$`)
)

// place reads where a machine may be: infra, or the three fields that came before it.
func (d *decoder) place(n *node, path string, w *job.Want) {
	infra := n.get("infra")
	if infra != nil {
		d.infra(infra, path+".infra", w)
	}
	for _, old := range []struct {
		field string
		into  *string
	}{{"cloud", &w.Provider}, {"region", &w.Region}, {"zone", &w.Zone}} {
		v := n.get(old.field)
		if v == nil {
			continue
		}
		at := path + "." + old.field
		if infra != nil {
			d.add(v.at, at, "is given together with infra", "it is an older spelling of a part of infra: keep infra")
			continue
		}
		switch s := d.asText(v, at); {
		case s == "":
		case s == "*":
			*old.into = ""
		case !infraPart.MatchString(s) && !contextPart.MatchString(s):
			d.add(v.at, at, quote(s)+" is not a place", "write a name such as us-east-1")
		case old.field == "cloud":
			*old.into = strings.ToLower(s)
		default:
			*old.into = s
		}
	}
}

// infra reads cloud[/region[/zone]], each part a name or * for any. What follows k8s or ssh is the name of a cluster.
func (d *decoder) infra(n *node, path string, w *job.Want) {
	const right = `write cloud/region/zone, cloud/region or cloud, such as aws/us-east-1, with "*" for any`
	w.Provider, w.Region, w.Zone = "", "", ""
	if n.kind != kindText {
		d.add(n.at, path, "is "+describe(n), right)
		return
	}
	cloud, cluster, _ := strings.Cut(n.text, "/")
	cloud = strings.ToLower(cloud)
	if cloud == "k8s" || cloud == "kubernetes" || cloud == "ssh" {
		if cluster != "" && cluster != "*" && !contextPart.MatchString(cluster) {
			d.add(n.at, path, quote(n.text)+" is not a place", right)
			return
		}
		w.Provider, w.Region = cloud, strings.TrimSuffix(cluster, "*")
		return
	}
	parts := strings.Split(n.text, "/")
	if len(parts) > 3 {
		d.add(n.at, path, quote(n.text)+" has more than three parts", right)
		return
	}
	for i, part := range parts {
		switch {
		case part == "*":
			parts[i] = ""
		case !infraPart.MatchString(part):
			d.add(n.at, path, quote(n.text)+" is not a place", right)
			return
		}
	}
	parts = append(parts, "", "")
	w.Provider, w.Region, w.Zone = strings.ToLower(parts[0]), parts[1], parts[2]
}
