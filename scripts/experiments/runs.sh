# What the experiments have in common; sourced. They set OUT, RECIPE and EVALUATE.
readonly AAH=${AAH:-build/release/aah}

# do_once FILE COMMAND...: the command's output into FILE, unless it is there whole.
do_once() {
  local file=$1
  shift
  if [ -e "$file" ]; then return; fi
  echo "+ $*"
  "$@" >"$file.part"
  mv "$file.part" "$file"
}

# train NAME SETTING...: a run of RECIPE and its evaluation, NAME.log and NAME.json.
train() {
  local name=$1
  shift
  do_once "$OUT/$name.log" "$AAH" train "$RECIPE" out="$OUT/$name" "$@"
  # shellcheck disable=SC2086  # several words on purpose
  do_once "$OUT/$name.json" "$AAH" eval "$OUT/$name" $EVALUATE --json
}

# make_plan NAME shuffle|random PLAN OPTION...: NAME.plan at the cost of PLAN.
make_plan() {
  local name=$1
  shift
  do_once "$OUT/$name.cost" "$AAH" plan "$@" -o "$OUT/$name.plan" --overwrite
}
