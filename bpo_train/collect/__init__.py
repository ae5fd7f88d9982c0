"""Collecting rollout trees: environments, schedules, budgets."""
