#!/usr/bin/env bash
# Builds what the tests' control plane consists of, at the versions that the go.mod files beside this script pin, and prints the
# folder they lie in: etcd, kube-apiserver and, where the machine has no kubectl, kubectl.
# The first time takes minutes; after that the folder is found again by a hash of what is pinned.
# usage: e2e/tools/build.sh      the folder goes to standard output, progress to standard error
# environment: TENURE_CACHE      where built tools are kept (~/.cache/tenure)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${TENURE_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set, so name a cache folder in TENURE_CACHE}/.cache}/tenure}
kubernetes=$(sed -nE 's/^\tk8s\.io\/kubernetes (v1\.[0-9]+\.[0-9]+).*/\1/p' "$here/kubernetes/go.mod")
readonly kubernetes
# Fetched as a Go module by a Go that is too old to do so by itself, such as Debian 12's.
readonly toolchain=go1.26.8
# Folders that nobody used go after so many days.
readonly keep_days=30
# Seconds between two lines of progress.
readonly pulse=15

say() { echo "tools: $*" >&2; }
die() {
    say "$*"
    exit 1
}

# Sets `go` to a Go of at least 1.21, which fetches the version that a go.mod asks for.
find_go() {
    go=$(command -v go) || die "Go is missing, and etcd and kube-apiserver are built with it: install it (make setup, or the package golang-go)"
    local minor folder downloaded
    minor=$("$go" env GOVERSION | sed -nE 's/^go1\.([0-9]+).*/\1/p')
    [[ -z $minor || $minor -ge 21 ]] && return
    say "$("$go" env GOVERSION) can't build Kubernetes; fetching $toolchain"
    downloaded=$(cd / && "$go" mod download -json "golang.org/toolchain@v0.0.1-$toolchain.$("$go" env GOOS)-$("$go" env GOARCH)") ||
        die "$toolchain can't be fetched as a module: $(sed -nE 's/^[[:space:]]*"Error": "(.*)",?$/\1/p' <<<"$downloaded"): install Go 1.21 or later"
    folder=$(sed -nE 's/^[[:space:]]*"Dir": "(.*)",?$/\1/p' <<<"$downloaded")
    [[ -n $folder ]] || die "$toolchain was fetched, but go doesn't say where to: install Go 1.21 or later"
    # A module carries no executable bits.
    chmod u+x "$folder/bin"/* "$folder/pkg/tool"/*/*
    go=$folder/bin/go
}

# build NAME MODULE PACKAGE [LINKER FLAGS]: what lies under its final name is complete.
build() {
    local name=$1 module=$2 package=$3 flags=${4-} compiler log started=$SECONDS
    [[ -x $folder/$name ]] && return
    say "building $name"
    log=$folder/$name.log
    (
        cd "$here/$module"
        # With this script the compiler goes too, so that nothing is left of a test that was killed.
        export GOTMPDIR=$folder
        exec setpriv --pdeathsig TERM nice -n 10 "$go" build -v -trimpath -mod=readonly -ldflags "-s -w $flags" -o "$folder/.$name.new" "$package"
    ) >"$log" 2>&1 &
    compiler=$!
    # shellcheck disable=SC2064 # this compiler, whatever the variable holds later
    trap "kill $compiler 2>/dev/null || true" EXIT
    while sleep 0.2 && kill -0 "$compiler" 2>/dev/null; do
        ((SECONDS - started >= pulse && (SECONDS - started) % pulse == 0)) || continue
        say "$name: $((SECONDS - started)) s, $(grep -c '^go: downloading' "$log") modules fetched," \
            "$(grep -vc '^go: ' "$log") packages compiled"
        sleep 1
    done
    if ! wait "$compiler"; then
        tail -n 30 "$log" >&2
        die "$name can't be built; its whole log is $log"
    fi
    trap - EXIT
    mv "$folder/.$name.new" "$folder/$name"
    rm "$log"
    say "$name is built, in $((SECONDS - started)) s"
}

# Read whole before it runs, so that a changed script doesn't change a build on its way.
main() {
    find_go
    # With cgo the result would depend on the machine's libc.
    export CGO_ENABLED=0
    local version hash component minor stamp lock
    version=$(cd "$here/kubernetes" && "$go" env GOVERSION GOOS GOARCH)
    hash=$({
        cat "$here"/{etcd,kubernetes}/go.{mod,sum} "${BASH_SOURCE[0]}"
        echo "$version"
    } | sha256sum | cut -c 1-16)
    folder=$cache/tools/$hash
    mkdir -p "$folder"

    exec {lock}>"$folder/.lock"
    if ! flock --nonblock "$lock"; then
        say "waiting for another build of the same tools"
        flock "$lock"
    fi
    # What a build left that was killed.
    rm -rf "$folder"/go-build*
    build etcd etcd go.etcd.io/etcd/server/v3
    component=k8s.io/component-base/version
    minor=${kubernetes#v1.}
    stamp="-X $component.gitVersion=$kubernetes -X $component.gitMajor=1 -X $component.gitMinor=${minor%.*}"
    build kube-apiserver kubernetes k8s.io/kubernetes/cmd/kube-apiserver "$stamp"
    if ! command -v kubectl >/dev/null; then
        build kubectl kubernetes k8s.io/kubernetes/cmd/kubectl "$stamp"
    fi
    touch "$folder"
    find "$cache/tools" -mindepth 1 -maxdepth 1 -type d -mtime "+$keep_days" -exec rm -rf {} +
    echo "$folder"
}

main
exit
