"""From trees to sequences that a model can be run on.

`tree` layout: a whole tree is one sequence. Every token stands once, positions count along the token's own
path, and a token sees its path and nothing else (`policy.attention`): one forward pass serves all branches.
`rows` layout: one sequence a leaf, the prefix repeated, ordinary causal attention; the form that every other
trainer uses, and the oracle for the first.

Either way an action token is trained once: in the branch that owns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence

from ..credit import TreeCredit
from ..policy.attention import Span, Spans
from ..tree import RolloutTree


@dataclass
class Packed:
    """One sequence and its trained action tokens.

    Attributes:
        tokens, positions: long[L].
        spans: the branches, which say who sees whom; None for plain causal order.
        targets: long[A], where each trained token stands.
        predictors: long[A], the token whose hidden state predicts it.
        advantages, weights, behaviour: float32[A]; behaviour log-probs at the sampling temperature.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    spans: list[Span] | None
    targets: torch.Tensor
    predictors: torch.Tensor
    advantages: torch.Tensor
    weights: torch.Tensor
    behaviour: torch.Tensor


class _Trained:
    """Collects the trained tokens of one sequence."""

    def __init__(self, keep_zero: bool) -> None:
        self.keep_zero = keep_zero
        self.rows: list[tuple[int, int, float, float, float]] = []

    def add(
        self, start: int, first_predictor: int, logprobs: list[float], advantage: float, weight: float
    ) -> None:
        if not self.keep_zero and advantage * weight == 0:
            return
        for offset, logprob in enumerate(logprobs):
            predictor = first_predictor if offset == 0 else start + offset - 1
            self.rows.append((start + offset, predictor, float(advantage), float(weight), logprob))

    def build(self, tokens: list[int], positions: list[int], spans: list[Span] | None) -> Packed:
        columns = list(zip(*self.rows)) or [(), (), (), (), ()]
        long = [torch.tensor(column, dtype=torch.long) for column in columns[:2]]
        real = [torch.tensor(column, dtype=torch.float32) for column in columns[2:]]
        return Packed(torch.tensor(tokens), torch.tensor(positions), spans, *long, *real)


def pack_tree(tree: RolloutTree, credit: TreeCredit, keep_zero: bool) -> list[Packed]:
    """The whole tree as one sequence; empty when nothing in it is to be trained.

    `keep_zero`: also list action tokens whose advantage is 0 (a KL term needs them).
    """
    trained = _Trained(keep_zero)
    tokens: list[int] = []
    positions: list[int] = []
    starts: list[int] = []
    spans: list[Span] = []
    forks: dict[tuple[int, int], int] = {}  # (branch, depth) -> last token before the action there
    for index, branch in enumerate(tree.branches):
        start = len(tokens)
        before = None if branch.parent is None else forks[branch.parent, branch.fork]
        here = 0 if before is None else positions[before] + 1
        for offset, decision in enumerate(branch.decisions):
            tokens += decision.context
            predictor = before if offset == 0 and before is not None else len(tokens) - 1
            forks[index, branch.fork + offset] = predictor
            advantage, weight = credit.advantages[index][offset], credit.weights[index][offset]
            trained.add(len(tokens), predictor, decision.logprobs, advantage, weight)
            tokens += decision.action
        positions += range(here, here + len(tokens) - start)
        path: tuple[tuple[int, int], ...] = ()
        if before is not None and branch.parent is not None:
            parent = branch.parent
            whole = (*spans[parent].before, (parent, spans[parent].length))
            path = tuple((i, min(count, before + 1 - starts[i])) for i, count in whole if starts[i] <= before)
        starts.append(start)
        spans.append(Span(len(tokens) - start, path))
    return [trained.build(tokens, positions, spans)] if trained.rows else []


def pack_rows(tree: RolloutTree, credit: TreeCredit, keep_zero: bool) -> list[Packed]:
    """One sequence for each leaf with something to train."""
    packed = []
    for index, branch in enumerate(tree.branches):
        trained = _Trained(keep_zero)
        tokens = tree.row(index)
        here = len(tokens) - sum(len(d.context) + len(d.action) for d in branch.decisions)
        for offset, decision in enumerate(branch.decisions):
            here += len(decision.context)
            advantage, weight = credit.advantages[index][offset], credit.weights[index][offset]
            trained.add(here, here - 1, decision.logprobs, advantage, weight)
            here += len(decision.action)
        if trained.rows:
            packed.append(trained.build(tokens, list(range(len(tokens))), None))
    return packed


LAYOUTS = {"tree": pack_tree, "rows": pack_rows}


@dataclass
class Batch:
    """Sequences in one piece: trees one after the other, or rows padded on the right.

    Attributes:
        tokens, positions: long[B, L].
        spans: who sees whom; None for plain causal order.
        sequence: long[A], which sequence each trained token belongs to; `targets` and `predictors` point
            into it.
        advantages, weights, behaviour: float32[A].
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    spans: Spans | None
    sequence: torch.Tensor
    targets: torch.Tensor
    predictors: torch.Tensor
    advantages: torch.Tensor
    weights: torch.Tensor
    behaviour: torch.Tensor

    @property
    def target_ids(self) -> torch.Tensor:
        """The trained tokens: long[A]."""
        return self.tokens[self.sequence, self.targets]


def collate(sequences: Sequence[Packed], device: torch.device) -> Batch:
    """One batch of all sequences, which must be of one layout."""
    lengths = [len(s.tokens) for s in sequences]
    columns = {
        name: torch.cat([getattr(s, name) for s in sequences])
        for name in ("targets", "predictors", "advantages", "weights", "behaviour")
    }
    owner = torch.tensor([row for row, s in enumerate(sequences) for _ in s.targets], dtype=torch.long)
    spans = None
    if sequences[0].spans is None:
        tokens = pad_sequence([s.tokens for s in sequences], batch_first=True)
        # Counted on over the padding: where positions jump back, transformers takes a new sequence to begin
        # there, and makes a mask.
        positions = torch.arange(tokens.shape[1]).expand(tokens.shape)
    else:
        tokens = torch.cat([s.tokens for s in sequences])[None]
        positions = torch.cat([s.positions for s in sequences])[None]
        starts = torch.tensor([0, *lengths[:-1]]).cumsum(0)
        for name in ("targets", "predictors"):
            columns[name] = columns[name] + starts[owner]
        owner = torch.zeros_like(owner)
        spans = Spans(_joined([s.spans or [] for s in sequences]), device)
    placed = {name: column.to(device) for name, column in columns.items()}
    return Batch(tokens.to(device), positions.to(device), spans, owner.to(device), **placed)


def _joined(groups: list[list[Span]]) -> list[Span]:
    """The spans of several trees, numbered through."""
    joined: list[Span] = []
    for spans in groups:
        first = len(joined)
        joined += [Span(s.length, tuple((first + i, count) for i, count in s.before)) for s in spans]
    return joined


def micro_batches(sequences: Sequence[Packed], max_tokens: int) -> Iterator[list[Packed]]:
    """Group sequences of alike length; no padded batch exceeds `max_tokens` (a single sequence may)."""
    group: list[Packed] = []
    for sequence in sorted(sequences, key=lambda s: len(s.tokens)):
        if group and len(sequence.tokens) * (len(group) + 1) > max_tokens:
            yield group
            group = []
        group.append(sequence)
    if group:
        yield group
