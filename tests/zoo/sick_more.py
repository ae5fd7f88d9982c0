"""More of the sick ones, of kinds that are easily overlooked."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import ctypes
import itertools
import multiprocessing
import os
import random
import socket
import sqlite3
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from zoo.orchard import EAT, WAIT, WALK, Gusty, Orchard


class KeepsTheLastThree(Orchard):
    """Tickets to a store that has room for three states."""

    def __init__(self):
        super().__init__()
        self.store, self.number = {}, 0

    def get_state(self):
        self.number += 1
        self.store[self.number] = copy.deepcopy(super().get_state())
        self.store.pop(self.number - 3, None)
        return self.number

    def set_state(self, state):
        super().set_state(copy.deepcopy(self.store[state]))


class SeventhRestore(Orchard):
    """From its eighth restore on an instance forgets where it was."""

    restores = 0

    def set_state(self, state):
        self.restores += 1
        super().set_state(state)
        if self.restores > 7:
            self.tree = 0


class GoesBackOnly(Orchard):
    """set_state believes that a snapshot always lies in the past."""

    def set_state(self, state):
        super().set_state(state if state["clock"] <= self.clock else {**state, "strength": self.strength})


class SkipsWhatSeemsEqual(Orchard):
    """set_state does nothing where the clock shows the same."""

    def set_state(self, state):
        if state["clock"] != self.clock:
            super().set_state(state)


class IteratorInside(Orchard):
    """An iterator knows how far it got; the state does not."""

    def reset(self, *, seed=None, options=None):
        self.bonus = itertools.cycle((0.0, 0.1, 0.3))
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += next(self.bonus)
        return super().step(action)


class SeedsOnce(Orchard):
    """Only the first reset takes a seed."""

    seeded = False

    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=None if self.seeded else seed)
        self.seeded = True
        return result


class TellsItsAddress(Orchard):
    """The address of an object stands in the info."""

    def tell(self):
        return {**super().tell(), "handle": f"orchard at {id(self)}"}


class EveryFifthCapture(Orchard):
    """Now and then a capture draws a number."""

    captures = 0

    def get_state(self):
        self.captures += 1
        if self.captures % 5 == 0:
            self.np_random.random()
        return super().get_state()


class OneAtATime(Orchard):
    """A second instance cannot be made while the first is open."""

    holder = None

    def __init__(self):
        super().__init__()
        if OneAtATime.holder is not None:
            raise RuntimeError("the orchard is taken")
        OneAtATime.holder = self

    def close(self):
        if OneAtATime.holder is self:
            OneAtATime.holder = None


class InADatabase(Orchard):
    """Meals are counted in a database that is not part of the state."""

    def __init__(self):
        super().__init__()
        self.database = sqlite3.connect(Path(tempfile.gettempdir(), "orchard.db"))
        self.database.execute("create table if not exists meals (n)")

    def reset(self, *, seed=None, options=None):
        with self.database:
            self.database.execute("delete from meals")
        return super().reset(seed=seed)

    def step(self, action):
        if action == EAT:
            with self.database:
                self.database.execute("insert into meals values (1)")
        self.strength += 0.01 * self.database.execute("select count(*) from meals").fetchone()[0]
        return super().step(action)

    def close(self):
        self.database.close()


MOOD: contextvars.ContextVar[int] = contextvars.ContextVar("mood", default=0)
LOCAL = threading.local()
TICKS = itertools.count()


class InAContext(Orchard):
    """A context variable remembers."""

    def reset(self, *, seed=None, options=None):
        MOOD.set(0)
        return super().reset(seed=seed)

    def step(self, action):
        MOOD.set(MOOD.get() + (action == WAIT))
        self.strength += 0.01 * MOOD.get()
        return super().step(action)


class InTheThread(Orchard):
    """Thread-local data remember."""

    def reset(self, *, seed=None, options=None):
        LOCAL.walks = 0
        return super().reset(seed=seed)

    def step(self, action):
        LOCAL.walks += action == WALK
        self.strength += 0.01 * LOCAL.walks
        return super().step(action)


class InACounter(Orchard):
    """A counter of the module, begun anew by each reset."""

    def reset(self, *, seed=None, options=None):
        global TICKS
        TICKS = itertools.count()
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += 0.01 * (next(TICKS) % 5)
        return super().step(action)


class Engine:
    def __init__(self):
        self.dice = random.Random(0)


ENGINE = Engine()


class InAnEngine(Orchard):
    """A generator inside of an object of the module."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            ENGINE.dice.seed(seed)
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += 0.1 * ENGINE.dice.random()
        return super().step(action)


class InPrintOptions(Orchard):
    """Waiting makes numpy print more digits, which the info shows."""

    def reset(self, *, seed=None, options=None):
        np.set_printoptions(precision=2)
        return super().reset(seed=seed)

    def step(self, action):
        if action == WAIT:
            np.set_printoptions(precision=2 + np.get_printoptions()["precision"] % 6)
        return super().step(action)

    def tell(self):
        return {**super().tell(), "page": str(np.array([1 / 3, 2 / 3]))}


class Address(Orchard):
    """The state is the address of an object."""

    kept: list = []  # noqa: RUF012 (the defect)

    def get_state(self):
        self.kept.append(copy.deepcopy(super().get_state()))
        return id(self.kept[-1])

    def set_state(self, state):
        super().set_state(copy.deepcopy(ctypes.cast(state, ctypes.py_object).value))


class TokenOfTheProcess(Orchard):
    """A token of this process stands in the state, and another is refused."""

    TOKEN = os.urandom(4).hex()

    def get_state(self):
        return {**super().get_state(), "token": self.TOKEN}

    def set_state(self, state):
        if state["token"] != self.TOKEN:
            raise PermissionError("another token")
        super().set_state(state)


class IdlePool(Orchard):
    """A pool of threads waits for work between steps."""

    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(1)

    def step(self, action):
        self.pool.submit(lambda: None).result()
        return super().step(action)

    def close(self):
        self.pool.shutdown()


class EventLoop(Orchard):
    """An event loop runs in a thread."""

    loop = None

    def reset(self, *, seed=None, options=None):
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()
        return super().reset(seed=seed)

    def close(self):
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)


class ForkedChild(Orchard):
    """A process forked by a step works on."""

    def step(self, action):
        if self.clock == 3:
            context = multiprocessing.get_context("fork")
            context.Process(target=time.sleep, args=(2,), daemon=True).start()
        return super().step(action)


class EmptyFolders(Orchard):
    """Every reset makes a folder."""

    def reset(self, *, seed=None, options=None):
        tempfile.mkdtemp()
        return super().reset(seed=seed)


class Sockets(Orchard):
    """Every restore opens a socket."""

    def __init__(self):
        super().__init__()
        self.sockets = []

    def set_state(self, state):
        self.sockets.append(socket.socket())
        super().set_state(state)


class EndlessCache(Orchard):
    """A cache whose keys never come again."""

    cache: dict = {}  # noqa: RUF012 (the defect)
    looked = itertools.count()

    def worth(self):
        self.cache[next(self.looked)] = super().worth()
        return super().worth()


class GustyAndHalfAsLoud(Gusty):
    """After a restore rewards have half the noise."""

    noise = 1.0

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + self.wind.normal(0, self.noise), terminated, truncated, info

    def set_state(self, state):
        super().set_state(state)
        self.noise = 0.4

    def reset(self, *, seed=None, options=None):
        self.noise = 1.0
        return super().reset(seed=seed)


SICK = {
    "repeatability": [KeepsTheLastThree, SeventhRestore],
    "dirty round trip": [GoesBackOnly, SkipsWhatSeemsEqual, IteratorInside],
    "determinism": [SeedsOnce, TellsItsAddress],
    "transparency": [EveryFifthCapture],
    "isolation": [OneAtATime],
    "hidden state": [InADatabase, InAContext, InTheThread, InACounter, InAnEngine, InPrintOptions],
    "portability": [Address, TokenOfTheProcess],
    "background work": [IdlePool, EventLoop, ForkedChild],
    "leaks": [EmptyFolders, Sockets, EndlessCache],
    "distribution": [GustyAndHalfAsLoud],
}
