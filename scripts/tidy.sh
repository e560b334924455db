#!/usr/bin/env bash
# Runs clang-tidy over our own sources, as far as they are built.
#
#   scripts/tidy.sh [FOLDER...]   the layers to look at; all of them by default
#
# Works from configurations of its own: GCC's precompiled headers mean nothing to clang. What takes
# long are the checks of torch's headers, the same in every file; hence sources that include them
# are looked at in batches, each one translation unit. Names that meet in a batch and would not in
# the program make it fail: the files of a batch that failed are looked at again one by one, and
# what is said then counts.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=("$@")
[ $# -gt 0 ] || folders=(core io text model lab cli)
export SINGLE=build/tidy BATCHES=build/tidy-batches
readonly OPTIONS=(-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DAAH_BUILD_TESTS=OFF)
cmake --preset release -B "$SINGLE" "${OPTIONS[@]}" >/dev/null
cmake --preset release -B "$BATCHES" "${OPTIONS[@]}" -DAAH_TORCH_BATCHES=ON >/dev/null

# list_sources FOLDER...: what the layers' compiler is given: their sources, or batches of them.
list_sources() {
  python3 - "$BATCHES" "$@" <<'PYTHON'
import json
import os
import sys

database, folders = sys.argv[1], sys.argv[2:]
with open(os.path.join(database, "compile_commands.json"), encoding="utf-8") as file:
    files = {os.path.relpath(entry["file"]) for entry in json.load(file)}
roots = [f"{folder}/" for folder in folders] + [f"{database}/{folder}/" for folder in folders]
sources = [f for f in files if f.endswith((".cc", ".cxx")) and f.startswith(tuple(roots))]
# Batches take longest, so they go first.
print("\n".join(sorted(sources, key=lambda f: (not f.startswith(database), f))))
PYTHON
}

tidy() {
  clang-tidy-19 --quiet --extra-arg=-Wno-unknown-warning-option "$@" \
    2> >(grep -v 'warnings\? generated' >&2)
}

check() {
  local source=$1 files file status=0
  if [[ $source != "$BATCHES"/* ]]; then
    tidy -p "$SINGLE" "$source"
    return
  fi
  # A batch includes sources: that is what it is for.
  tidy -p "$BATCHES" --checks=-bugprone-suspicious-include "$source" >/dev/null 2>&1 && return
  mapfile -t files < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$source")
  for file in "${files[@]}"; do
    tidy -p "$SINGLE" "$file" || status=1
  done
  return $status
}
export -f tidy check

mapfile -t sources < <(list_sources "${folders[@]}")
if [ ${#sources[@]} -eq 0 ]; then
  echo "tidy: no sources in ${folders[*]}" >&2
  exit 2
fi
# A file that fails is named by clang-tidy itself, and makes xargs fail at the end.
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check "$1"' check
echo "tidy: ${#sources[@]} files and batches"
