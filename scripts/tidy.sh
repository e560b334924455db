#!/usr/bin/env bash
# Runs clang-tidy over our own sources.
#
#   scripts/tidy.sh [FOLDER...]   the layers to look at; all of them by default
#
# Works from a configuration of its own: GCC's precompiled headers mean nothing to clang.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly FOLDERS=("${@:-core io text model lab cli}")
readonly DATABASE=build/tidy

cmake --preset release -B "$DATABASE" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  -DAAH_BUILD_TESTS=OFF >/dev/null
# shellcheck disable=SC2068  # the default is several words
mapfile -t files < <(git ls-files --cached --others --exclude-standard ${FOLDERS[@]} | grep '\.cc$')
if [ ${#files[@]} -eq 0 ]; then
  echo "tidy: no sources in ${FOLDERS[*]}" >&2
  exit 2
fi
# A file that fails is named by clang-tidy itself, and makes xargs fail at the end.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p "$DATABASE" --quiet --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings\? generated' >&2)
echo "tidy: ${#files[@]} files"
