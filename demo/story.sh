#!/usr/bin/env bash
# The story that `make demo` tells on the cluster KUBECONFIG names. Each step is checked; the first that comes out otherwise ends it.
set -euo pipefail
cd "$(dirname "$0")/.."

namespace=tenure-demo
resources=(demo-deploy-lock demo-licences demo-dataset demo-gpu-0 demo-gpu-1 demo-host)
folder=$(mktemp -d)
controller=

bold='' plain=''
if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

clean_up() {
  local status=$?
  if [[ -n "${CONTEXT:-}" ]]; then
    kubectl delete claims.tenure.dev --all --namespace "$namespace" --ignore-not-found >/dev/null 2>&1 || true
    sleep 2
    kubectl delete resources.tenure.dev "${resources[@]}" --ignore-not-found >/dev/null 2>&1 || true
    kubectl delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null 2>&1 || true
  fi
  if [[ -n "$controller" ]]; then
    kill -TERM "$controller" 2>/dev/null || true
    wait "$controller" 2>/dev/null || true
  fi
  rm -rf "$folder"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; shift; if (($#)); then printf '%s\n' "$@"; fi; }

# Prints a command as one would type it, and its real output.
run() {
  local word line=''
  for word; do
    case "$word" in *[\ \{\}\"]*) line+=" '$word'" ;; *) line+=" $word" ;; esac
  done
  printf '\n  $%s\n' "$line"
  "$@" 2>&1 | sed 's/^/  /'
}

# The step did not come out as told.
fail() {
  printf '\nThis did not come out as told: %s\n' "$1" >&2
  kubectl get claims.tenure.dev,resources.tenure.dev --namespace "$namespace" >&2 || true
  tail -n 20 "$folder/controller.log" >&2 || true
  exit 1
}

# expect CLAIM PHASE [REASON]: waits until the claim is so, half a minute at most.
expect() {
  local claim=$1 phase=$2 reason=${3:-} found
  kubectl wait "claims.tenure.dev/$claim" --namespace "$namespace" --for=jsonpath='{.status.phase}'="$phase" --timeout=30s >/dev/null 2>&1 ||
    fail "claim $claim is not $phase"
  found=$(kubectl get "claims.tenure.dev/$claim" --namespace "$namespace" -o jsonpath='{.status.reason}')
  [[ -z "$reason" || "$found" == "$reason" ]] || fail "claim $claim is $phase for the reason $found, not $reason"
}

apply() { run kubectl apply -f "$1"; }
release() { run kubectl patch tclaim "$1" -n "$namespace" --type merge -p '{"spec":{"release":{}}}'; }
claims() { run kubectl get tclaim -n "$namespace" "$@"; }

say "Setting up: the kinds, the policies, the class for invented keys, and the controller."
kubectl apply -f crds/ >/dev/null
kubectl wait --for=condition=Established crd/claims.tenure.dev crd/resources.tenure.dev --timeout=30s >/dev/null
kubectl create namespace tenure-system --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl apply -f charts/tenure/rbac -f charts/tenure/policies -f charts/tenure/classes >/dev/null
target/debug/tenure controller --health-address=127.0.0.1:0 --metrics-address=127.0.0.1:0 >"$folder/controller.log" 2>&1 &
controller=$!
for _ in {1..150}; do
  grep -q 'everything has been read' "$folder/controller.log" && break
  kill -0 "$controller" 2>/dev/null || fail "the controller ended"
  sleep 0.2
done
grep -q 'everything has been read' "$folder/controller.log" || fail "the controller did not begin to decide"
kubectl apply -f examples/00-namespace.yaml >/dev/null

say "1. A mutex" "Two deployments want one lock. The first gets it; the second won't wait and is told why, and who has it."
apply examples/01-mutex.yaml
expect deploy-1 Active
expect deploy-2 Denied CapacityHeld
claims deploy-1 deploy-2
run kubectl get tclaim deploy-2 -n "$namespace" -o 'jsonpath={.status.message}{"\n"}'

say "2. A pool" "Five licence seats: three and two fit, one more does not."
apply examples/02-pool.yaml
expect seats-three Active
expect seats-two Active
expect seats-one-more Denied CapacityHeld
run kubectl get tres demo-licences

say "3. Readers and a writer" "Readers hold together. The writer waits for both, then has it alone."
apply examples/03-readers-writer.yaml
expect reader-1 Active
expect reader-2 Active
expect writer Queued CapacityHeld
release reader-1
release reader-2
expect writer Active
claims reader-1 reader-2 writer

say "4. Two GPUs, all or nothing" "One of the two is in use, so the training claim waits and holds neither. When it is free, it gets both at once."
apply examples/04-two-gpus.yaml
expect eval Active
expect train Queued CapacityHeld
claims eval train
release eval
expect train Active
claims train
run kubectl get tres demo-gpu-0 demo-gpu-1

say "5. A queue" "First come, first served, and everybody sees their place."
apply examples/05-queue.yaml
expect queue-1 Queued CapacityHeld
expect queue-2 Queued CapacityHeld
sleep 2
claims queue-1 queue-2
run kubectl get tclaim queue-2 -n "$namespace" -o 'jsonpath={.status.message}{"\n"}'

say "6. A wait that runs out" "This one waits five seconds and no longer."
apply examples/06-wait-times-out.yaml
expect impatient TimedOut WaitedTooLong
release deploy-1
expect queue-1 Active
sleep 2
claims queue-1 queue-2 impatient

say "7. A holder whose heartbeat stops" "Nobody renews this claim's Lease. After ten seconds it lapses, and the next in line has the host."
apply examples/07-heartbeat.yaml
expect crashed Active
expect next Queued CapacityHeld
expect crashed Expired Lapsed
expect next Active
claims crashed next

say "8. A key that nothing declares" "Any name can be a lock: the Resource is made when it is asked for, and goes when it is idle."
apply examples/08-invented-key.yaml
expect staging Active
claims staging

say "9. It is not lost by accident" "A Resource that somebody holds can't be deleted."
printf '\n  $ kubectl delete tres demo-host\n'
if refusal=$(kubectl delete tres demo-host 2>&1); then fail "an occupied Resource was deleted"; fi
printf '%s\n' "$refusal" | sed 's/^/  /'
[[ "$refusal" == *ResourceInUse* ]] || fail "the refusal does not say ResourceInUse"

say "All of it came out as told."
if [[ "${KEEP:-}" == 1 ]]; then
  printf 'It stays up until you press Ctrl-C. In another terminal:\n\n  export KUBECONFIG=%s\n  kubectl get tres,tclaim -A\n\n' "$KUBECONFIG"
  wait "$controller"
fi
