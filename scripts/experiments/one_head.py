#!/usr/bin/env python3
"""What a model loses where one head alone is narrowed: which heads need to see how far.

    scripts/experiments/one_head.py RUN PLAN WINDOW...

For every head and WINDOW, the loss of RUN's weights (validation split, 32 stretches) with that
window for that head and no limit for the others, less their loss without any limit, in nats, as a
table. PLAN, any plan for the shape of RUN's model, says what that shape is. AAH: the program, by
default build/release/aah. Python's standard library only.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

AAH = os.environ.get("AAH", "build/release/aah")


def loss(run, plan, windows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_text(json.dumps({**plan, "windows": windows}))
        command = [AAH, "eval", run, "--plan", str(path), "--split", "validation",
                   "--stretches", "32", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr.strip())
        return json.loads(done.stdout)["loss"]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    run, widths = sys.argv[1], [int(width) for width in sys.argv[3:]]
    plan = json.loads(Path(sys.argv[2]).read_text())
    plan = {key: plan[key] for key in ("format", "version", "model", "sinks", "provenance")}
    plan["predicted"] = {}
    layers, heads = plan["model"]["layers"], plan["model"]["heads"]
    without_limit = loss(run, plan, [[0] * heads for _ in range(layers)])
    print("| layer | head | " + " | ".join(f"window {width}" for width in widths) + " |")
    print("|--:|--:|" + "--:|" * len(widths))
    for layer in range(layers):
        for head in range(heads):
            cells = []
            for width in widths:
                windows = [[0] * heads for _ in range(layers)]
                windows[layer][head] = width
                cells.append(f"{loss(run, plan, windows) - without_limit:+.4f}")
            print(f"| {layer} | {head} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
