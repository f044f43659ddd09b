"""Background: an optimization or a training in a process of its own, watched and stopped from here.

The process gets one line of JSON on its input (what to do), says how it goes in lines of JSON, and ends with whoever began it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from cgorl.limits import Limits, confine, environment

if TYPE_CHECKING:
    from cgorl.pipeline import Outcome

Told = Callable[[Mapping[str, Any]], None]
"""Told of each message, in another thread: `kind` is folder, stage, end or error."""

STOPPED = "stopped before there was a proven result; nothing was written"
_PACE = 0.2
_WHOLE = ("prove", "compare", "save")
"""Stages that a stop does not touch: without their end there would be nothing to keep."""


class Cell(NamedTuple):
    """Where a job runs that must not harm who began it: in `folder`, with `limits`, with none of this process's variables.

    `module` is what its process runs the `main` of, for jobs of other kinds than the two here (see `main`).
    """

    folder: Path
    limits: Limits = Limits()
    module: str = "cgorl.background"


class Background:
    """A job that runs elsewhere: `Background("optimize", {"model": "bert", "seconds": 30})`, or "train" with keys of conf/train.yaml.

    `stop` ends the search (the best so far is proven and kept) or the training; `drop` ends all of it at once.
    """

    def __init__(self, kind: str, values: Mapping[str, Any], tell: Told | None = None, cell: Cell | None = None) -> None:
        """Starts it; `values` are overrides as Python objects. What is wrong with them is told, as what goes wrong later."""
        self._tell = tell
        self._ended = threading.Event()
        self._began = threading.Event()
        self._folder: Path | None = None
        self.last: Mapping[str, Any] = {}
        root = str(Path(__file__).parents[1])
        mine = dict(os.environ) if cell is None else environment(cell.folder, cell.limits.threads)
        module = "cgorl.background" if cell is None else cell.module
        self._process = subprocess.Popen(
            [sys.executable, *(["-P"] if cell else []), "-c", f"from {module} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**mine, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))},
            cwd=None if cell is None else cell.folder,
            start_new_session=True,  # an interrupt of the notebook is none of the job
        )
        limits = None if cell is None else cell.limits
        self._send(json.dumps({"kind": kind, "values": dict(values), "limits": limits}, default=str))
        self._said: list[str] = []
        self._ear = threading.Thread(target=self._hear_errors, daemon=True)
        self._ear.start()
        threading.Thread(target=self._hear, daemon=True, name="Background").start()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._ended.is_set()

    @property
    def pid(self) -> int:
        """The number of its process, which leads a group of its own."""
        return self._process.pid

    @property
    def folder(self) -> Path:
        """The run's folder; waits until there is one. Raises RuntimeError with what went wrong where there will be none."""
        self._began.wait()
        if self._folder is None:
            raise RuntimeError(str(self.last.get("text")))
        return self._folder

    def stop(self) -> None:
        """Asks it to come to an end with what it has. A proof that has begun goes on to its end."""
        self._send("stop")

    def drop(self) -> None:
        """Ends it at once; what it has not written is lost."""
        with suppress(ProcessLookupError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)  # whatever it has begun, too

    def wait(self, seconds: float | None = None) -> Mapping[str, Any]:
        """The last message, `end` or `error`; empty where it has not come within so many seconds."""
        return self.last if self._ended.wait(seconds) else {}

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # it has ended
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _hear_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said = [*self._said[-20:], line.strip()]

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # cut off, by what ended it
            self._take(message)
        code = self._process.wait()
        self._ear.join(5)
        if self.last.get("kind") not in ("end", "error"):
            self._take({"kind": "error", "text": self._why(code)})
        self._began.set()
        self._ended.set()

    def _why(self, code: int) -> str:
        if code == -signal.SIGKILL:
            return "the process was ended from outside: dropped, or there was not enough memory"
        said = next((s for s in reversed(self._said) if s), "")
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the process ended without a result ({how}{': ' + said if said else ''})"

    def _take(self, message: Mapping[str, Any]) -> None:
        if message["kind"] == "folder":
            self._folder = Path(message["folder"])
            self._began.set()
        self.last = message
        if self._tell is not None:
            self._tell(message)


class Worker:
    """The other side: runs the job, says how it goes, and listens."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._told = 0.0
        self._stage = ""
        self._folder: Path | None = None

    def say(self, kind: str, **more: Any) -> None:
        """Sends one message."""
        with self._lock:
            self._out.write(json.dumps({"kind": kind, **more}, default=str) + "\n")
            self._out.flush()

    def listen(self) -> None:
        """Heeds the first `stop`, but for a proof or a file that is being made; where the other side is gone, all ends."""
        heeded = False
        for line in sys.stdin:
            if line.strip() == "stop" and not heeded and self._stage not in _WHOLE:
                heeded = True
                os.kill(os.getpid(), signal.SIGINT)
        os._exit(1)

    def stage(self, stage: str, text: str, share: float | None = None, **more: Any) -> None:
        """Says where the job is, a few times a second at most."""
        now = time.monotonic()
        if stage != self._stage or now - self._told >= _PACE:
            self._told = now
            self._stage = stage
            self.say("stage", stage=stage, text=text, share=share, **more)

    def run(self, kind: Kind, values: Mapping[str, Any]) -> None:
        """Does what is to be done, and says what goes wrong."""
        try:
            kind(self, values)
        except KeyboardInterrupt:
            self.say("error", text=STOPPED)
        except MemoryError:
            self.say("error", text="there is not enough memory for this model")
        except Exception as e:
            text = " ".join(str(e).split())
            refused = isinstance(e, ValueError) and type(e).__module__.startswith("cgorl")
            if not refused:
                text = f"a fault of cgorl's: {type(e).__name__}: {text}"
                if self._folder is not None:
                    (self._folder / "error.txt").write_text(traceback.format_exc())
                    text += f" (details in {self._folder / 'error.txt'})"
            self.say("error", text=text, refused=refused)

    def optimize(self, values: Mapping[str, Any], picture: bool = True) -> Outcome:
        """Optimizes, and returns the outcome; the run's folder has a `picture` of how the search went, where one can be drawn."""
        from cgorl import config, jobs
        from cgorl.report.screen import pace
        from cgorl.search.searcher import Budget, Progress
        from cgorl.tracking import Tracker

        self.stage("load", "")
        cfg = config.load_config("optimize", values=values)
        graph = jobs.load(cfg)
        stem = Path(str(cfg.model)).stem
        tracker = self._begin(Tracker(cfg.runs, "optimize", stem))
        cfg = config.load_config("optimize", values={**values, "output": str(tracker.folder / f"{stem}_optimized.onnx")})
        budget = Budget(cfg.seconds, cfg.expansions, cfg.evaluations)

        def tell(stage: str, progress: Progress | float | None) -> None:
            if stage == "save":
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            if isinstance(progress, Progress):
                text, share = pace(progress, budget)
                counts = {"expansions": progress.expansions, "evaluations": progress.evaluations}
                self.stage(stage, text, share, point=[progress.seconds, progress.best_ms], counts=counts)
            else:
                self.stage(stage, "", progress)

        return jobs.optimize(cfg, graph, tell, tracker, picture=picture)

    def ended(self, done: Outcome) -> dict[str, Any]:
        """What is to be told of an optimization."""
        from cgorl.report.ledger import summary
        from cgorl.report.screen import lines

        ops = sorted(done.before_ms.keys() | done.after_ms.keys(), key=lambda o: -max(done.before_ms.get(o, 0), done.after_ms.get(o, 0)))
        operators = [[o, done.before_ms.get(o, 0.0), done.after_ms.get(o, 0.0)] for o in ops]
        files = [[str(p), p.stat().st_size] for p in done.files]
        return {"summary": summary(done), "lines": lines(done), "operators": operators, "files": files, "rewrites": len(done.trace)}

    def train(self, values: Mapping[str, Any]) -> None:
        """Trains an agent, and says what came of it."""
        from cgorl import config

        cfg = config.load_config("train", values=values)
        config.check(config.plain(cfg))
        from cgorl import training
        from cgorl.tracking import Tracker

        tracker = self._begin(Tracker(cfg.runs, "train", Path(str(cfg.model or "families")).stem))
        done = training.train(cfg, lambda u: self.stage("train", f"step {u.steps:,} of {u.total:,}", u.steps / u.total), tracker)
        self.say("end", rows=list(done.rows), stopped=done.stopped, steps=done.steps, seconds=done.seconds)

    @property
    def folder(self) -> Path | None:
        """The folder of the run, once there is one."""
        return self._folder

    def _begin(self, tracker: Any) -> Any:
        self._folder = tracker.folder.resolve()
        self.say("folder", folder=str(self._folder))
        return tracker


Kind = Callable[[Worker, Mapping[str, Any]], None]
"""A kind of job: does what the values say, and tells its worker."""

_KINDS: Mapping[str, Kind] = {
    "optimize": lambda worker, values: worker.say("end", **worker.ended(worker.optimize(values))),
    "train": Worker.train,
}


def main(more: Mapping[str, Kind] = MappingProxyType({})) -> None:
    """What the process runs; nothing but messages goes to its output, whatever prints. `more` are other kinds of jobs."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a kernel of Jupyter's hands on that it is ignored
    what = json.loads(sys.stdin.readline())
    if what["limits"] is not None:
        confine(Limits(*what["limits"]))
    worker = Worker(out)
    threading.Thread(target=worker.listen, daemon=True).start()
    worker.run({**_KINDS, **more}[what["kind"]], what["values"])
    out.close()
    os._exit(0)  # the listener waits for a line that need not come
