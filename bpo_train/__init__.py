"""Branching Policy Optimization: tree collector, credit, learner. Run it as ``python -m bpo_train``."""
