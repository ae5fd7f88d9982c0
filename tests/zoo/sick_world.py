"""Sick in what surrounds them: determinism, isolation, hidden state, portability, background work, leaks."""

from __future__ import annotations

import _thread
import datetime
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import numpy as np

from zoo.orchard import EAT, PICK, WAIT, WALK, Gusty, Orchard

# --- determinism -----------------------------------------------------------------------------------------


class OwnEntropy(Orchard):
    """Weighs apples with a generator that nobody can seed."""

    def __init__(self):
        super().__init__()
        self.scale = random.Random()

    def step(self, action):
        self.strength += self.scale.random()
        return super().step(action)


class SeedsNothing(Orchard):
    """Forgets to pass the seed on."""

    def reset(self, *, seed=None, options=None):
        return super().reset()


class HashOrder(Orchard):
    """Walks to the first of a set of names."""

    NAMES = ("ash", "oak", "elm", "fir", "yew", "box")

    def step(self, action):
        result = super().step(action)
        if action == WALK:
            self.tree = self.NAMES.index(next(iter({*self.NAMES[: 2 + self.clock % 5]})))
        return (self.observe(), *result[1:])


class HashOfText(Orchard):
    """Uses hash() of a text as if it were a number of its own."""

    def worth(self):
        return super().worth() + hash(f"tree {self.tree}") % 7


class LooksAround(Orchard):
    """What lies in the working directory counts."""

    def worth(self):
        return super().worth() + len(str(Path.cwd()))


class CountsItsLife(Orchard):
    """Gets tired over its whole life, episodes notwithstanding."""

    life = 0

    def step(self, action):
        self.life += 1
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward - 0.001 * (self.life // 20), terminated, truncated, info


class CountsItsPeers(Orchard):
    """The number of instances made so far stands in the observation."""

    made = 0

    def __init__(self):
        super().__init__()
        CountsItsPeers.made += 1
        self.number = self.made

    def observe(self):
        return super().observe() + self.number


class PaysByTheClock(Orchard):
    """Reward by the nanosecond."""

    def worth(self):
        return super().worth() + time.time_ns() % 1000


class KnowsItsProcess(Orchard):
    """The process number decides."""

    def worth(self):
        return super().worth() + os.getpid() % 1000


class WarmsUp(Orchard):
    """The first episode of an instance draws one number more."""

    ready = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if not self.ready:
            self.np_random.random()
            self.ready = True
        self.tree = int(self.np_random.integers(6))
        return self.observe(), self.tell()


class FreshNames(Orchard):
    """A new identifier for every episode stands in the info."""

    def tell(self):
        return {**super().tell(), "session": uuid.uuid4().hex}


class ImportedChance(Orchard):
    """A constant of the module that is drawn when the process starts."""

    def worth(self):
        return super().worth() + TODAYS_LUCK


TODAYS_LUCK = int.from_bytes(os.urandom(4), "little") / 2**32


class NowAndThen(Orchard):
    """One step in thirty goes wrong by chance."""

    def step(self, action):
        if int.from_bytes(os.urandom(1), "little") < 8:
            self.strength -= 0.1
        return super().step(action)


# --- isolation -------------------------------------------------------------------------------------------


class SharedBasket(Orchard):
    """All instances put their apples into one basket, which lies in the class."""

    basket: list = []  # noqa: RUF012 (the defect)

    apples = property(
        lambda self: self.basket, lambda self, value: self.basket.__setitem__(slice(None), value)
    )


class SharedGenerator(Orchard):
    """One generator for all instances; each reset seeds it, each state holds it."""

    DICE = random.Random(0)

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.DICE.seed(seed)
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += self.DICE.gauss(0, 0.1)
        return super().step(action)

    def get_state(self):
        return {**super().get_state(), "dice": self.DICE.getstate()}

    def set_state(self, state):
        super().set_state(state)
        self.DICE.setstate(state["dice"])


class SharedFile(Orchard):
    """Keeps its tree in a file that all instances share, and captures the file faithfully."""

    @property
    def path(self):
        return Path(tempfile.gettempdir(), f"tree-of-{os.getpid()}")

    def step(self, action):
        self.tree = int(self.path.read_text())
        result = super().step(action)
        self.path.write_text(str(self.tree))
        return result

    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed)
        self.path.write_text(str(self.tree))
        return result

    def get_state(self):
        return {**super().get_state(), "tree": int(self.path.read_text())}

    def set_state(self, state):
        super().set_state(state)
        self.path.write_text(str(state["tree"]))


class ClosesForAll(Orchard):
    """The first to be closed takes the ladder away from everyone."""

    ladder = True

    def __init__(self):
        super().__init__()
        ClosesForAll.ladder = True

    def reset(self, *, seed=None, options=None):
        ClosesForAll.ladder = True
        return super().reset(seed=seed)

    def step(self, action):
        if not self.ladder:
            action = WAIT
        return super().step(action)

    def close(self):
        ClosesForAll.ladder = False


class CurrentInstance(Orchard):
    """Module-level functions work on the instance that was reset or restored last."""

    def reset(self, *, seed=None, options=None):
        CURRENT[:] = [self]
        return super().reset(seed=seed)

    def step(self, action):
        CURRENT[0].strength -= 0.01
        return super().step(action)

    def set_state(self, state):
        CURRENT[:] = [self]
        super().set_state(state)


CURRENT: list = []


# --- hidden state ----------------------------------------------------------------------------------------


class InTheEnvironment(Orchard):
    """Keeps its mood in an environment variable."""

    def reset(self, *, seed=None, options=None):
        os.environ["ORCHARD_MOOD"] = "0"
        return super().reset(seed=seed)

    def step(self, action):
        mood = int(os.environ["ORCHARD_MOOD"]) + (action == EAT)
        os.environ["ORCHARD_MOOD"] = str(mood)
        self.strength += 0.1 * mood
        return super().step(action)


class GlobalRandom(Orchard):
    """Seeds the global generator of `random` at the reset and draws from it."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            random.seed(seed)
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += random.random() / 10
        return super().step(action)


class GlobalNumpy(Orchard):
    """The same with numpy."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            np.random.seed(seed)
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += np.random.normal() / 10
        return super().step(action)


class HourOfTheDay(Orchard):
    """Apples weigh more on some days."""

    def worth(self):
        return super().worth() * (1 + datetime.date.today().toordinal() % 7)


class Deadline(Orchard):
    """Half an hour after its reset the orchard closes."""

    def reset(self, *, seed=None, options=None):
        self.opened = time.monotonic()
        return super().reset(seed=seed)

    def done(self):
        return super().done() or time.monotonic() - self.opened > 1800

    def get_state(self):
        return {**super().get_state(), "opened": self.opened}

    def set_state(self, state):
        super().set_state(state)
        self.opened = state["opened"]


class InAFile(Orchard):
    """Writes what it ate into a file of its own, and reads it again."""

    def __init__(self):
        super().__init__()
        descriptor, name = tempfile.mkstemp()
        os.close(descriptor)
        self.file = Path(name)

    def reset(self, *, seed=None, options=None):
        self.file.write_text("")
        return super().reset(seed=seed)

    def step(self, action):
        if action == EAT:
            with self.file.open("a") as file:
                file.write("x")
        self.strength += 0.05 * len(self.file.read_text())
        return super().step(action)


class InTheModule(Orchard):
    """Counts in a variable of the module."""

    def reset(self, *, seed=None, options=None):
        global WALKS
        WALKS = 0
        return super().reset(seed=seed)

    def step(self, action):
        global WALKS
        WALKS += action == WALK
        self.strength += 0.01 * WALKS
        return super().step(action)


WALKS = 0


class InTheClass(Orchard):
    """Counts in an attribute of the class."""

    picks = 0

    def reset(self, *, seed=None, options=None):
        InTheClass.picks = 0
        return super().reset(seed=seed)

    def step(self, action):
        InTheClass.picks += action == PICK
        self.strength += 0.01 * self.picks
        return super().step(action)


class InADefault(Orchard):
    """A default argument remembers."""

    def reset(self, *, seed=None, options=None):
        self.remember(None)
        return super().reset(seed=seed)

    def remember(self, action, memory=[]):  # noqa: B006 (the defect)
        if action is None:
            memory.clear()
        else:
            memory.append(action)
        return len(memory)

    def step(self, action):
        self.strength += 0.01 * (self.remember(action) % 3)
        return super().step(action)


def _counter():
    count = 0

    def more(step):
        nonlocal count
        count = count + step if step else 0
        return count

    return more


class InAClosure(Orchard):
    """A function of the module remembers in its closure."""

    def reset(self, *, seed=None, options=None):
        MORE(0)
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += 0.01 * MORE(action + 1)
        return super().step(action)


MORE = _counter()


class InTheDirectory(Orchard):
    """Walking changes the working directory, and where it is counts."""

    def reset(self, *, seed=None, options=None):
        os.chdir("/")
        return super().reset(seed=seed)

    def step(self, action):
        if action == WALK:
            os.chdir("/usr" if Path.cwd() == Path("/") else "/")
        self.strength += 0.01 * len(str(Path.cwd()))
        return super().step(action)


class ReadsOn(Orchard):
    """Reads a line of an open file at each step; how far it has read is not in the state."""

    def __init__(self):
        super().__init__()
        self.lines = tempfile.TemporaryFile("w+b")  # noqa: SIM115
        self.lines.write(b"".join(b"%d\n" % (n * n % 17) for n in range(500)))

    def reset(self, *, seed=None, options=None):
        self.lines.seek(0)
        return super().reset(seed=seed)

    def step(self, action):
        self.strength += int(self.lines.readline()) / 100
        return super().step(action)

    def close(self):
        self.lines.close()


# --- portability -----------------------------------------------------------------------------------------


class TicketOfTheProcess(Orchard):
    """The state is a number of a table that this process alone has."""

    def get_state(self):
        TABLE.append(super().get_state() | {"apples": list(self.apples)})
        return len(TABLE) - 1

    def set_state(self, state):
        found = TABLE[state]
        super().set_state(found | {"apples": list(found["apples"])})


TABLE: list = []


class OnlyHere(Orchard):
    """A state of another process is refused."""

    def get_state(self):
        return {**super().get_state(), "process": os.getpid()}

    def set_state(self, state):
        if state["process"] != os.getpid():
            raise ValueError("this state was taken in another process")
        super().set_state(state)


class HashedState(Orchard):
    """The tree is saved as the hash of its name."""

    NAMES = ("ash", "oak", "elm", "fir", "yew", "box")

    def get_state(self):
        return {**super().get_state(), "tree": hash(self.NAMES[self.tree])}

    def set_state(self, state):
        hashes = [hash(name) for name in self.NAMES]
        tree = hashes.index(state["tree"]) if state["tree"] in hashes else 0
        super().set_state({**state, "tree": tree})


class FileOfTheProcess(Orchard):
    """The state names a file in a folder that differs from process to process."""

    def get_state(self):
        path = self.folder / f"{len(list(self.folder.iterdir()))}"
        path.write_text(repr(super().get_state()))
        return path.name

    def set_state(self, state):
        super().set_state(eval((self.folder / state).read_text()))

    @property
    def folder(self):
        folder = Path(tempfile.gettempdir(), f"orchard-{os.getpid()}")
        folder.mkdir(exist_ok=True)
        return folder


class NumberedWords(Orchard):
    """Trees are numbered in the order in which this process met them."""

    def get_state(self):
        name = f"tree {self.tree}"
        if name not in SEEN:
            SEEN.append(name)
        return {**super().get_state(), "tree": SEEN.index(name)}

    def set_state(self, state):
        if not SEEN:
            SEEN.append("tree 0")
        name = SEEN[min(state["tree"], len(SEEN) - 1)]
        super().set_state({**state, "tree": int(name.split()[1])})


SEEN: list[str] = []


# --- background work -------------------------------------------------------------------------------------


class GrowsByItself(Orchard):
    """A thread started by the reset runs on."""

    def reset(self, *, seed=None, options=None):
        threading.Thread(target=time.sleep, args=(5,), daemon=True, name="growth").start()
        return super().reset(seed=seed)


class RipensLater(Orchard):
    """A timer started by a step fires after it."""

    def step(self, action):
        if action == PICK:
            timer = threading.Timer(3.0, lambda: None)
            timer.daemon = True
            timer.start()
        return super().step(action)


class SendsAChild(Orchard):
    """A child process works on after the step."""

    def step(self, action):
        if action == WALK and not hasattr(self, "child"):
            self.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(5)"])
        return super().step(action)

    def close(self):
        if hasattr(self, "child"):
            self.child.kill()
            self.child.wait()


class SetsAnAlarm(Orchard):
    """An alarm is left set by a step."""

    def step(self, action):
        if action == EAT:
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, 30.0)
        return super().step(action)


class BareThread(Orchard):
    """A thread that `threading` does not know."""

    def step(self, action):
        if self.clock == 2:
            _thread.start_new_thread(time.sleep, (3,))
        return super().step(action)


class WorksAfterRestoring(Orchard):
    """Only a restore starts the thread."""

    def set_state(self, state):
        super().set_state(state)
        threading.Thread(target=time.sleep, args=(3,), daemon=True).start()


class Daemon(Orchard):
    """A grandchild that cut its ties."""

    def reset(self, *, seed=None, options=None):
        subprocess.run(["sh", "-c", "sleep 6 >/dev/null 2>&1 &"], check=True, start_new_session=True)
        return super().reset(seed=seed)


# --- distribution ----------------------------------------------------------------------------------------


class GustyAndForgetful(Gusty):
    """A restore loses the strength."""

    def set_state(self, state):
        super().set_state({**state, "strength": 10.0})


class GustyAndCalmed(Gusty):
    """After a restore the wind blows from one fixed generator."""

    def set_state(self, state):
        super().set_state(state)
        self.wind = np.random.default_rng(1)


class GustyAndStormy(Gusty):
    """After a restore the wind is three times as strong."""

    force = 1.0

    def step(self, action):
        self.strength += (self.force - 1) * float(self.wind.normal(0, 0.5))
        return super().step(action)

    def set_state(self, state):
        super().set_state(state)
        self.force = 3.0

    def reset(self, *, seed=None, options=None):
        self.force = 1.0
        return super().reset(seed=seed)


class GustyAndConfused(Gusty):
    """A restore puts the picker at a random tree."""

    def set_state(self, state):
        super().set_state({**state, "tree": int(self.wind.integers(6))})


# --- leaks -----------------------------------------------------------------------------------------------


class KeepsADiary(Orchard):
    """Every observation is kept for ever."""

    def __init__(self):
        super().__init__()
        self.diary = []

    def observe(self):
        self.diary.append(super().observe())
        return self.diary[-1].copy()


class CountsInAList(Orchard):
    """One pointer more for every episode."""

    def __init__(self):
        super().__init__()
        self.episodes = []

    def reset(self, *, seed=None, options=None):
        self.episodes.append(None)
        return super().reset(seed=seed)


class OpensFiles(Orchard):
    """Every reset opens a file that nobody closes."""

    def __init__(self):
        super().__init__()
        self.files = []

    def reset(self, *, seed=None, options=None):
        self.files.append(os.open(os.devnull, os.O_RDONLY))
        return super().reset(seed=seed)

    def close(self):
        for file in self.files:
            os.close(file)


class LeavesLitter(Orchard):
    """Every reset leaves a file in the temporary folder."""

    def reset(self, *, seed=None, options=None):
        descriptor, _ = tempfile.mkstemp()
        os.close(descriptor)
        return super().reset(seed=seed)


class GrowingLog(Orchard):
    """A log file that grows with each episode."""

    def reset(self, *, seed=None, options=None):
        with Path(tempfile.gettempdir(), "orchard.log").open("a") as log:
            log.write("an episode begins\n")
        return super().reset(seed=seed)


class RemembersPeers(Orchard):
    """A list of all instances keeps them alive."""

    peers: list = []  # noqa: RUF012 (the defect)

    def __init__(self):
        super().__init__()
        self.peers.append(self)


class GrowingArray(Orchard):
    """One array that grows; the number of objects stays the same."""

    def __init__(self):
        super().__init__()
        self.heat = np.zeros(1)

    def reset(self, *, seed=None, options=None):
        self.heat = np.append(self.heat, 0.0)
        return super().reset(seed=seed)


class KeepsSnapshots(Orchard):
    """Every captured state is kept."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def get_state(self):
        self.kept.append(super().get_state())
        return self.kept[-1]


class LeavesZombies(Orchard):
    """Children end and nobody waits for them."""

    def __init__(self):
        super().__init__()
        self.dead = []

    def reset(self, *, seed=None, options=None):
        child = os.fork()
        if child == 0:
            os._exit(0)
        self.dead.append(child)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        return super().reset(seed=seed)


SICK = {
    "determinism": [
        OwnEntropy,
        SeedsNothing,
        HashOrder,
        HashOfText,
        LooksAround,
        CountsItsLife,
        CountsItsPeers,
        PaysByTheClock,
        KnowsItsProcess,
        WarmsUp,
        FreshNames,
        ImportedChance,
        NowAndThen,
    ],
    "isolation": [SharedBasket, SharedGenerator, SharedFile, ClosesForAll, CurrentInstance],
    "hidden state": [
        InTheEnvironment,
        GlobalRandom,
        GlobalNumpy,
        HourOfTheDay,
        Deadline,
        InAFile,
        InTheModule,
        InTheClass,
        InADefault,
        InAClosure,
        InTheDirectory,
        ReadsOn,
    ],
    "portability": [TicketOfTheProcess, OnlyHere, HashedState, FileOfTheProcess, NumberedWords],
    "background work": [
        GrowsByItself,
        RipensLater,
        SendsAChild,
        SetsAnAlarm,
        BareThread,
        WorksAfterRestoring,
        Daemon,
    ],
    "distribution": [GustyAndForgetful, GustyAndCalmed, GustyAndStormy, GustyAndConfused],
    "leaks": [
        KeepsADiary,
        CountsInAList,
        OpensFiles,
        LeavesLitter,
        GrowingLog,
        RemembersPeers,
        GrowingArray,
        KeepsSnapshots,
        LeavesZombies,
    ],
}
