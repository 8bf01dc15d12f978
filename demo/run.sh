#!/usr/bin/env bash
# `make demo`: builds what is needed, starts a control plane and the controller, and tells the story. With CONTEXT=name it uses
# that cluster of yours instead of a control plane of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "Building Tenure (the first time takes a few minutes) ..."
cargo build --locked --bin tenure

if [[ -n "${CONTEXT:-}" ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  kubectl config view --minify --flatten --context="$CONTEXT" >"$folder/kubeconfig"
  KUBECONFIG="$folder/kubeconfig" demo/story.sh
else
  e2e/tools/build.sh >/dev/null
  cargo build --locked --package e2e --bin control-plane
  target/debug/control-plane -- demo/story.sh
fi
