#!/usr/bin/env bash
# Text: are learned windows worth it? For each corpus and seed one model is trained with full
# attention; every arm goes on from its weights, for as many steps on the same text in the same
# order. Loss on the test split, and the visible pairs of the windows in force at the end. `planned`
# is the learned plan from the beginning, the twin of the shuffled and random ones: the learned run
# itself spends 0.4 of its steps searching.
#
#   scripts/experiments/text.sh [FOLDER]      default runs/text_experiment; about 90 minutes
#
# Goes on where it was stopped. `table.py text FOLDER` prints the table.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/experiments/runs.sh

OUT=${1:-runs/text_experiment}
readonly SEEDS=(0 1 2)
readonly DRAWS=(0 1 2 3 4)
readonly UNIFORM=(16 32 64 128 256 512)
readonly CANDIDATES=16,32,64,128,256,512,1024
readonly BUDGET=0.2
readonly RECIPE=recipes/learned_kjv.yaml
readonly EVALUATE="--split test --stretches 64"

mkdir -p "$OUT"
for corpus in kjv pystdlib; do
  do_once "$OUT/$corpus.log" "$AAH" data prepare "$corpus" -o "$OUT/$corpus.data" --overwrite
done
for seed in "${SEEDS[@]}"; do
  for corpus in kjv pystdlib; do
    data=$OUT/$corpus.data
    train "$corpus.${seed}.start" data="$data" seed="$seed" attention=full model.heads=4 \
      training.steps=1200 training.batch_size=2 checkpoint.every=1200
    arm=(data="$data" seed="$((seed + 100))" init_from="$OUT/$corpus.$seed.start" model.heads=4
      training.steps=200 training.batch_size=2 optimizer.learning_rate=5e-4
      optimizer.min_learning_rate=5e-5 optimizer.warmup_steps=10 checkpoint.every=200)
    learned="candidates: [$CANDIDATES], budget: $BUDGET, search: 0.4"
    control="windows: [16, 64, 256, 1024], warmup_steps: 10, min_group_size: 1"
    train "$corpus.$seed.full" "${arm[@]}" attention=full
    train "$corpus.$seed.learned" "${arm[@]}" attention="{learned: {$learned, warmup: 0}}"
    plan=$OUT/$corpus.$seed.learned/plan.json
    train "$corpus.$seed.planned" "${arm[@]}" attention="{plan: $plan}"
    train "$corpus.$seed.aah_learned" "${arm[@]}" \
      attention="{variant: aah_learned, learned: {$learned, warmup: 0.05}}"
    train "$corpus.$seed.shallow_freeze" "${arm[@]}" \
      attention="{regime: shallow_freeze, control: {$control}}"
    for window in "${UNIFORM[@]}"; do
      train "$corpus.$seed.uniform_$window" "${arm[@]}" attention="{window: $window}"
    done
    for draw in "${DRAWS[@]}"; do
      number=$((10 * seed + draw))
      name=$corpus.$seed.shuffled_$draw
      make_plan "$name" shuffle "$plan" --seed "$number"
      train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
      name=$corpus.$seed.random_$draw
      make_plan "$name" random "$plan" --seed "$number" --candidates "$CANDIDATES"
      train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
    done
  done
done
echo "done: $OUT"
