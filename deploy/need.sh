#!/usr/bin/env bash
# Makes sure that programs are there: installs them where that goes without a question, else says in one line what to do.
# usage: need.sh redis-server ...
set -euo pipefail

missing=()
for program in "$@"; do
  command -v "$program" >/dev/null || missing+=("$program")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  sudo=(sudo -n)
fi
if command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; then
  echo "installing ${missing[*]}" >&2
  if { "${sudo[@]}" apt-get update -qq && DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null 2>&1; then
    exit 0
  fi
fi
echo "please install ${missing[*]} (Debian, Ubuntu: sudo apt-get install ${missing[*]})" >&2
exit 1
