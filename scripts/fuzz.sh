#!/usr/bin/env bash
# Builds the fuzz targets and runs each from its inputs in tests/fuzz/corpus.
#
#   scripts/fuzz.sh [TARGET...]   config, json, ...; all of tests/fuzz by default
#
# From the environment:
#   FUZZ_SECONDS  for each target, 20 by default
#   FUZZ_SEED     of libFuzzer's random numbers, 1 by default; 0 draws one
#
# The default seed is fixed and every run begins from the files in tests/fuzz/corpus alone, so that
# what fails for a change fails again when one looks for it, and does not come up beside another
# change by chance. One program then tries nearly the same inputs in the same order, more of them on
# a faster machine. To look further, run it for longer with other seeds; what that finds becomes a
# file there and a unit test. Inputs that fail are written to build/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/.."

export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
readonly SECONDS_EACH=${FUZZ_SECONDS:-20} SEED=${FUZZ_SEED:-1} FOUND=build/fuzz/found
if [[ ! $SECONDS_EACH =~ ^[1-9][0-9]*$ || ! $SEED =~ ^[0-9]+$ ]]; then
  echo "fuzz: FUZZ_SECONDS must be an integer of at least 1, FUZZ_SEED of at least 0" >&2
  exit 2
fi

if [ $# -gt 0 ]; then
  targets=("$@")
else
  mapfile -t targets < <(basename -s _fuzz.cc tests/fuzz/*_fuzz.cc)
fi
for name in "${targets[@]}"; do
  if [ ! -f "tests/fuzz/${name}_fuzz.cc" ]; then
    echo "fuzz: no target '$name' in tests/fuzz" >&2
    exit 2
  fi
done
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)" -t "${targets[@]/#/fuzz_}" -- --quiet

# libFuzzer tells comparisons apart by their addresses: were these drawn anew, its inputs would be.
fixed_addresses=(setarch -R)
if ! "${fixed_addresses[@]}" true 2>/dev/null; then
  echo "fuzz: addresses cannot be fixed here, inputs will differ from run to run" >&2
  fixed_addresses=()
fi
for name in "${targets[@]}"; do
  log=$FOUND/$name-$SEED.log
  # New inputs of this run go to the first folder; left there, they would change the next one.
  rm -rf "${FOUND:?}/$name-$SEED"
  mkdir -p "$FOUND/$name-$SEED"
  if ! "${fixed_addresses[@]}" build/fuzz/tests/fuzz/fuzz_"$name" -seed="$SEED" \
      -max_total_time="$SECONDS_EACH" -timeout=10 -rss_limit_mb=2048 \
      -artifact_prefix="$FOUND/$name-" -verbosity=0 -print_final_stats=1 \
      "$FOUND/$name-$SEED" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: target $name failed with seed $SEED, see $log"
    exit 1
  fi
  echo "fuzz $name: $(grep -o 'number_of_executed_units: *[0-9]*' "$log")"
done
