#!/usr/bin/env bash
# Tells what Tenure does on the cluster that KUBECONFIG names, step by step, with kubectl and the files in examples/. Each step is
# checked; it ends with 0 only if all came out as told. Needs target/debug/tenure. `make demo` prepares all that.
# environment: CONTEXT    not empty: the cluster is somebody's, so leave nothing of the demo in it
#              KEEP=1     stay up after the end, until Ctrl-C
# shellcheck disable=SC2317 # steps are called by name, and cleaning up by a trap
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
context=${CONTEXT-}
keep=${KEEP-}
log=$(dirname "${KUBECONFIG:?names no cluster: run make demo}")/demo-controller.log
readonly context keep log namespace=tenure-demo
# For whatever should take less than a second.
readonly patience=30s

bold='' plain=''
if [[ -t 1 && -z ${NO_COLOR-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

# title TEXT [SENTENCE...]
title() {
    printf '\n%s%s%s\n' "$bold" "$1" "$plain"
    shift
    if (($#)); then fmt -w 100 <<<"$*"; fi
}

# then_comes SENTENCE...
then_comes() {
    echo
    fmt -w 100 <<<"$*"
}

# Prints a command, then does exactly that.
run() {
    printf '\n%s$ %s%s\n' "$bold" "$1" "$plain"
    eval "$1"
}

wrong() {
    echo "NOT AS TOLD: $*" >&2
    exit 1
}

# field KIND NAME JSONPATH
field() { kubectl get "$1" "$2" -n "$namespace" -o jsonpath="$3" --request-timeout=10s; }

# expect CLAIM PHASE [REASON [POSITION]]: waits for it, within bounds.
expect() {
    local claim=$1 want=("${@:2}") have
    kubectl wait "tclaim/$claim" -n "$namespace" --for=jsonpath='{.status.phase}'="$2" --timeout="$patience" >/dev/null 2>&1 || true
    # A claim's own copy of its place may be two seconds old (Q7).
    for _ in {1..20}; do
        read -ra have < <(field tclaim "$claim" '{.status.phase} {.status.reason} {.status.position}{"\n"}')
        [[ "${have[*]:0:${#want[@]}}" == "${want[*]}" ]] && return
        sleep 0.2
    done
    wrong "claim $claim should be ${want[*]} and is ${have[*]}: $(field tclaim "$claim" '{.status.message}')"
}

# expect_resource NAME AVAILABILITY
expect_resource() {
    kubectl wait "tres/$1" --for=jsonpath='{.status.availability}'="$2" --timeout="$patience" >/dev/null 2>&1 ||
        wrong "Resource $1 should be $2 and is $(field tres "$1" '{.status.availability}')"
}

claims() { run "kubectl get tclaim -n $namespace -l example=$1"; }
message() { run "kubectl get tclaim $1 -n $namespace -o jsonpath='{.status.message}{\"\\n\"}'"; }

mutex() {
    title "1. A mutex" "Two migrations want the same database, and only one may run at a time. The first gets it. The second would" \
        "wait, so it stands in line."
    run "kubectl apply -f examples/01-mutex.yaml"
    run "kubectl wait tclaim/migration-a -n $namespace --for=jsonpath='{.status.phase}'=Active --timeout=$patience"
    expect migration-a Active
    expect migration-b Queued CapacityHeld 1
    claims mutex
    then_comes "It is told what is in its way, and whose that is:"
    message migration-b
    then_comes "The first one is done: it deletes its claim, and the second gets its turn."
    run "kubectl delete tclaim migration-a -n $namespace"
    expect migration-b Active
    claims mutex
}

pool() {
    title "2. A pool" "A licence has five seats. Two claims take two each; the third wants two and only one is left. The fourth wants" \
        "that one, but the third was there before: nobody is passed, however small the other one is."
    run "kubectl apply -f examples/02-pool.yaml"
    expect solver-1 Active
    expect solver-2 Active
    expect solver-3 Queued CapacityHeld 1
    expect solver-4 Queued QueueAhead 2
    expect_resource demo-seats PartlyFree
    claims pool
    run "kubectl get tres demo-seats"
    then_comes "The first gives back its two seats, and both who waited fit: five of five."
    run "kubectl delete tclaim solver-1 -n $namespace"
    expect solver-3 Active
    expect solver-4 Active
    expect_resource demo-seats Held
    claims pool
}

readers() {
    title "3. Readers and a writer" "Any number may read the images at once. Who writes them wants to be alone, and a reader that" \
        "comes later waits behind the writer, so that the writer gets its turn."
    run "kubectl apply -f examples/03-readers-writer.yaml"
    expect reader-1 Active
    expect reader-2 Active
    expect writer Queued CapacityHeld 1
    expect reader-3 Queued QueueAhead 2
    claims readers
    then_comes "Both readers leave: the writer is alone."
    run "kubectl delete tclaim reader-1 reader-2 -n $namespace"
    expect writer Active
    expect reader-3 Queued CapacityHeld 1
    claims readers
}

gpus() {
    title "4. Two GPUs, all or nothing" "A training needs two GPUs; a notebook has one of them. The training waits, and while it waits" \
        "it holds none: GPU 1 is free, though who comes next stands behind the training."
    run "kubectl apply -f examples/04-two-gpus.yaml"
    expect notebook Active
    expect train Queued CapacityHeld 1
    expect_resource demo-gpu-1 Free
    kubectl wait tres/demo-gpu-0 tres/demo-gpu-1 --for=jsonpath='{.status.queueDepth}'=1 --timeout="$patience" >/dev/null 2>&1 ||
        wrong "claim train doesn't stand in the queues of both GPUs"
    claims gpus
    run "kubectl get tres -l example=gpus"
    then_comes "The notebook ends, and the training gets both in one go."
    run "kubectl delete tclaim notebook -n $namespace"
    expect train Active
    expect_resource demo-gpu-0 Held
    expect_resource demo-gpu-1 Held
    claims gpus
}

queue() {
    title "5. A queue" "Four builds want the one measuring rig. First come, first served, and each sees its place."
    run "kubectl apply -f examples/05-queue.yaml"
    expect build-1 Active
    expect build-2 Queued CapacityHeld 1
    expect build-3 Queued CapacityHeld 2
    expect build-4 Queued CapacityHeld 3
    claims queue
    then_comes "Releasing is the other way to end a claim: unlike a deleted one it stays to be looked at. Everybody moves up."
    run "kubectl patch tclaim build-1 -n $namespace --type=merge -p '{\"spec\":{\"release\":{}}}'"
    expect build-1 Released ReleasedByHolder
    expect build-2 Active
    expect build-3 Queued CapacityHeld 1
    expect build-4 Queued CapacityHeld 2
    claims queue
}

waiting() {
    title "6. A wait that ends" "How long to wait is up to each claim. One here would not wait at all and is denied at once; another" \
        "would wait five seconds."
    run "kubectl apply -f examples/06-wait-times-out.yaml"
    run "kubectl wait tclaim/no-time tclaim/five-seconds -n $namespace --for=condition=Finished --timeout=$patience"
    expect patient-holder Active
    expect no-time Denied CapacityHeld
    expect five-seconds TimedOut WaitedTooLong
    claims wait
}

heartbeat() {
    title "7. A holder that vanishes" "A script on a laptop holds the lock for deployments. It shows that it is alive by renewing a" \
        "Lease, and may be silent for ten seconds. As long as it renews, it keeps the lock:"
    run "kubectl apply -f examples/07-heartbeat.yaml"
    expect laptop Active
    expect next-in-line Queued CapacityHeld 1
    run "examples/heartbeat.sh laptop 4"
    expect laptop Active
    claims heartbeat
    then_comes "Then somebody shuts the laptop. Ten seconds after the last beat the claim is Expired, and the lock goes to the next."
    run "kubectl wait tclaim/laptop -n $namespace --for=jsonpath='{.status.phase}'=Expired --timeout=$patience"
    expect laptop Expired Lapsed
    expect next-in-line Active
    claims heartbeat
}

invented() {
    title "8. A key that nobody declared" "Two teams agree on a word, environment/staging, and lock it. No Resource was made for it:" \
        "Tenure invents one."
    run "kubectl apply -f examples/08-invented-key.yaml"
    expect web Active
    expect api Queued CapacityHeld 1
    claims invented
    local resource
    resource=$(field tclaim web '{.status.grants[0].resource}')
    run "kubectl get tres $resource -o wide"
}

deletion() {
    title "9. Nothing is lost by accident" "The ledger of who holds a Resource is in the Resource. So it can't be deleted while" \
        "somebody does:"
    local refusal
    printf '\n%s$ kubectl delete tres demo-database%s\n' "$bold" "$plain"
    if refusal=$(kubectl delete tres demo-database --wait=false 2>&1); then wrong "Resource demo-database was deleted while it was held"; fi
    fmt -w 120 <<<"$refusal"
    [[ $refusal == *ResourceInUse* ]] || wrong "the refusal doesn't say ResourceInUse"
}

# Applies what docs/install.md says, and starts the controller.
install() {
    local folder
    title "Setting up" "The kinds, policies, the class that invents keys, and the controller: a process on this machine."
    kubectl apply -f crds/
    kubectl wait --for=condition=Established crd/claims.tenure.dev crd/resources.tenure.dev --timeout="$patience" >/dev/null
    kubectl get namespace tenure-system >/dev/null 2>&1 || kubectl create namespace tenure-system
    for folder in policies classes; do
        kubectl apply -f "charts/tenure/$folder/"
    done
    kubectl apply -f examples/00-namespace.yaml
    # By the kernel, if this ends in a way that runs no trap.
    setpriv --pdeathsig TERM target/debug/tenure controller --health-address=127.0.0.1:0 --metrics-address=127.0.0.1:0 >"$log" 2>&1 &
    controller=$!
    for _ in {1..150}; do
        if grep -q 'everything has been read' "$log"; then return; fi
        kill -0 "$controller" 2>/dev/null || wrong "the controller ended"
        sleep 0.2
    done
    wrong "the controller hasn't begun to decide within 30 s; does another one lead in this cluster? kubectl get lease -n tenure-system"
}

# Takes from somebody's cluster what the examples made. The kinds, the class and the policies stay.
remove_examples() {
    local resource left='' code=0
    echo "Removing the namespace $namespace and the Resources of the examples from $context"
    kubectl delete tclaim --all -n "$namespace" --timeout="$patience" >/dev/null || code=1
    left=$(kubectl get tres -l 'example in (mutex,pool,readers,gpus,queue,wait,heartbeat)' -o name) || code=1
    left+=" $(kubectl get tres -o jsonpath="{range .items[?(@.spec.invented.namespace==\"$namespace\")]}tres/{.metadata.name} {end}")" || code=1
    for resource in $left; do
        kubectl wait "$resource" --for=jsonpath='{.status.availability}'=Free --timeout="$patience" >/dev/null &&
            kubectl delete "$resource" --timeout="$patience" >/dev/null || code=1
    done
    kubectl delete namespace "$namespace" --timeout="$patience" >/dev/null || code=1
    return "$code"
}

controller='' is_installed=''
clean_up() {
    local code=$?
    trap : INT TERM
    trap - EXIT
    if [[ $context && $is_installed ]]; then
        remove_examples || echo "demo: something is left; see it with: kubectl --context=$context get tenure,namespaces -A" >&2
    fi
    if [[ $controller ]]; then
        kill "$controller" 2>/dev/null || true
        wait "$controller" 2>/dev/null || true
    fi
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

main() {
    local step code failed=() started=$SECONDS
    if [[ $context ]] && kubectl get namespace "$namespace" >/dev/null 2>&1; then
        wrong "$context has a namespace $namespace already; kubectl --context=$context delete namespace $namespace removes it"
    fi
    is_installed=yes
    install
    for step in mutex pool readers gpus queue waiting heartbeat invented deletion; do
        # In a process of its own: what goes wrong ends this step and no other.
        set +e
        (
            trap - EXIT
            set -e
            "$step"
        )
        code=$?
        set -e
        ((code == 0)) || failed+=("$step")
    done

    if ((${#failed[@]})); then
        title "Of nine steps these did not come out as told: ${failed[*]}. The controller's last lines:"
        tail -n 20 "$log"
    else
        title "All nine steps came out as told, in $((SECONDS - started)) seconds." \
            "docs/concepts.md explains what you saw; the files are in examples/."
    fi
    if [[ $keep == 1 ]]; then
        title "It stays up. In another terminal:"
        printf '\nexport KUBECONFIG=%s\nkubectl get tres,tclaim -A\n\nTo end it: Ctrl-C here, or kill %s\n' "$KUBECONFIG" "$$"
        # Ending it now is what was asked for.
        trap 'exit $((${#failed[@]} > 0))' INT TERM
        wait "$controller" || true
    fi
    ((${#failed[@]} == 0))
}

main
exit
