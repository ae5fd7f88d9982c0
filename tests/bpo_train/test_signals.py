"""Signals ask a run to stop; a second Ctrl-C insists."""

from __future__ import annotations

import os
import signal

import pytest

from bpo_train.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_by_name(number):
    with StopSignals() as stop:
        assert stop.requested == ""
        os.kill(os.getpid(), number)
        assert stop.requested == number.name


def test_a_second_interrupt_insists():
    with pytest.raises(KeyboardInterrupt), StopSignals():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_afterwards_signals_mean_what_they_meant():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopSignals():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
