package spec

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestMachineForms ensures every way to ask for a machine that SkyPilot's files use.
func TestMachineForms(t *testing.T) {
	a100 := job.Want{Accelerator: "A100", AcceleratorCount: 1}
	a100x8 := job.Want{Accelerator: "A100", AcceleratorCount: 8}
	v100 := job.Want{Accelerator: "V100", AcceleratorCount: 1}
	schema := compileSchema(t)
	for text, want := range map[string]job.Resources{
		"accelerators: A100":               {Any: []job.Want{a100}},
		"accelerators: A100:8":             {Any: []job.Want{a100x8}},
		`accelerators: "A100: 8"`:          {Any: []job.Want{a100x8}},
		"accelerators: {A100: 8}":          {Any: []job.Want{a100x8}},
		"accelerators:\n    A100: 8":       {Any: []job.Want{a100x8}},
		"accelerators: {A100, V100}":       {Any: []job.Want{a100, v100}},
		"accelerators: {A100:8, V100:1}":   {Any: []job.Want{a100x8, v100}},
		"accelerators: {A100: 8, V100: 1}": {Any: []job.Want{a100x8, v100}},
		"gpus: A100":                       {Any: []job.Want{a100}},
		"accelerators: {A100:1, A100:8}":   {Any: []job.Want{a100, a100x8}},
		"accelerators: {'A100:1', 'V100:1'}\n  any_of: [{infra: a}, {infra: b}]": {Any: []job.Want{
			{Provider: "a", Accelerator: "A100", AcceleratorCount: 1}, {Provider: "a", Accelerator: "V100", AcceleratorCount: 1},
			{Provider: "b", Accelerator: "A100", AcceleratorCount: 1}, {Provider: "b", Accelerator: "V100", AcceleratorCount: 1}}},
		"any_of: [{accelerators: {A100, V100}}, {accelerators: A100:8}]": {Any: []job.Want{a100, v100, a100x8}},
		"accelerators: [A100, V100]":                                     {Any: []job.Want{a100, v100}, Ordered: true},
		"accelerators: ['A100:8', V100]":                                 {Any: []job.Want{a100x8, v100}, Ordered: true},
		"accelerators:\n    - A100:8\n    - V100: 1":                     {Any: []job.Want{a100x8, v100}, Ordered: true},
		"accelerators: [A100]":                                           {Any: []job.Want{a100}},
		"accelerators: T4:0.5":                                           {Any: []job.Want{{Accelerator: "T4", AcceleratorCount: 0.5}}},
		"accelerators: tpu-v2-8":                                         {Any: []job.Want{{Accelerator: "tpu-v2-8", AcceleratorCount: 1}}},
		"accelerators: ~":                                                {Any: []job.Want{{}}},
		"accelerators: A100\n  any_of: [{accelerators: V100}, {}]":       {Any: []job.Want{v100, a100}},
		"cloud: AWS\n  region: us-east-1\n  zone: us-east-1a":            {Any: []job.Want{{Provider: "aws", Region: "us-east-1", Zone: "us-east-1a"}}},
		"infra: k8s/me@cluster.example:6443":                             {Any: []job.Want{{Provider: "k8s", Region: "me@cluster.example:6443"}}},
		"infra: kubernetes/*":                                            {Any: []job.Want{{Provider: "kubernetes"}}},
		"cpus: 4+\n  memory: 16GB+":                                      {Any: []job.Want{{CPUs: job.Quantity{N: 4, AtLeast: true}, MemoryGB: job.Quantity{N: 16, AtLeast: true}}}},
		"instance_type: m6i.large":                                       {Any: []job.Want{{Type: "m6i.large"}}},
		"max_hourly_cost: 1.5":                                           {Any: []job.Want{{MaxPrice: 1.5}}},
		"disk_size: 256":                                                 {Any: []job.Want{{DiskGB: 256}}},
		"disk_size: 100GB":                                               {Any: []job.Want{{DiskGB: 100}}},
		"disk_size: 1 TB":                                                {Any: []job.Want{{DiskGB: 1024}}},
		"disk_tier: BEST":                                                {Any: []job.Want{{DiskTier: "best"}}},
		"disk_tier: none":                                                {Any: []job.Want{{}}},
		"local_disk: nvme:1000+":                                         {Any: []job.Want{{LocalDisk: "nvme:1000+"}}},
		"local_disk: 1000":                                               {Any: []job.Want{{LocalDisk: "1000"}}},
		"network_tier: best":                                             {Any: []job.Want{{NetworkTier: "best"}}},
		"image_id: docker:python:3.13":                                   {Any: []job.Want{{Image: "docker:python:3.13"}}},
		"image_id: {us-west-2: b, us-east-1: a}":                         {Any: []job.Want{{Region: "us-east-1", Image: "a"}, {Region: "us-west-2", Image: "b"}}},
		"infra: aws/us-west-2\n  image_id: {us-west-2: b, us-east-1: a}": {Any: []job.Want{{Provider: "aws", Region: "us-west-2", Image: "b"}}},
		"ports: 8080":                                                    {Any: []job.Want{{Ports: []string{"8080"}}}},
		"ports: 8000-8010":                                               {Any: []job.Want{{Ports: []string{"8000-8010"}}}},
		"ports: [22, '8000-8010', 22]":                                   {Any: []job.Want{{Ports: []string{"22", "8000-8010"}}}},
		"labels: {a: b, c: 1, d: true}":                                  {Any: []job.Want{{Labels: map[string]string{"a": "b", "c": "1", "d": "true"}}}},
		"accelerators: tpu-v2-8\n  accelerator_args: {tpu_vm: true, runtime_version: x}": {Any: []job.Want{{
			Accelerator: "tpu-v2-8", AcceleratorCount: 1, AcceleratorArgs: map[string]string{"tpu_vm": "true", "runtime_version": "x"}}}},
		"autostop: true": {Any: []job.Want{{}}},
		"autostop: 10m":  {Any: []job.Want{{}}},
		"autostop: 10":   {Any: []job.Want{{}}},
		"autostop: {idle_minutes: 10, down: true}": {Any: []job.Want{{}}},
	} {
		got := mustParse(t, "resources:\n  "+text, Options{}).Request.Tasks[0].Resources
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if err := validate(t, schema, "resources:\n  "+text); err != nil {
			t.Errorf("the schema refuses %s: %v", text, err)
		}
	}
}

// TestMachineProblems ensures that a slip in any of these is told with what would be right.
func TestMachineProblems(t *testing.T) {
	for text, want := range map[string]string{
		"accelerators: A100:x":      `resources.accelerators: is "A100:x" (write a name and a count, such as A100:8)`,
		"accelerators: 8":           `is "8" (write a name and a count`,
		"accelerators: A100:0":      "the count must be more than 0",
		"accelerators: {}":          "is a mapping without entries",
		"accelerators: []":          "is a list without entries",
		"accelerators: {A100: [1]}": "resources.accelerators.A100: is a list (it must be a count)",
		"accelerators: 80GB+":       "asks for memory of an accelerator, which is not supported (name the accelerators that have it",
		"accelerators: [A100, V100]\n  any_of: [{use_spot: true}]":  "resources.any_of: is given together with several accelerators (write one accelerator in each entry)",
		"accelerators: {A100, V100}\n  ordered: [{use_spot: true}]": "resources.ordered: is given together with several accelerators",
		"accelerators: A100\n  gpus: V100":                          "resources.gpus: is given together with accelerators (it is another spelling of it: keep accelerators)",
		"ordered: [{accelerators: {A100, V100}}]":                   "resources.ordered[0].accelerators: names several",
		"any_of: [{accelerators: [A100, V100]}]":                    "resources.any_of[0].accelerators: names several (write an entry for each of them)",
		"infra: aws\n  region: x":                                   "resources.region: is given together with infra (it is an older spelling of a part of infra: keep infra)",
		"region: a b":                                               `resources.region: "a b" is not a place`,
		"infra: 'k8s/a b'":                                          `"k8s/a b" is not a place`,
		"job_recovery: FAILOVER\n  spot_recovery: FAILOVER":         "resources.spot_recovery: is given together with job_recovery",
		"max_hourly_cost: $5":                                       `is "$5" (write a price per hour such as 1.5)`,
		"max_hourly_cost: 0":                                        "it must be more than 0",
		"disk_size: 100+":                                           `is "100+" (write GB such as 100`,
		"disk_tier: hihg":                                           `is "hihg" (did you mean high?)`,
		"network_tier: 5":                                           "it is one of standard, best",
		"local_disk: a:b":                                           `write a kind, a size in GB, or both: "nvme:1000+"`,
		"image_id: {}":                                              "write an image, or one for each region",
		"image_id: {'a b': x}":                                      "is not the name of a region",
		"infra: aws/eu\n  image_id: {us-east-1: x}":                 `has no image for the region "eu"`,
		"ports: 0":                   "write a port from 1 to 65535, or a range such as 8000-8010",
		"ports: 8010-8000":           `is "8010-8000"`,
		"ports: [80, ssh]":           `resources.ports[1]: is "ssh"`,
		"labels: {a: [x]}":           "resources.labels.a: is a list",
		"autostop: soon":             "it has no effect on a job",
		"autostop: {idle_minuts: 5}": "did you mean idle_minutes?",
		"instance_type: 5":           "is an integer (write it in quotes if it is meant as text)",
		"accelerators: {" + strings.Repeat("A, ", 1) + many("B%d", 300) + "}": "kinds of machines (a task has at most 200)",
	} {
		got := problems(t, "resources:\n  "+text, Options{})
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%.60s: problems %q, want %q", text, got, want)
		}
	}
}

// many is a list of n names.
func many(form string, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = strings.Replace(form, "%d", strings.Repeat("1", i/100)+string(rune('a'+i%26))+string(rune('a'+i/26%26)), 1)
	}
	return strings.Join(names, ", ")
}

// TestExtensions ensures the fields that SkyPilot does not have.
func TestExtensions(t *testing.T) {
	got := mustParse(t, `
num_nodes: 3
max_duration: 1d 12h
max_wait: 90m
grace: 45s
on_notice: {signal: sigusr1, run: ./save.sh}
event_callback: echo hi
webhooks:
  - https://example.com/a
  - {url: "https://example.com/b", events: [FAILED, failed, started], sign_with: KEY}
  - {url_secret: URL, events: succeeded}
log_retention: 30d
redact_secrets: false
secrets: {KEY: k, URL: https://example.com/secret}
`, Options{}).Request
	task := job.TaskRequest{
		Name: "train", Nodes: 3, MaxDuration: 36 * time.Hour, MaxWait: 90 * time.Minute, Grace: 45 * time.Second,
		OnNotice: job.OnNotice{Signal: "USR1", Run: "./save.sh"}, EventCallback: "echo hi", Secrets: []string{"KEY", "URL"},
		Resources: job.Resources{Any: []job.Want{{}}},
	}
	want := job.Request{
		Name: "train", Tasks: []job.TaskRequest{task}, LogRetention: 30 * 24 * time.Hour, ShowSecrets: true,
		Webhooks: []job.Webhook{
			{URL: "https://example.com/a"}, {URL: "https://example.com/b", Events: []string{"failed", "started"}, SignWith: "KEY"},
			{URLSecret: "URL", Events: []string{"succeeded"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	header := mustParse(t, "name: a\nlog_retention: forever\nwebhooks: ['http://x/']\n---\nrun: x\non_notice: none\n---\nrun: y\non_notice: INT", Options{}).Request
	if header.LogRetention >= 0 || len(header.Webhooks) != 1 || header.Tasks[0].OnNotice.Signal != "none" || header.Tasks[1].OnNotice.Signal != "INT" {
		t.Errorf("request %+v", header)
	}
}

// TestExtensionProblems ensures that a slip in one of them is told with what would be right.
func TestExtensionProblems(t *testing.T) {
	for text, want := range map[string]string{
		"max_duration: 90":                                `max_duration: is "90" (write a number with a unit, such as 30s, 90m, 2h or 1d)`,
		"max_duration: 1.5h":                              `is "1.5h" (write a number with a unit`,
		"max_wait: 0s":                                    "it must be more than 0; leave it out for the default",
		"max_wait: 999999999w":                            "it is at most 3650d",
		"grace: 2h":                                       "it is at most 1h",
		"log_retention: for ever":                         `is "for ever"`,
		"redact_secrets: 5":                               "it must be true or false",
		"on_notice: KILL":                                 `is "KILL" (it is one of TERM, INT, HUP, USR1, USR2, none)`,
		"on_notice: {sginal: INT}":                        "did you mean signal?",
		"webhooks: https://x/":                            "it is a list, such as",
		"webhooks: [ftp://x/]":                            "webhooks[0]: is not a URL that can be told",
		"webhooks: ['https://u:p@x/']":                    "webhooks[0]: holds a user or a password, and is stored in clear (put the URL into a secret",
		"webhooks: [{}]":                                  "webhooks[0]: has no address",
		"webhooks: [{url_secret: NONE}]":                  `webhooks[0].url_secret: "NONE" is not a secret of this job (write its name under secrets`,
		"webhooks: [{url: 'http://x/', sign_with: K}]":    `webhooks[0].sign_with: "K" is not a secret of this job`,
		"webhooks: [{url: 'http://x/', events: [faild]}]": `webhooks[0].events[0]: is "faild" (did you mean failed?)`,
		"webhooks: [{url: 'http://x/', url_secret: A}]\nsecrets: {A: x}": "webhooks[0].url_secret: is given together with url",
		"run: x\nwebhooks: ['http://x/']\n---\nrun: y":                   "webhooks: concerns the whole job, not one task (write it into a first document",
		"name: a\n---\nrun: x\nlog_retention: 1d":                        "log_retention: concerns the whole job",
		"num_nodes: 0":                                           "it must be an integer from 1 to 10000",
		"api_server_access: true":                                "is true, but there is no API server that a job could reach",
		"config: {kubernets: {}}":                                "config.kubernets: is not a field of a job file (did you mean kubernetes?)",
		"config: {docker: {run_options: x}}":                     "config.docker: is known but not supported (run docker in setup or run",
		"experimental: {config_overrides: {aws: {vpc_name: x}}}": "experimental.config_overrides.aws: is known but not supported",
		"experimental: {x: 1}":                                   "experimental has config_overrides only",
	} {
		got := problems(t, text, Options{})
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: problems %q, want %q", text, got, want)
		}
		if strings.Contains(strings.Join(got, ""), "u:p") {
			t.Errorf("%s: the password is shown", text)
		}
	}
}

// TestMounts ensures the forms of file_mounts, in the order of their paths, with the local ones to be taken along.
func TestMounts(t *testing.T) {
	got := mustParse(t, `
envs: {BUCKET: b, DIR: d, STORE: oci}
workdir: code/$DIR
file_mounts:
  ~/z/: ./local
  /data/$DIR: s3://${BUCKET}/x
  rel/./here: ~/../etc
  /ckpt: {source: "gs://$BUCKET", mode: mount_cached}
  /named: {name: my-bucket, store: S3, mode: MOUNT, persistent: true}
  /copy: {source: ./f.txt, mode: COPY, name: ~, persistent: false}
  /oci: {source: "oci://bucket@region", store: $STORE}
  /both: {name: b, source: ["s3://b"], store: s3}
storage_mounts:
  /old: https://example.com/x.tgz
`, Options{Dir: "/here"})
	home, _ := os.UserHomeDir()
	want := []job.FileMount{
		{Path: "/both", Source: "s3://b", Mode: "MOUNT"}, {Path: "/ckpt", Source: "gs://b", Mode: "MOUNT_CACHED"}, {Path: "/copy"},
		{Path: "/data/d", Source: "s3://b/x", Mode: "COPY"}, {Path: "/named", Source: "s3://my-bucket", Mode: "MOUNT"},
		{Path: "/oci", Source: "oci://bucket@region", Mode: "MOUNT"}, {Path: "/old", Source: "https://example.com/x.tgz", Mode: "COPY"}, {Path: "rel/here"}, {Path: "~/z"},
	}
	if diff := cmp.Diff(want, got.Request.Tasks[0].Files); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/here/code/d"}, got.Workdirs); diff != "" {
		t.Errorf("workdirs (-want +got):\n%s", diff)
	}
	local := []string{"", "", "/here/f.txt", "", "", "", "", filepath.Join(home, "../etc"), "/here/local"}
	if diff := cmp.Diff([][]string{local}, got.Mounts); diff != "" {
		t.Errorf("local sources (-want +got):\n%s", diff)
	}
}

// TestMountProblems ensures that what is wrong with a mount is told with a way out.
func TestMountProblems(t *testing.T) {
	for entry, want := range map[string]string{
		"/: x":                                 "file_mounts./: is no place for files of its own (write an absolute path, one below ~/, or",
		"~/: x":                                "is no place for files of its own",
		"~: x":                                 "is no place for files of its own",
		"../up: x":                             "is no place for files of its own",
		"~/../x: x":                            "is no place for files of its own",
		"~//etc: x":                            "is the path of somebody's home",
		"~root/x: x":                           "is the path of somebody's home",
		"/x: 5":                                `is "5" (write a local path, an address`,
		"/x: ftp://h/x":                        `is at "ftp://", which nobody here can read`,
		"/x: file:///x":                        "is a local path written as an address",
		"/x: s3://":                            "is not an address",
		"/x: https://u:p@h/x":                  "holds a user or a password, and is stored in clear",
		"/x: $NOPE/x":                          "uses $NOPE, which is not among envs",
		"/x: s3://$KEY":                        "uses the secret KEY, and is stored in clear",
		"/x: {source: ./x}":                    "is a local path, which can not be mounted (write mode: COPY",
		"/x: {source: [a, b]}":                 "is a list (write a mount for each of them)",
		"/x: {name: b}":                        "file_mounts./x.name: does not say whose bucket it is",
		"/x: {}":                               "has no source",
		"/x: {name: b, store: s4}":             "did you mean s3?",
		"/x: {name: b, store: azure}":          "write source: https://ACCOUNT.blob.core.windows.net/CONTAINER",
		"/x: {name: b, source: x, mode: COPY}": "is a bucket to be made and filled, which is known but not supported",
		"/x: {source: s3://b, mode: MUONT}":    "did you mean MOUNT?",
		"/x: {source: s3://b, typ: x}":         "is not a field of a job file",
		"/x: a, /x/: b":                        "is mounted twice",
	} {
		got := problems(t, "secrets: {KEY: k}\nfile_mounts: {"+entry+"}", Options{})
		if len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "u:p") {
			t.Errorf("%s: problems %q, want %q", entry, got, want)
		}
	}
}

// TestLocalFiles ensures that what is to be taken along is looked for: there, readable, a file or a folder.
func TestLocalFiles(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"file": "", ".": "",
		"none": `file_mounts.x: "none" is not there, or can not be read`,
		"pipe": `file_mounts.x: "pipe" is neither a file nor a folder (pipes, sockets and devices can not be taken along)`,
		"loop": `file_mounts.x: "loop" is not there, or can not be read`,
	} {
		file := filepath.Join(dir, "t.yaml")
		if err := os.WriteFile(file, []byte("file_mounts: {x: "+source+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ParseFile(file, Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", source, err, want)
		}
	}
}
