"""Environments broken on purpose, one defect each, and healthy ones that only look suspicious."""
