# What the experiments have in common; sourced. They set OUT, RECIPE and EVALUATE.
readonly AAH=${AAH:-build/release/aah}

# do_once FILE COMMAND...: the command's output into FILE, unless it is there whole. A file made by
# another command is refused: results of two settings would stand in one table.
do_once() {
  local file=$1
  shift
  local command="$*"
  if [ -e "$file" ]; then
    if [ "$(cat "$file.command")" != "$command" ]; then
      echo "$file: made by another command than now; choose another folder, or remove it" >&2
      echo "  then: $(cat "$file.command")" >&2
      echo "  now:  $command" >&2
      exit 1
    fi
    return
  fi
  echo "+ $command"
  "$@" >"$file.part"
  echo "$command" >"$file.command"
  mv "$file.part" "$file"
}

# train NAME SETTING...: a run of RECIPE and its evaluation, NAME.log and NAME.json.
train() {
  local name=$1
  shift
  # Killed after the run's end and before its log was put in place: the run itself says it is done.
  if [ ! -e "$OUT/$name.log" ] && grep -qs '"kind":"summary"' "$OUT/$name/metrics.jsonl"; then
    rm -r "${OUT:?}/$name"
  fi
  do_once "$OUT/$name.log" "$AAH" train "$RECIPE" out="$OUT/$name" "$@"
  evaluate "$name" "$name"
}

# evaluate NAME RUN OPTION...: NAME.json.
evaluate() {
  local name=$1 run=$2
  shift 2
  # shellcheck disable=SC2086  # several words on purpose
  do_once "$OUT/$name.json" "$AAH" eval "$OUT/$run" $EVALUATE --json "$@"
}

# make_plan NAME shuffle|random PLAN OPTION...: NAME.plan at the cost of PLAN.
make_plan() {
  local name=$1
  shift
  do_once "$OUT/$name.cost" "$AAH" plan "$@" -o "$OUT/$name.plan" --overwrite
}
