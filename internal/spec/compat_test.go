package spec

import (
	"strings"
	"testing"
)

// TestSkyPilotShapes ensures that every shape of file that SkyPilot's public examples have is accepted as it is, or
// refused with the field and a way out. The shapes were collected from some four hundred of them.
func TestSkyPilotShapes(t *testing.T) {
	schema := compileSchema(t)
	for _, tt := range []struct {
		name, text string
		refused    []string // parts of the problems, in order; nil for a file that is accepted
	}{
		{"the smallest", "run: echo hello", nil},
		{"a training job", `
name: train
resources:
  accelerators: {L4:1, A10g:1, A100:1, A100:8, A100-80GB:1}
  use_spot: true
  job_recovery:
    strategy: EAGER_NEXT_REGION
    max_restarts_on_errors: 3
num_nodes: 2
envs:
  MODEL: some/model
  HF_TOKEN: "" # to be filled in
workdir: .
setup: |
  pip install -r requirements.txt
run: |
  # comments stay
  torchrun --nnodes=$SKYPILOT_NUM_NODES train.py --model ${MODEL}
`, nil},
		{"older fields", "resources:\n  cloud: gcp\n  region: us-central1\n  spot_recovery: FAILOVER\n  use_spot: True\n  cpus: 4+\n  memory: 32+\n  disk_size: 512\n  disk_tier: best", nil},
		{"an image and ports", "resources:\n  image_id: docker:ubuntu:24.04\n  ports: [8888, 9000-9010]\n  autostop: {idle_minutes: 10, down: true}\n  labels: {team: a}", nil},
		{"accelerators in order", "resources:\n  accelerators: ['A100:8', 'V100:8']", nil},
		{"a set and any_of", "resources:\n  accelerators:\n    T4: 1\n    L4: 1\n  memory: 32+\n  any_of:\n    - use_spot: true\n    - use_spot: false", nil},
		{"ordered places", "resources:\n  ordered:\n    - infra: aws/us-east-1\n      use_spot: true\n    - infra: k8s", nil},
		{"a TPU", "resources:\n  accelerators: tpu-v4-8\n  accelerator_args:\n    runtime_version: tpu-vm-v4-base\n    tpu_vm: True", nil},
		{"gpus", "resources:\n  gpus: H100:8", nil},
		{"settings for Kubernetes", "config:\n  kubernetes:\n    pod_config:\n      spec: {}\nexperimental:\n  config_overrides:\n    kubernetes: {provision_timeout: 600}", nil},
		{"local files", "file_mounts:\n  ~/.ssh/key: ~/.ssh/id_ed25519\n  /remote/dir: ./dir\n  /tmp/${USER_NAME}: .\nenvs: {USER_NAME: eve}", nil},
		{"an existing bucket", "envs: {BUCKET: b, STORE: gcs}\nfile_mounts:\n  /data: s3://bucket/path\n  /ckpt: {source: \"gs://${BUCKET}\", mode: MOUNT_CACHED}\n  /out: {name: $BUCKET, store: $STORE, mode: MOUNT}", nil},
		{"a pipeline", "name: pipeline\n\n---\n\nname: a\nresources: {infra: aws}\nrun: a\n\n---\n\nname: b\nrun: b\n", nil},
		{"a pipeline without a header", "name: a\nrun: a\n---\nname: b\nrun: b", nil},
		{"secrets", "secrets:\n  TOKEN: abc\n  WANDB_API_KEY: 0123", nil},
		{"commands that look like YAML", "run: |\n  cat <<EOF > x.yaml\n  a: {b: [c]}\n  EOF\n  echo \"a: b\" # c\nsetup: >-\n  one\n  two", nil},
		{"estimates", "inputs: {gs://x: 150}\noutputs: {out: 0.1}", nil},

		{"a service", "service:\n  readiness_probe: /v1/models\n  replicas: 2\nrun: serve", []string{"service: is known but not supported (it describes a service"}},
		{"a pool", "pool: {workers: 3}\nsetup: x", []string{"pool: is known but not supported"}},
		{"a job group", "name: g\nexecution: parallel\nprimary_tasks: [a]\n---\nname: a\nrun: a", []string{"parallel is known but not supported (submit the tasks as jobs", "primary_tasks: is known but not supported"}},
		{"a bucket to be made", "file_mounts:\n  /out: {name: sky-out, mode: MOUNT}", []string{"does not say whose bucket it is (write source: s3://bucket"}},
		{"a bucket to be filled", "file_mounts:\n  /code: {name: sky-code, source: ./code, mode: COPY}", []string{"a bucket to be made and filled"}},
		{"a local folder to be mounted", "file_mounts:\n  /code: {source: ./code}", []string{"(write mode: COPY, or the path alone"}},
		{"a bucket of many sources", "file_mounts:\n  /d: {source: [a, b]}", []string{"(write a mount for each of them)"}},
		{"a bucket yet to be named", "file_mounts:\n  /d:\n    name: # fill in\n    mode: MOUNT", []string{"has no source (write source: s3://bucket/path)"}},
		{"volumes", "volumes:\n  /mnt: pvc-1", []string{"volumes: is known but not supported (bring files with file_mounts"}},
		{"a repository", "workdir:\n  url: https://example.com/x.git\n  ref: main", []string{"(clone it in setup"}},
		{"docker options", "config:\n  docker:\n    run_options: [--shm-size=1g]", []string{"config.docker: is known but not supported (run docker in setup"}},
		{"network settings", "config:\n  gcp: {enable_gpu_direct: true}", []string{"config.gcp: is known but not supported"}},
		{"access to the server", "api_server_access: true", []string{"there is no API server that a job could reach (remove it"}},
		{"a template", "resources:\n  infra: {{ infra }}", []string{"is not YAML"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := problems(t, tt.text, Options{})
			if len(got) != len(tt.refused) {
				t.Fatalf("%d problems, want %d:\n%s", len(got), len(tt.refused), strings.Join(got, "\n"))
			}
			for i, part := range tt.refused {
				if !strings.Contains(got[i], part) {
					t.Errorf("problem %q does not contain %q", got[i], part)
				}
			}
			if err := validate(t, schema, tt.text); tt.refused == nil && err != nil {
				t.Errorf("the schema refuses it: %v", err)
			}
		})
	}
}
