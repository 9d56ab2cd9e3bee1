"""Records ncu's shared-memory counters of tests/sim/bank_patterns.py on this machine's GPU:

    python tests/gpu/record_banks.py --out tests/data/banks_h200.json

Needs ncu with access to the counters. `--launch` runs the programs only (ncu calls it so).
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

PREFIX = "l1tex__data_"
METRICS = {
    "wavefronts": f"{PREFIX}pipe_lsu_wavefronts_mem_shared.sum",
    "wavefronts_read": f"{PREFIX}pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "wavefronts_written": f"{PREFIX}pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "conflicts": f"{PREFIX}bank_conflicts_pipe_lsu_mem_shared.sum",
    "conflicts_read": f"{PREFIX}bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "conflicts_written": f"{PREFIX}bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
KEYS = {metric: key for key, metric in METRICS.items()}


def launch_all() -> None:
    """Every pattern once, on made-up inputs."""
    import numpy as np

    from tests.gpu.test_records_gpu import launch
    from tests.sim.bank_patterns import PATTERNS, program

    for name in PATTERNS:
        made = program(name)
        launch(made, {p.name: np.ones(p.buffer.static_shape, p.buffer.dtype.numpy)
                      for p in made.params})  # fmt: skip


def ncu_command() -> list[str]:
    """ncu over a process that launches the patterns and nothing else of that name."""
    return [
        "ncu", "--csv", "--clock-control", "none", "--cache-control", "none",
        "--kernel-name", "regex:^bank_", "--metrics", ",".join(METRICS.values()),
        sys.executable, "tests/gpu/record_banks.py", "--launch",
    ]  # fmt: skip


def counters(text: str) -> dict[str, dict[str, int]]:
    """ncu's CSV as {pattern: {counter: value}}."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    found: dict[str, dict[str, int]] = {}
    for row in csv.DictReader(lines[start:]):
        name = row["Kernel Name"].split("(")[0].removeprefix("bank_")
        value = row["Metric Value"].replace(",", "")
        found.setdefault(name, {})[KEYS[row["Metric Name"]]] = int(float(value))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launch", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.launch:
        launch_all()
        return 0
    import torch

    done = subprocess.run(ncu_command(), capture_output=True, text=True, check=False)
    if done.returncode or '"ID"' not in done.stdout:
        sys.stderr.write(done.stdout[-3000:] + done.stderr[-3000:])
        return 1
    record = {
        "command": "python tests/gpu/record_banks.py --out tests/data/banks_h200.json",
        "device": torch.cuda.get_device_name(0),
        "metrics": METRICS,
        "patterns": counters(done.stdout),
    }
    text = json.dumps(record, indent=1) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
