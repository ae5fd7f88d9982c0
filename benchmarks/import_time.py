"""What `import bpo_envs` adds to `import gymnasium`, in fresh interpreters.

    python benchmarks/import_time.py [repetitions]

Prints the median seconds of each and of their difference.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

CODE = """
import time
start = time.perf_counter()
import gymnasium
middle = time.perf_counter()
import bpo_envs
print(middle - start, time.perf_counter() - middle)
"""


def main(repetitions: int = 15) -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(repetitions)
    ]
    base, extra = (statistics.median(map(float, column)) for column in zip(*runs))
    print(f"import gymnasium: {base:.3f} s; import bpo_envs on top: {extra:.4f} s (medians of {repetitions})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
