"""The rollout tree: every token of one prompt's rollouts, stored once.

A `Branch` is a run of decisions. The backbone (branch 0) starts at the prompt; every other branch forks
from a decision of its parent and stores only what it adds. A `Decision` is one agent-level step t: the tokens
that entered the context since the last action, the action that was generated, and the reward it earned.
The context of a forked decision belongs to the parent, so a sibling's first decision has an empty context.
One training row is the concatenation of tokens along a path from the root to a leaf.

    backbone   [prompt a0][obs a1][obs a2]            branch 0
                         `-----[    a1'][obs a2']     branch 1, forked at decision 1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Decision:
    """One agent-level decision (s_t, a_t).

    Attributes:
        context: token ids that entered since the previous action (prompt or observation, with the prompt
            format's marks). Empty at the first decision of a forked branch: its parent holds them.
        action: generated token ids, the end-of-turn token included when it was generated.
        logprobs: behaviour log-probability of each action token, at the sampling temperature.
        entropies: policy entropy in nats at each action token, full vocabulary, known before that token is
            drawn; None where the engine cannot tell.
        text: the action as it was sent to the environment.
        reward: what the environment paid for it.
        cut: the action reached the token limit without an end of turn; it was sent as it is.
        action_entropy: entropy in nats over the environment's list of actions, as the policy scores them;
            None where it was not asked for.
    """

    context: list[int]
    action: list[int]
    logprobs: list[float]
    entropies: list[float] | None
    text: str
    reward: float = 0.0
    cut: bool = False
    action_entropy: float | None = None


@dataclass(slots=True)
class Branch:
    """A run of decisions from a fork (or from the prompt) to the end of its episode.

    Attributes:
        parent: index of the branch it forks from; None for the backbone.
        fork: the depth t of its first decision.
        decisions: its own decisions, depths fork, fork + 1, ...
        ended: why the episode ended: "terminated", "step_limit" or "context"; "" while it runs.
        score, won: the environment's last common info.
    """

    parent: int | None = None
    fork: int = 0
    decisions: list[Decision] = field(default_factory=list)
    ended: str = ""
    score: float = 0.0
    won: bool = False

    @property
    def end(self) -> int:
        """One past the depth of the last decision."""
        return self.fork + len(self.decisions)


@dataclass(slots=True)
class BranchPoint:
    """K siblings at one decision: the branch it lies on is sibling 1, `siblings` are the forked ones.

    With `fresh` siblings the branch it lies on is left out: the point was chosen knowing how it went on.
    `scheduled` is False for extra backbones that use up a budget for which no branch point was found: they
    stand at depth 0, and their number depends on the backbone.
    """

    branch: int
    depth: int
    siblings: list[int]
    scheduled: bool = True
    fresh: bool = False

    @property
    def members(self) -> list[int]:
        """Branch indices of all K siblings; the parent first, unless they are fresh ones."""
        return list(self.siblings) if self.fresh else [self.branch, *self.siblings]


@dataclass(slots=True)
class RolloutTree:
    """All rollouts of one prompt, grown under one weight version."""

    task_id: str
    branches: list[Branch] = field(default_factory=lambda: [Branch()])
    branch_points: list[BranchPoint] = field(default_factory=list)
    weight_version: int = 0

    @property
    def backbone(self) -> Branch:
        return self.branches[0]

    @property
    def returns(self) -> int:
        """Realised returns N: one per leaf."""
        return len(self.branches)

    def add_fork(self, parent: int, depth: int) -> int:
        """Open a branch that forks from decision `depth` of `parent`; return its index."""
        if not self.branches[parent].fork <= depth < self.branches[parent].end:
            raise ValueError(f"branch {parent} has no decision {depth} to fork from")
        self.branches.append(Branch(parent=parent, fork=depth))
        return len(self.branches) - 1

    def path(self, branch: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        """Yield (owning branch, depth, decision) from the root to `branch`, before depth `end`."""
        node = self.branches[branch]
        stop = node.end if end is None else min(end, node.end)
        if node.parent is not None:
            yield from self.path(node.parent, min(node.fork, stop))
        for depth in range(node.fork, stop):
            yield branch, depth, node.decisions[depth - node.fork]

    def context_of(self, branch: int) -> list[int]:
        """The tokens that its parent holds for it: the context of the decision that `branch` forks from."""
        node = self.branches[branch]
        if node.parent is None:
            return []
        for _, depth, decision in self.path(node.parent, node.fork + 1):
            if depth == node.fork:
                above = self.branches[node.parent]
                nested = above.parent is not None and depth == above.fork  # the parent holds none either
                return self.context_of(node.parent) if nested else decision.context
        raise AssertionError("a fork lies outside its parent")

    def row(self, branch: int) -> list[int]:
        """All token ids from the prompt to the end of `branch`: what the model has seen and said."""
        tokens: list[int] = []
        for owner, depth, decision in self.path(branch):
            if depth == self.branches[owner].fork and owner != 0:
                tokens += self.context_of(owner)
            tokens += decision.context + decision.action
        return tokens

    def rewards(self, branch: int, start: int) -> list[float]:
        """Rewards r_start, r_start+1, ... along the path to the end of `branch`."""
        return [decision.reward for _, depth, decision in self.path(branch) if depth >= start]

    def return_to_go(self, branch: int, start: int = 0, gamma: float = 1.0) -> float:
        """G_start along the path to the end of `branch`: sum over i >= start of gamma^(i - start) r_i."""
        total: float = 0  # stays exact where rewards are fractions
        for reward in reversed(self.rewards(branch, start)):
            total = reward + gamma * total
        return total

    def stored_tokens(self) -> int:
        """Tokens in the tree, each counted once."""
        return sum(len(d.context) + len(d.action) for b in self.branches for d in b.decisions)

    def generated_tokens(self) -> int:
        """Tokens that the policy generated."""
        return sum(len(d.action) for b in self.branches for d in b.decisions)

    def row_tokens(self) -> int:
        """Tokens that a row layout would hold: the prefix once per leaf."""
        return sum(len(self.row(i)) for i in range(len(self.branches)))

    def __str__(self) -> str:
        """The tree as text: one line a decision, forks indented under the decision they branch from."""
        lines = [
            f"tree of {self.task_id}: {self.returns} returns, {self.stored_tokens()} tokens stored once "
            f"({self.row_tokens()} as rows)"
        ]
        children: dict[tuple[int, int], list[int]] = {}
        for index, node in enumerate(self.branches):
            if node.parent is not None:
                children.setdefault((node.parent, node.fork), []).append(index)

        def draw(index: int, indent: str) -> None:
            node = self.branches[index]
            name = "backbone" if node.parent is None else f"branch {index}"
            won = ", won" if node.won else ""
            lines.append(
                f"{indent}{name}: return {self.return_to_go(index):.3f}, score {node.score:.3f}{won}, "
                f"{node.ended or 'running'}"
            )
            for offset, decision in enumerate(node.decisions):
                depth = node.fork + offset
                entropy = ""
                if decision.entropies:  # at the first token, and the largest
                    entropy = f"  H={decision.entropies[0]:.2f}..{max(decision.entropies):.2f}"
                reward = f"  r={decision.reward:+.3f}" if decision.reward else ""
                lines.append(f"{indent}  {depth:>2} {decision.text!r}{entropy}{reward}")
                for child in children.get((index, depth), ()):
                    draw(child, indent + "     | ")

        draw(0, "")
        return "\n".join(lines)
