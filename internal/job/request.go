package job

import (
	"strings"
	"time"
)

// ID numbers a job within a deployment: 1, 2, 3 and so on, never used twice.
type ID int64

// Priority bounds (SkyPilot: skylet/constants.py).
const (
	MinPriority = -1000
	MaxPriority = 1000
)

// Urgent reports whether a job with that priority is to wait behind none of those that do not ask for any.
func Urgent(priority int) bool { return priority > 0 }

// Request is what a user asks for: a chain of one or more tasks. internal/spec makes
// it from a job file. It never changes after submission, holds no secret values, and
// is stored apart from the record, since a quiet look does not need it.
type Request struct {
	Name     string        `json:"name"`
	Priority int           `json:"priority,omitempty"` // MinPriority..MaxPriority, higher first
	User     string        `json:"user,omitempty"`     // who submitted it, for people only
	Tasks    []TaskRequest `json:"tasks"`
	Rank     int           `json:"rank,omitempty"`  // 0..Count-1 among the jobs of one submission
	Count    int           `json:"count,omitempty"` // jobs of that submission; 0 counts as 1

	Webhooks     []Webhook     `json:"webhooks,omitempty"`
	LogRetention time.Duration `json:"log_retention,omitempty"` // from the job's end; 0 leaves it to the deployment, negative is for ever
	ShowSecrets  bool          `json:"show_secrets,omitempty"`  // leave the values of secrets in the job's own output
}

// Webhook is a URL that is told what happens to a job.
type Webhook struct {
	URL       string   `json:"url,omitempty"`
	URLSecret string   `json:"url_secret,omitempty"` // name of the secret that holds the URL instead: some URLs are passwords
	Events    []string `json:"events,omitempty"`     // statuses in lower case, or those of SkyPilot's callback; none means all
	SignWith  string   `json:"sign_with,omitempty"`  // name of the secret that signs what is sent
}

// TaskRequest is one task of the chain as the user wrote it.
type TaskRequest struct {
	Name      string            `json:"name,omitempty"`
	Resources Resources         `json:"resources"`
	Recovery  Recovery          `json:"recovery,omitzero"`
	Envs      map[string]string `json:"envs,omitempty"`
	Secrets   []string          `json:"secrets,omitempty"` // names only; values travel sealed
	Workdir   string            `json:"workdir,omitempty"` // key of the bundle in the archive, "" for none
	Files     []FileMount       `json:"files,omitempty"`
	Setup     string            `json:"setup,omitempty"` // bash
	Run       string            `json:"run,omitempty"`   // bash; empty means the task succeeds at once
	Nodes     int               `json:"nodes,omitempty"` // machines, all or none; 0 counts as 1
	Grace     time.Duration     `json:"grace,omitempty"` // between TERM and KILL when stopped; 0 = default

	MaxDuration   time.Duration `json:"max_duration,omitempty"` // of the user's code in all attempts together; 0 is no limit
	MaxWait       time.Duration `json:"max_wait,omitempty"`     // without a machine in one go; 0 is no limit
	OnNotice      OnNotice      `json:"on_notice,omitzero"`
	EventCallback string        `json:"event_callback,omitempty"` // bash, run by a worker at each change of status
}

// FileMount is a file or folder that is brought to a place on the node.
type FileMount struct {
	Path   string `json:"path"`             // on the node: absolute, below ~/, or relative to the work directory
	Bundle string `json:"bundle,omitempty"` // key of the bundle in the archive, for what came from the user's computer
	File   string `json:"file,omitempty"`   // name within the bundle if the source is one file, "" for a folder
	Source string `json:"source,omitempty"` // s3://..., gs://..., https://..., for what lies elsewhere
	Mode   string `json:"mode,omitempty"`   // COPY, MOUNT or MOUNT_CACHED, for a source
}

// OnNotice says what happens on the node when the provider gives notice. The notice file appears in any case.
type OnNotice struct {
	Signal string `json:"signal,omitempty"` // that run gets: "TERM" if empty, "none" for none, or INT, HUP, USR1, USR2
	Run    string `json:"run,omitempty"`    // bash, beside run
}

// Resources says which machines would do: one of Any, tried cheapest first, or in the
// order written if Ordered.
type Resources struct {
	Any     []Want `json:"any"`
	Ordered bool   `json:"ordered,omitempty"`
}

// Want is one acceptable kind of machine. Empty and zero fields accept anything.
type Want struct {
	Provider string   `json:"provider,omitempty"` // "local", "aws", ...
	Region   string   `json:"region,omitempty"`
	Zone     string   `json:"zone,omitempty"`
	CPUs     Quantity `json:"cpus,omitzero"`
	MemoryGB Quantity `json:"memory,omitzero"`
	UseSpot  bool     `json:"use_spot,omitempty"`

	Type             string            `json:"type,omitempty"`        // the provider's name for a kind of machine
	Accelerator      string            `json:"accelerator,omitempty"` // "A100", "" for none asked for
	AcceleratorCount float64           `json:"accelerator_count,omitempty"`
	AcceleratorArgs  map[string]string `json:"accelerator_args,omitempty"`
	MaxPrice         float64           `json:"max_price,omitempty"` // per hour; 0 is no limit
	DiskGB           float64           `json:"disk,omitempty"`      // 0 leaves it to the provider
	DiskTier         string            `json:"disk_tier,omitempty"`
	LocalDisk        string            `json:"local_disk,omitempty"`
	NetworkTier      string            `json:"network_tier,omitempty"`
	Image            string            `json:"image,omitempty"` // "docker:NAME" or the provider's own
	Ports            []string          `json:"ports,omitempty"` // "8080" or "8000-8010"
	Labels           map[string]string `json:"labels,omitempty"`
}

// Quantity is an amount as written in a job file: "4" is exactly four, "4+" at least four.
type Quantity struct {
	N       float64 `json:"n"`
	AtLeast bool    `json:"plus,omitempty"`
}

// Accepts reports whether have satisfies q. The zero Quantity accepts anything.
func (q Quantity) Accepts(have float64) bool {
	switch {
	case q.N == 0:
		return true
	case q.AtLeast:
		return have >= q.N
	default:
		return have == q.N
	}
}

// Strategy says where to look after a machine was lost.
type Strategy string

// The strategies (SkyPilot: jobs/recovery_strategy.py; Never is asked for in its issue 10258).
const (
	EagerNextRegion Strategy = "EAGER_NEXT_REGION" // the lost region last; the default
	Failover        Strategy = "FAILOVER"          // the lost region first
	Never           Strategy = "NEVER"             // a lost machine ends the task
)

// Recovery says what may be tried again after which ending.
type Recovery struct {
	Strategy            Strategy `json:"strategy,omitempty"`               // "" means EagerNextRegion
	MaxRestartsOnErrors int      `json:"max_restarts_on_errors,omitempty"` // of the user's own failures
	RecoverOnExitCodes  []int    `json:"recover_on_exit_codes,omitempty"`  // restart, not counted
}

// Offer is one kind of machine in one place at a price.
type Offer struct {
	Provider string  `json:"provider"`
	Region   string  `json:"region"`
	Zone     string  `json:"zone,omitempty"`
	Type     string  `json:"type,omitempty"`
	Spot     bool    `json:"spot,omitempty"`
	Price    float64 `json:"price"` // per hour, in the provider's currency
	CPUs     float64 `json:"cpus,omitempty"`
	MemoryGB float64 `json:"memory,omitempty"`

	Accelerator      string  `json:"accelerator,omitempty"` // "A100"
	AcceleratorCount float64 `json:"accelerator_count,omitempty"`
}

// String names the offer for people: "local/a spot", "aws/us-east-1/us-east-1a p4d.24xlarge on-demand".
func (o Offer) String() string {
	s := o.Provider + "/" + o.Region
	if o.Zone != "" && o.Zone != o.Region {
		s += "/" + o.Zone
	}
	if o.Type != "" && o.Type != o.Provider {
		s += " " + o.Type
	}
	if o.Spot {
		return s + " spot"
	}
	return s + " on-demand"
}

// placeOfKey names the offer of a key for people, as String does.
func placeOfKey(key string) string {
	part := strings.Split(key, "/")
	if len(part) != 5 {
		return key
	}
	return Offer{Provider: part[0], Region: part[1], Zone: part[2], Type: part[3], Spot: part[4] == "spot"}.String()
}

// Key names the offer among all offers: provider/region/zone/type/market.
func (o Offer) Key() string {
	market := "od"
	if o.Spot {
		market = "spot"
	}
	return o.Provider + "/" + o.Region + "/" + o.Zone + "/" + o.Type + "/" + market
}
