#!/usr/bin/env bash
# Counts the user-space instructions of one conversation over HTTP, played by a bare reqwest loop and by Positronic.
# Needs valgrind. Prints instructions per request, and the ratio.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo bench --quiet -p positronic-tests --bench http --no-run
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
http=$(find "$target/release/deps" -maxdepth 1 -name 'http-*' -perm -u+x -type f -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
work=$(mktemp -d)
"$http" serve > "$work/address" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
until [ -s "$work/address" ]; do sleep 0.1; done
address=$(cat "$work/address")

count() { # player way iterations
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$http" "$1" "$2" "$3" "$address" 2>&1 |
        sed -n 's/.*Collected : //p'
}

# The cost of a process up to its first iteration (TLS roots, schemas) is counted once and subtracted.
printf '%-8s %-7s %14s %14s %7s\n' iterations way 'bare instr/req' 'ours instr/req' ratio
for way in whole stream; do
    bare_start=$(count bare "$way" 1)
    ours_start=$(count ours "$way" 1)
    for iterations in 50 200; do
        bare=$((($(count bare "$way" "$iterations") - bare_start) / (iterations - 1)))
        ours=$((($(count ours "$way" "$iterations") - ours_start) / (iterations - 1)))
        printf '%-8s %-7s %14d %14d %7.2f\n' "$iterations" "$way" "$bare" "$ours" \
            "$(python3 -c "print($ours / $bare)")"
    done
    printf '%-8s %-7s %14d %14d\n' start "$way" "$bare_start" "$ours_start"
done
