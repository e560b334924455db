#!/usr/bin/env bash
# Associative recall: does the search find the head that must see far? For each seed one model is
# trained with full attention until it solves the task; every arm goes on from its weights for as
# many steps: full attention, learned windows, the learned plan shuffled over the heads, random
# plans and one uniform window of the same cost. Accuracy on the test split.
#
#   scripts/experiments/recall.sh [FOLDER]      default runs/recall_experiment; about 20 minutes
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
  train "$seed.solved" data="$data" seed="$seed" attention=full training.steps=1200 \
    checkpoint.every=1200
  arm=(data="$data" seed="$((seed + 100))" init_from="$OUT/$seed.solved" training.steps=400
    training.batch_size=16 optimizer.learning_rate=5e-4 optimizer.warmup_steps=20
    checkpoint.every=400)
  train "$seed.full" "${arm[@]}" attention=full
  train "$seed.learned" "${arm[@]}" attention.learned.warmup=0 attention.learned.search=0.5
  train "$seed.uniform" "${arm[@]}" attention="{window: $UNIFORM}"
  plan=$OUT/$seed.learned/plan.json
  for draw in "${DRAWS[@]}"; do
    name=$seed.shuffled_$draw
    make_plan "$name" shuffle "$plan" --seed "$draw"
    train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
    name=$seed.random_$draw
    make_plan "$name" random "$plan" --seed "$draw" --candidates 8,16,32,64,128,256
    train "$name" "${arm[@]}" attention="{plan: $OUT/$name.plan}"
  done
done
echo "done: $OUT"
