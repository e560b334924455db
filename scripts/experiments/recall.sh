#!/usr/bin/env bash
# Associative recall: does the search find the head that must see far? For each seed one model is
# trained with full attention until it solves the task, and windows are learned from its weights.
# Then the learned plan, the same windows shuffled over the heads, random plans and one uniform
# window, all of one cost, start from those weights again and are trained for as many steps as full
# attention is. Shuffled plans are also tried on the learned run's weights as they are.
#
#   scripts/experiments/recall.sh [FOLDER]      default runs/recall_experiment; about half an hour
#
# Goes on where it was stopped. `table.py recall FOLDER` prints the table.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/experiments/runs.sh

OUT=${1:-runs/recall_experiment}
readonly SEEDS=(0 1 2)
readonly DRAWS=(0 1 2 3 4)
readonly UNIFORM=30 # sees 0.220 of the pairs, as much as the budget of 0.224 allows
readonly RECIPE=recipes/recall.yaml
readonly EVALUATE="--split test"

mkdir -p "$OUT"
data=$OUT/data
do_once "$OUT/data.log" "$AAH" data prepare --task recall -o "$data" --overwrite
for seed in "${SEEDS[@]}"; do
  train "$seed.solved" data="$data" seed="$seed" attention=full training.steps=2000 \
    checkpoint.every=2000
  accuracy=$(grep -o '"accuracy":[0-9.]*' "$OUT/$seed.solved.json" | cut -d: -f2)
  if ! awk "BEGIN { exit !($accuracy >= 0.98) }"; then
    echo "seed $seed: full attention has an accuracy of $accuracy, expected 0.98; train it longer" >&2
    exit 1
  fi
  arm=(data="$data" seed="$((seed + 100))" init_from="$OUT/$seed.solved" training.batch_size=16
    optimizer.learning_rate=5e-4 optimizer.warmup_steps=20 training.steps=400 checkpoint.every=400)
  train "$seed.full" "${arm[@]}" attention=full
  train "$seed.learned" "${arm[@]}" attention.learned.warmup=0 attention.learned.search=0.5
  plan=$OUT/$seed.learned/plan.json
  train "$seed.planned" "${arm[@]}" attention="{plan: $plan}"
  train "$seed.uniform" "${arm[@]}" attention="{window: $UNIFORM}"
  for draw in "${DRAWS[@]}"; do
    number=$((10 * seed + draw))
    name=$seed.shuffled_$draw
    make_plan "$name" shuffle "$plan" --seed "$number"
    train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
    evaluate "$seed.untrained_$draw" "$seed.learned" --plan "$OUT/$name.plan"
    name=$seed.random_$draw
    make_plan "$name" random "$plan" --seed "$number" --candidates 8,16,32,64,128,256
    train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
  done
done
echo "done: $OUT"
