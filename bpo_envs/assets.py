"""Where shipped files are: one function, for a checkout and for an installed wheel alike."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ROOTS = (_PACKAGE / "_assets", _PACKAGE.parent / "assets")  # in a wheel, in a checkout


def asset(*parts: str) -> Path:
    """Return the path of a shipped file or folder, for example ``asset("webshop", "v1")``.

    Raises:
        FileNotFoundError: nothing of that name ships with this installation.
    """
    for root in _ROOTS:
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError(
        f"no shipped file {'/'.join(parts)!r} under {' or '.join(map(str, _ROOTS))}; "
        "reinstall bpo-envs, or run from a complete checkout"
    )
