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
from typing import Any, TextIO

Told = Callable[[Mapping[str, Any]], None]
"""Told of each message, in another thread: `kind` is folder, stage, end or error."""

STOPPED = "stopped before there was a proven result; nothing was written"
_PACE = 0.2
_WHOLE = ("prove", "compare", "save")
"""Stages that a stop does not touch: without their end there would be nothing to keep."""


class Background:
    """A job that runs elsewhere: `Background("optimize", {"model": "bert", "seconds": 30})`, or "train" with keys of conf/train.yaml.

    `stop` ends the search (the best so far is proven and kept) or the training; `drop` ends all of it at once.
    """

    def __init__(self, kind: str, values: Mapping[str, Any], tell: Told | None = None) -> None:
        """Starts it; `values` are overrides as Python objects. What is wrong with them is told, as what goes wrong later."""
        self._tell = tell
        self._ended = threading.Event()
        self._began = threading.Event()
        self._folder: Path | None = None
        self.last: Mapping[str, Any] = {}
        root = str(Path(__file__).parents[1])
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from cgorl.background import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
            start_new_session=True,  # an interrupt of the notebook is none of the job
        )
        self._send(json.dumps({"kind": kind, "values": dict(values)}, default=str))
        self._said: list[str] = []
        self._ear = threading.Thread(target=self._hear_errors, daemon=True)
        self._ear.start()
        threading.Thread(target=self._hear, daemon=True, name="Background").start()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._ended.is_set()

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
            self._process.kill()

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
            self._take(json.loads(line))
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


class _Worker:
    """The other side: runs the job, says how it goes, and listens."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._told = 0.0
        self._stage = ""
        self._folder: Path | None = None

    def say(self, kind: str, **more: Any) -> None:
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
        now = time.monotonic()
        if stage != self._stage or now - self._told >= _PACE:
            self._told = now
            self._stage = stage
            self.say("stage", stage=stage, text=text, share=share, **more)

    def run(self, what: Mapping[str, Any]) -> None:
        try:
            work = {"optimize": self._optimize, "train": self._train}[what["kind"]]
            work(what["values"])
        except KeyboardInterrupt:
            self.say("error", text=STOPPED)
        except MemoryError:
            self.say("error", text="there is not enough memory for this model")
        except Exception as e:
            text = " ".join(str(e).split())
            if not (isinstance(e, ValueError) and type(e).__module__.startswith("cgorl")):
                text = f"a fault of cgorl's: {type(e).__name__}: {text}"
                if self._folder is not None:
                    (self._folder / "error.txt").write_text(traceback.format_exc())
                    text += f" (details in {self._folder / 'error.txt'})"
            self.say("error", text=text)

    def _optimize(self, values: Mapping[str, Any]) -> None:
        from cgorl import config, jobs
        from cgorl.report.ledger import summary
        from cgorl.report.screen import lines, pace
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
                self.stage(stage, text, share, point=[progress.seconds, progress.best_ms])
            else:
                self.stage(stage, "", progress)

        done = jobs.optimize(cfg, graph, tell, tracker)
        ops = sorted(done.before_ms.keys() | done.after_ms.keys(), key=lambda o: -max(done.before_ms.get(o, 0), done.after_ms.get(o, 0)))
        operators = [[o, done.before_ms.get(o, 0.0), done.after_ms.get(o, 0.0)] for o in ops]
        files = [[str(p), p.stat().st_size] for p in done.files]
        self.say("end", summary=summary(done), lines=lines(done), operators=operators, files=files, rewrites=len(done.trace))

    def _train(self, values: Mapping[str, Any]) -> None:
        from cgorl import config

        cfg = config.load_config("train", values=values)
        config.check(config.plain(cfg))
        from cgorl import training
        from cgorl.tracking import Tracker

        tracker = self._begin(Tracker(cfg.runs, "train", Path(str(cfg.model or "families")).stem))
        done = training.train(cfg, lambda u: self.stage("train", f"step {u.steps:,} of {u.total:,}", u.steps / u.total), tracker)
        self.say("end", rows=list(done.rows), stopped=done.stopped, steps=done.steps, seconds=done.seconds)

    def _begin(self, tracker: Any) -> Any:
        self._folder = tracker.folder.resolve()
        self.say("folder", folder=str(self._folder))
        return tracker


def main() -> None:
    """What the process runs; nothing but messages goes to its output, whatever prints."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a kernel of Jupyter's hands on that it is ignored
    what = json.loads(sys.stdin.readline())
    worker = _Worker(out)
    threading.Thread(target=worker.listen, daemon=True).start()
    worker.run(what)
    out.close()
    os._exit(0)  # the listener waits for a line that need not come
