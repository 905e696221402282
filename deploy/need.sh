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
# Debian 12 has valkey-server among its backports only.
backports() {
  local dir codename
  codename=$(. /etc/os-release && echo "${ID}:${VERSION_CODENAME:-}")
  [ "$codename" = debian:bookworm ] || return 1
  dir=$(mktemp -d)
  mkdir -p "$dir/lists/partial"
  for suite in bookworm bookworm-backports; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
  done >"$dir/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$dir/lists")
  local done=0
  "${sudo[@]}" apt-get "${options[@]}" update -qq &&
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get "${options[@]}" install -y -qq --no-install-recommends "$@" || done=1
  rm -rf "$dir"
  return $done
}

if command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; then
  echo "installing ${missing[*]}" >&2
  if { "${sudo[@]}" apt-get update -qq && DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null 2>&1; then
    exit 0
  fi
  if backports "${missing[@]}" >/dev/null 2>&1; then
    exit 0
  fi
fi
echo "please install ${missing[*]} (Debian, Ubuntu: sudo apt-get install ${missing[*]})" >&2
exit 1
