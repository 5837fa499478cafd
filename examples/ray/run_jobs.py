"""Jobs of `tickwire jobs plan` on a Ray cluster: `python run_jobs.py jobs.jsonl`.

Each line goes to a worker, one a core, which has `tickwire jobs run` do it. A worker that dies is replaced, and its job given to
another: a result that is there is not made again, and one that is still being made is waited for.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys

import ray


@ray.remote(num_cpus=1, max_retries=5)
def done(job: str, program: str) -> dict[str, object]:
    """What became of a job: the line that `tickwire jobs run` prints."""
    ran = subprocess.run([program, "jobs", "run", "-"], input=job, capture_output=True, text=True, check=False)
    lines = ran.stdout.splitlines()
    if not lines:
        raise RuntimeError(f"{program} jobs run ended with {ran.returncode}: {ran.stderr.strip()}")
    outcome: dict[str, object] = json.loads(lines[-1])
    return outcome | {"worker": os.getpid()}


def main() -> int:
    """Runs them all; 1 when one failed."""
    parser = argparse.ArgumentParser(description="Runs jobs of `tickwire jobs plan` on a Ray cluster.")
    parser.add_argument("jobs", type=pathlib.Path, help="a JSON line for each job")
    parser.add_argument("--address", help="the cluster: auto, or HOST:PORT; without it, this machine alone")
    parser.add_argument("--program", default=os.environ.get("TICKWIRE", "tickwire"), help="tickwire, on every machine")
    asked = parser.parse_args()
    # Ray prints words of its own, of workers that died: they go to standard error, the outcomes alone to standard output.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    ray.init(address=asked.address, include_dashboard=False, log_to_driver=False)
    waiting = [done.remote(line, asked.program) for line in asked.jobs.read_text().splitlines() if line.strip()]
    failed = 0
    while waiting:
        (ready, *_), waiting = ray.wait(waiting)
        try:
            outcome = ray.get(ready)
        except ray.exceptions.RayError as error:
            outcome = {"state": "failed", "said": str(error)}
        failed += outcome["state"] == "failed"
        report.write(json.dumps(outcome) + "\n")
        report.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
