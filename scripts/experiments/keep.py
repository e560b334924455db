#!/usr/bin/env python3
"""Copies what an experiment's tables are made of into a folder to be kept.

    scripts/experiments/keep.py runs/text_experiment docs/results/text

commands.txt: the commands, in the order of their outputs' names, as they are given in a checkout;
evaluations.jsonl: what `aah eval` printed, with its name; runs.jsonl: validation and summary records
of every run's log; plans.jsonl: the windows of every plan, learned, shuffled or random. Python's
standard library only.
"""

import json
import re
import sys
from pathlib import Path

PROGRAM = "build/release/aah"


def commands(folder):
    for path in sorted(folder.glob("*.command")):
        program, rest = path.read_text().strip().split(" ", 1)
        if not Path(program).name.startswith("aah"):
            sys.exit(f"{path}: expected a command of aah, got {program}")
        # A file of commands has lost its quotes; what had any is the last setting.
        yield f"{PROGRAM} " + re.sub(r"(attention=\{.*\})$", r"'\1'", rest)


def evaluations(folder):
    for path in sorted(folder.glob("*.json")):
        yield json.dumps({"name": path.stem, **json.loads(path.read_text())})


def runs(folder):
    for path in sorted(folder.glob("*/metrics.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if record["kind"] in ("validation", "summary"):
                yield json.dumps({"name": path.parent.name, **record})


def plans(folder):
    for path in sorted([*folder.glob("*.plan"), *folder.glob("*/plan.json")]):
        name = path.stem if path.suffix == ".plan" else path.parent.name
        yield json.dumps({"name": name, "windows": json.loads(path.read_text())["windows"]})


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    if not list(source.glob("*.command")):
        sys.exit(f"{source}: expected the folder of an experiment, found no *.command; run its script first")
    target.mkdir(parents=True, exist_ok=True)
    for name, lines in [("commands.txt", commands), ("evaluations.jsonl", evaluations),
                        ("runs.jsonl", runs), ("plans.jsonl", plans)]:
        (target / name).write_text("".join(line + "\n" for line in lines(source)))


if __name__ == "__main__":
    main()
