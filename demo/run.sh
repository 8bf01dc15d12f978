#!/usr/bin/env bash
# Builds what the demo needs, starts a control plane on this machine or takes a cluster there is, and has the story told on it.
# usage: demo/run.sh            that is `make demo`
# environment: CONTEXT=name     a context of your kubeconfig: use that cluster instead of a control plane of its own
#              KEEP=1           stay up after the end, until Ctrl-C
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
context=${CONTEXT-}

die() {
    echo "demo: $*" >&2
    exit 1
}

command -v cargo >/dev/null || die "cargo is missing: install Rust (https://rustup.rs)"
if [[ -z $context ]]; then
    programs=$(e2e/tools/build.sh)
    [[ -x $programs/kube-apiserver ]] || die "e2e/tools/build.sh left no kube-apiserver in $programs"
    cargo build --locked --package tenure --package e2e --bin tenure --bin control-plane
    # In this process's place, so that whoever ends this one ends all of it.
    exec target/debug/control-plane -- demo/story.sh
fi

command -v kubectl >/dev/null || die "kubectl is missing, and CONTEXT needs one"
cargo build --locked --package tenure --bin tenure
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The story waits for its own cleaning up; this waits for the story.
trap : INT TERM
# A copy with that one context in it: whatever is done to your kubeconfig meanwhile, this goes to no other cluster.
kubectl config view --raw --minify --flatten --context="$context" >"$folder/kubeconfig" ||
    die "CONTEXT=$context: your kubeconfig has no such context; kubectl config get-contexts lists them"
code=0
KUBECONFIG=$folder/kubeconfig demo/story.sh || code=$?
exit "$code"
