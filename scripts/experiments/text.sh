#!/usr/bin/env bash
# Text: are learned windows worth it? For each corpus and seed one model is trained with full
# attention; every arm goes on from its weights, for as many steps on the same text in the same
# order. Loss on the test split, and the visible pairs of the windows in force at the end. `planned`
# is the learned plan from the beginning, the twin of the shuffled and random ones: the learned run
# itself spends 0.4 of its steps searching.
#
#   scripts/experiments/text.sh [FOLDER [CORPUS...]]    default runs/text_experiment kjv pystdlib
#
# Goes on where it was stopped. `table.py text FOLDER` prints the table. Two at once, one per corpus,
# with OMP_NUM_THREADS=1 each, are done sooner than one with both cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/experiments/runs.sh

OUT=${1:-runs/text_experiment}
CORPORA=("${@:2}")
if [ ${#CORPORA[@]} -eq 0 ]; then CORPORA=(kjv pystdlib); fi
readonly SEEDS=(0 1 2)
readonly RANDOM_DRAWS=(0 1 2 3 4)
readonly SHUFFLED_DRAWS=(0 1 2)
readonly UNIFORM=(16 32 64 108 128 256 512) # 108 sees 0.1997 of the pairs, the budget
readonly CANDIDATES=16,32,64,128,256,512,1024
readonly FINE=16,32,48,64,96,128,192,256,512,1024
readonly BUDGET=0.2
readonly RECIPE=recipes/learned_kjv.yaml
readonly EVALUATE="--split test --stretches 64"

mkdir -p "$OUT"
for corpus in "${CORPORA[@]}"; do
  do_once "$OUT/$corpus.log" "$AAH" data prepare "$corpus" -o "$OUT/$corpus.data" --overwrite
  for seed in "${SEEDS[@]}"; do
    train "$corpus.${seed}.start" data="$OUT/$corpus.data" seed="$seed" attention=full \
      model.heads=4 training.steps=4000 training.batch_size=2 checkpoint.every=4000
  done
done
for corpus in "${CORPORA[@]}"; do
  for seed in "${SEEDS[@]}"; do
    data=$OUT/$corpus.data
    arm=(data="$data" seed="$((seed + 100))" init_from="$OUT/$corpus.$seed.start" model.heads=4
      training.steps=150 training.batch_size=2 optimizer.learning_rate=5e-4
      optimizer.min_learning_rate=5e-5 optimizer.warmup_steps=10 checkpoint.every=150)
    learned="candidates: [$CANDIDATES], budget: $BUDGET, search: 0.4"
    fine="candidates: [$FINE], budget: $BUDGET, search: 0.4"
    control="windows: [16, 64, 256, 1024], warmup_steps: 10, min_group_size: 1"
    train "$corpus.$seed.full" "${arm[@]}" attention=full
    train "$corpus.$seed.learned" "${arm[@]}" attention="{learned: {$learned, warmup: 0}}"
    plan=$OUT/$corpus.$seed.learned/plan.json
    train "$corpus.$seed.planned" "${arm[@]}" attention="{plan: $plan}"
    train "$corpus.$seed.learned_fine" "${arm[@]}" attention="{learned: {$fine, warmup: 0}}"
    train "$corpus.$seed.planned_fine" "${arm[@]}" \
      attention="{plan: $OUT/$corpus.$seed.learned_fine/plan.json}"
    train "$corpus.$seed.aah_learned" "${arm[@]}" \
      attention="{variant: aah_learned, learned: {$learned, warmup: 0.05}}"
    train "$corpus.$seed.shallow_freeze" "${arm[@]}" \
      attention="{regime: shallow_freeze, control: {$control}}"
    for window in "${UNIFORM[@]}"; do
      train "$corpus.$seed.uniform_$window" "${arm[@]}" attention="{window: $window}"
    done
    for draw in "${SHUFFLED_DRAWS[@]}"; do
      name=$corpus.$seed.shuffled_$draw
      make_plan "$name" shuffle "$plan" --seed "$((10 * seed + draw))"
      train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
    done
    for draw in "${RANDOM_DRAWS[@]}"; do
      name=$corpus.$seed.random_$draw
      make_plan "$name" random "$plan" --seed "$((10 * seed + draw))" --candidates "$CANDIDATES"
      train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
    done
  done
done
echo "done: $OUT"
