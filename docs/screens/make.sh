#!/usr/bin/env bash
# Take the screens in this folder anew: what the commands look like in terminals of 60, 100 and 160 columns.
# Needs tmux and redis-server, and takes half a minute. Run it as: docs/screens/make.sh
set -eu
cd "$(dirname "$0")/../.."
here=docs/screens
bin=$PWD/bin
for tool in tmux redis-server; do
	command -v "$tool" >/dev/null || { echo "make.sh needs $tool" >&2; exit 1; }
done
CGO_ENABLED=0 go build -o "$bin/" ./enqueue ./worker

work=$(mktemp -d)
mux() { env -u TMUX tmux -S "$work/tmux" "$@"; }
finish() {
	mux kill-server 2>/dev/null || true
	[ -z "${dev:-}" ] || { kill "$dev" && wait "$dev"; } 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
export OUTLAST_HOME=$work/home XDG_CONFIG_HOME=$work/config TZ=UTC LANG=C.UTF-8 PATH=$bin:$PATH
unset OUTLAST_REDIS OUTLAST_CONFIG
cat >"$work/worker.yaml" <<'END'
local:
  zones:
    - {name: north-a, boot: 2s, price: 0.48, capacity: 2}
    - {name: north-b, boot: 3s, price: 0.52, capacity: 2}
END
cat >"$work/chain.yaml" <<'END'
name: train
---
name: prepare
resources: {use_spot: true}
run: echo "tokenizing"; sleep 2
---
name: fit
resources: {use_spot: true}
run: |
  for i in $(seq 1 400); do echo "epoch $i loss 0.$((9000 - i))"; sleep 1; done
END
cat >"$work/bad.yaml" <<'END'
name: train
resources:
  cpu: 4+
  use_spot: maybe
run: python train.py
END
cat >"$work/quick.yaml" <<'END'
name: hello
run: echo "hello from a machine"
END
worker dev --config "$work/worker.yaml" >"$work/dev.log" 2>&1 &
dev=$!
until enqueue workers 2>/dev/null | grep ready >/dev/null; do sleep 0.2; done

cd "$work"
status() { enqueue show "$1" -o json | grep "\"status\":\"$2\"" >/dev/null; }
enqueue launch -d chain.yaml >/dev/null
enqueue launch -d -n evaluate -- sh -c 'echo reading checkpoint; exit 3' >/dev/null
until status 1 RUNNING && enqueue show 1 | grep '^1.1 ' >/dev/null; do sleep 0.2; done
until enqueue logs 1 2>/dev/null | grep 'epoch 3' >/dev/null; do sleep 0.2; done
enqueue preempt 1 >/dev/null
until enqueue logs 1 fit --attempt 2 2>/dev/null | grep 'epoch 3' >/dev/null; do sleep 0.2; done
enqueue launch -d -n 'sweep of learning rates' --priority 5 -- sleep 400 >/dev/null
until status 3 RUNNING; do sleep 0.2; done

# Each terminal runs the same commands, one after the other.
cat >"$work/session.sh" <<'END'
for line in 'enqueue queue -a' 'enqueue show 1' 'enqueue logs 1 --tail 3' 'enqueue launch quick.yaml' \
	'enqueue machines' 'enqueue workers' 'enqueue launch bad.yaml' 'enqueue qeue'; do
	echo "\$ $line"
	eval "$line"
	echo
done
touch done
sleep 60
END
mux new-session -d "exec sleep 600" # tmux ends with its last session
for columns in 60 100 160; do
	rm -f done
	mux new-session -d -s "at$columns" -x "$columns" -y 60 "exec bash session.sh"
	until [ -e done ]; do sleep 0.2; done
	mux capture-pane -t "at$columns" -p -S - | sed -e 's/[[:space:]]*$//' -e "s|$work|~|g" | cat -s >"$OLDPWD/$here/$columns.txt"
	mux kill-session -t "at$columns"
done
