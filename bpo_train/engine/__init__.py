"""Rollout engines behind one seam: see `base.Engine`."""

from .base import Completion, Engine, Request, Sampling, uniforms

__all__ = ["Completion", "Engine", "Request", "Sampling", "uniforms"]
