"""``python -m bpo_envs COMMAND``: what has to be done before or beside using the environments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0, or 1 with the reason on standard error."""
    import gymnasium as gym

    from bpo_envs import bench
    from bpo_envs.webshop import prepare

    parser = argparse.ArgumentParser(prog="python -m bpo_envs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "prepare",
        help="make a WebShop data folder ready: nouns of titles, search index",
        description=prepare.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    prepare.add_arguments(command)
    command.set_defaults(run=prepare.main)
    command = commands.add_parser(
        "bench",
        help="measure what snapshots and restores of an environment cost",
        description=bench.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.add_arguments(command)
    command.set_defaults(run=bench.main)

    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except (OSError, ValueError, RuntimeError, ImportError, gym.error.Error) as error:
        print(f"python -m bpo_envs {given.command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
