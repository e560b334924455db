#!/usr/bin/env python3
"""Prints the table of an experiment as Markdown, from the evaluations in its folder.

    scripts/experiments/table.py recall runs/recall_experiment
    scripts/experiments/table.py text runs/text_experiment

Python's standard library only. Means over seeds (of draws, where there are several per seed);
"+-" is the standard deviation over seeds. Differences are paired: taken seed by seed.
"""

import json
import math
import re
import statistics
import sys
from pathlib import Path


def evaluations(folder, pattern):
    """(groups of the match, evaluation and its "run") of the files whose name `pattern` describes."""
    found = []
    for path in sorted(folder.glob("*.json")):
        match = re.fullmatch(pattern, path.stem)
        if match:
            found.append((match.groupdict(), {"run": path.stem, **json.loads(path.read_text())}))
    if not found:
        sys.exit(f"{folder}: expected evaluations (*.json) of this experiment, found none; run its script first")
    return found


def by_seed(values):
    """[(seed, value)] -> [mean of each seed]."""
    seeds = {}
    for seed, value in values:
        seeds.setdefault(seed, []).append(value)
    return [statistics.mean(seeds[seed]) for seed in sorted(seeds)]


def spread(means, digits):
    deviation = statistics.stdev(means) if len(means) > 1 else 0.0
    return f"{statistics.mean(means):.{digits}f} +- {deviation:.{digits}f}"


def markdown(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join("---" if i == 0 else "--:" for i in range(len(header))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def recall(folder):
    arms = {}
    for name, result in evaluations(folder, r"(?P<seed>\d+)\.(?P<arm>[a-z]+)(_(?P<draw>\d+))?"):
        arms.setdefault(name["arm"], []).append((name["seed"], result))
    order = ["solved", "full", "learned", "planned", "shuffled", "random", "uniform", "untrained"]
    titles = {
        "solved": "full attention, where all arms begin",
        "full": "full attention",
        "learned": "learned",
        "planned": "the learned plan, from the start",
        "shuffled": "the learned plan shuffled over heads (5 draws)",
        "random": "random plan of the same cost (5 draws)",
        "uniform": "one uniform window of the same cost",
        "untrained": "weights of the learned run, plan shuffled (5 draws), no training after it",
    }
    rows = []
    for arm in [arm for arm in order if arm in arms]:
        accuracy = by_seed([(seed, result["accuracy"]) for seed, result in arms[arm]])
        pairs = by_seed([(seed, result["visible_pair_ratio"]) for seed, result in arms[arm]])
        every = [result["accuracy"] for _, result in arms[arm]]
        rows.append([
            titles[arm], " ".join(f"{value:.4f}" for value in accuracy),
            f"{statistics.mean(accuracy):.4f}", f"{min(every):.4f} to {max(every):.4f}",
            f"{statistics.mean(pairs):.3f}"
        ])
    markdown(["arm", "accuracy by seed", "mean", "single runs", "visible pairs"], rows)


def spent_pairs(folder, names):
    """Visible pairs of the training steps of these runs, mean."""
    shares = []
    for name in names:
        log = (folder / name / "metrics.jsonl").read_text()
        shares.append(json.loads(log.splitlines()[-1])["visible_pair_ratio"])
    return statistics.mean(shares)


def uniform_loss_at(pairs, curve):
    """Loss of a uniform window that sees `pairs`, between the measured ones: linear in log pairs.

    Where the curve is convex between two of them this is a little above it.
    """
    points = sorted(curve)
    for (low, low_loss), (high, high_loss) in zip(points, points[1:]):
        if low <= pairs <= high:
            share = math.log(pairs / low) / math.log(high / low)
            return low_loss + share * (high_loss - low_loss)
    return None


def text(folder):
    runs = {}
    pattern = r"(?P<corpus>[a-z]+)\.(?P<seed>\d+)\.(?P<arm>[a-z]+(_[a-z]+)*)(_(?P<number>\d+))?"
    for name, result in evaluations(folder, pattern):
        arm = name["arm"]
        if arm == "start":
            continue
        if arm == "uniform":
            arm = f"uniform {name['number']}"
        runs.setdefault(name["corpus"], {}).setdefault(arm, []).append((name["seed"], result))
    order = ["full", "learned", "planned", "learned_fine", "planned_fine", "aah_learned",
             "shallow_freeze", "random", "shuffled"]
    for corpus, arms in runs.items():
        print(f"\n### {corpus}\n")
        widths = sorted((arm for arm in arms if arm.startswith("uniform")),
                        key=lambda arm: int(arm.split()[1]))
        full = dict((seed, result["loss"]) for seed, result in arms.get("full", []))
        curves = {}
        for arm in widths:
            for seed, result in arms[arm]:
                curves.setdefault(seed, []).append((result["visible_pair_ratio"], result["loss"]))
        for seed, loss in full.items():
            curves.setdefault(seed, []).append((1.0, loss))
        rows, notes = [], []
        for arm in [arm for arm in order if arm in arms] + widths:
            results = arms[arm]
            losses = by_seed([(seed, result["loss"]) for seed, result in results])
            pairs = by_seed([(seed, result["visible_pair_ratio"]) for seed, result in results])
            above_full = by_seed([(seed, result["loss"] - full[seed]) for seed, result in results
                                  if seed in full])
            above_curve = []
            for seed, result in results:
                at = uniform_loss_at(result["visible_pair_ratio"], curves.get(seed, []))
                if at is not None:
                    above_curve.append((seed, result["loss"] - at))
            trained = spent_pairs(folder, [result["run"] for _, result in results])
            if arm not in ("full", "random", "shuffled", *widths):
                notes.append(f"- {arm} above a uniform window of its cost, by seed: " + ", ".join(
                    f"{value:+.4f} at {share:.3f}"
                    for value, share in zip(by_seed(above_curve), pairs)))
            rows.append([
                arm, f"{statistics.mean(pairs):.3f}", f"{trained:.3f}", spread(losses, 4),
                spread(above_full, 4) if above_full else "",
                spread(by_seed(above_curve), 4) if above_curve and not arm.startswith("uniform") else ""
            ])
        markdown(["arm", "visible pairs", "pairs while trained", "test loss (nats)", "above full",
                  "above a uniform window of its cost"], rows)
        print("", *notes, sep="\n")
        for first, second in [("planned", "random"), ("planned", "shuffled"),
                              ("learned", "aah_learned"), ("learned", "shallow_freeze")]:
            if first not in arms or second not in arms:
                continue
            pairs_of_seeds = list(zip(by_seed([(s, r["loss"]) for s, r in arms[first]]),
                                      by_seed([(s, r["loss"]) for s, r in arms[second]])))
            differences = [a - b for a, b in pairs_of_seeds]
            print(f"- {first} less {second}: {spread(differences, 4)} "
                  f"({', '.join(f'{d:+.4f}' for d in differences)} by seed)")


def main():
    tables = {"recall": recall, "text": text}
    if len(sys.argv) != 3 or sys.argv[1] not in tables:
        sys.exit(__doc__)
    folder = Path(sys.argv[2])
    if not folder.is_dir():
        sys.exit(f"{folder}: expected the folder of an experiment, got none; run its script first")
    tables[sys.argv[1]](folder)


if __name__ == "__main__":
    main()
