#!/usr/bin/env bash
# A job loses its machine in the middle, moves to another one, goes on from its checkpoint and succeeds.
# Run it by `make demo`. All that it makes lies in one temporary directory, and goes with it.
set -euo pipefail

cd "$(dirname "$0")/.."
bin=$(cd "${BIN:-bin}" && pwd)
home=$(mktemp -d "${TMPDIR:-/tmp}/outlast-demo.XXXXXX")
export OUTLAST_HOME=$home/outlast
unset OUTLAST_REDIS OUTLAST_CONFIG OUTLAST_ARCHIVE # another deployment's must not be met
export XDG_CONFIG_HOME=$home/config
worker=
follower=

say() { printf '\n%s── %s%s\n' "$bold" "$*" "$plain"; }
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

cleanup() {
  status=$?
  set +e
  [ -n "$follower" ] && kill "$follower" 2>/dev/null
  if [ -n "$worker" ] && kill -0 "$worker" 2>/dev/null; then
    "$bin/enqueue" cancel --all --grace 0s >/dev/null 2>&1 # nothing, unless the demo was interrupted
    kill "$worker"
    wait "$worker"
  fi
  if [ "$status" -ne 0 ] && [ -f "$home/worker.log" ]; then
    echo "the demo failed; the end of the worker's log:" >&2
    tail -n 30 "$home/worker.log" >&2
  fi
  rm -rf "$home"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# until_true SECONDS WHAT COMMAND...: waits until the command succeeds.
until_true() {
  local limit=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    if [ "$SECONDS" -ge "$limit" ]; then echo "waited in vain for $what" >&2; exit 1; fi
    if ! kill -0 "$worker" 2>/dev/null; then echo "the worker has ended" >&2; exit 1; fi
    sleep 0.1
  done
}

say "worker dev: Redis, queues and a worker in one process, on machines that are processes of this computer"
"$bin/worker" dev --log-format json > /dev/null 2> "$home/worker.log" &
worker=$!
until_true 30 "the worker" test -f "$OUTLAST_HOME/dev.json"

say "enqueue launch examples/train.yaml: a training of 30 steps on a spot machine"
mkdir "$home/checkpoints"
id=$("$bin/enqueue" launch -d -o json --env CHECKPOINT_DIR="$home/checkpoints" examples/train.yaml | tr -dc '0-9')
"$bin/enqueue" logs -f "$id" &
follower=$!
reached() { [ "$(cat "$home/checkpoints/step" 2>/dev/null || echo 0)" -ge "$1" ]; }
until_true 60 "step 10" reached 10

say "enqueue preempt $id: the machine is taken away, without a word"
"$bin/enqueue" preempt "$id"
until_true 60 "step 20" reached 20

say "enqueue preempt $id --notice 10s: the second machine goes too, this time with a notice"
"$bin/enqueue" preempt "$id" --notice 10s

"$bin/enqueue" wait "$id" > /dev/null
wait "$follower" && followed=0 || followed=$?
follower=

say "enqueue show $id"
"$bin/enqueue" show "$id"

say "enqueue machines: what this deployment owns"
"$bin/enqueue" machines

log=$("$bin/enqueue" logs "$id" 2>/dev/null)
[ "$followed" -eq 0 ] || { echo "the follower ended with code $followed" >&2; exit 1; }
grep -q 'resumed from step' <<<"$log" || { echo "no checkpoint was continued" >&2; exit 1; }
"$bin/enqueue" queue -a -o json | grep -q '"recoveries": *[1-9]' || { echo "no recovery was counted" >&2; exit 1; }

say "stopping the worker"
kill "$worker"
wait "$worker"
worker=
if pids=$(grep -lzs "^OUTLAST_HOME=$OUTLAST_HOME\$" /proc/[0-9]*/environ | grep -v "/$$/" | tr -dc '0-9\n '); then
  for pid in $pids; do
    case $(tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null) in
      *"$bin"*) echo "left behind: process $pid" >&2; exit 1 ;;
    esac
  done
fi
say "job $id SUCCEEDED: it outlasted two machines"
