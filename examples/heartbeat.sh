#!/usr/bin/env bash
# Renews the heartbeat of a claim, until it is stopped or so many times. The claim is Expired when it has been silent for longer
# than its leaseSeconds, so this renews more than twice in that time.
# usage: examples/heartbeat.sh CLAIM [TIMES]
# environment: NAMESPACE    the claim's (tenure-demo)
set -euo pipefail

claim=${1:?names no claim. usage: examples/heartbeat.sh CLAIM [TIMES]}
times=${2:-0}
namespace=${NAMESPACE:-tenure-demo}
# The uid, so that a later claim of the same name isn't kept alive by a forgotten script.
read -r uid seconds < <(kubectl get tclaim "$claim" -n "$namespace" -o jsonpath='{.metadata.uid} {.spec.leaseSeconds}{"\n"}')
seconds=${seconds:-120}

for ((beat = 1; times == 0 || beat <= times; beat++)); do
    ((beat == 1)) || sleep $((seconds * 2 / 5))
    phase=$(kubectl get tclaim "$claim" -n "$namespace" -o jsonpath='{.metadata.uid} {.status.phase}')
    if [[ $phase != "$uid Active" ]]; then
        echo "heartbeat: $claim is no longer Active: stop what you do under it" >&2
        exit 1
    fi
    kubectl apply --server-side --field-manager=holder -f - <<LEASE >/dev/null
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: tenure-$uid
  namespace: $namespace
  ownerReferences: [{apiVersion: tenure.dev/v1alpha1, kind: Claim, name: $claim, uid: $uid}]
spec:
  holderIdentity: $uid
  leaseDurationSeconds: $seconds
  renewTime: $(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
LEASE
    echo "$(date +%H:%M:%S) beat $beat"
done
