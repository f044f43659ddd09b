"""OptimizePanel: a model in, a faster one with its proof out, without a line of code."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import traitlets

from cgorl import config, zoo
from cgorl.background import Background
from cgorl.ir.graph import Graph
from cgorl.pipeline import load_model
from cgorl.report.brief import brief
from cgorl.report.metrics.chart import Chart, Line, packed, svg, thinned
from cgorl.widgets.assets import module
from cgorl.widgets.inbox import LARGEST, PIECE, Inbox, piece
from cgorl.widgets.sizes import sizes
from cgorl.widgets.trace_view import TraceView
from cgorl.widgets.widget import Widget, figure

_POINTS = 300
_NO_AGENT = ("agent_train",)
_AGENT = "agent"
CHOICES = {
    "rules": "which rewrites are allowed",
    "cost": "roofline: a price list; measured: kernels timed on this machine, and the result measured before it is called faster",
    "device": "the price list's machine (cost=roofline)",
    "search": "how rewrites are looked for",
}


class PanelError(ValueError):
    """A panel that cannot be, or that is asked for what it cannot do now; the message says why."""


class OptimizePanel(Widget):
    """Choose a model and how, start, watch, stop, download: `OptimizePanel()`, `OptimizePanel("bert", seconds=20)`.

    `model` is a name of the zoo or a path; one can also be uploaded. `choices` are `rules`, `cost`, `device`, `search` (see
    conf/), `seconds` for the search, `sizes` of open dims such as "batch=8, seq=128", or "1" for all, and for search="agent" a
    `policy` (a file that scripts/train.py wrote; "": the one that comes along). The work runs in a process of its own; each run
    keeps its folder in `runs`. From Python: `start`, `stop`, `wait`, `run` (both), `original`, `folder`, `files`,
    `film`. Raises PanelError for a choice that there is not.
    """

    _esm = module("optimize_panel.js")
    menus = traitlets.Dict().tag(sync=True)
    form = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    picture = traitlets.Bytes(b"").tag(sync=True)
    result = traitlets.Dict().tag(sync=True)
    child = traitlets.Unicode("").tag(sync=True)

    _job: Background | None = None  # there even where making the panel failed, and closing it asks

    def __init__(
        self, model: str | Path = "", runs: str | Path = "runs", zoo_parameters: Mapping[str, Any] | None = None, **choices: Any
    ) -> None:
        groups = config.groups()
        menus: dict[str, Any] = {name: [c for c in groups[name] if c not in _NO_AGENT] for name in CHOICES}
        first = config.defaults("optimize")
        form = {"model": str(model), **{name: first[name] for name in CHOICES}, "seconds": 60.0, "sizes": "", "policy": ""}
        for name, value in choices.items():
            if name not in form:
                raise PanelError(f"there is no choice '{name}'; there is {', '.join(form)}")
            if name in menus and value not in menus[name]:
                raise PanelError(f"there is no {name}={value}; there is {', '.join(menus[name])}")
            form[name] = value
        self._runs, self._zoo = str(runs), dict(zoo_parameters or {})
        self._inbox = Inbox()
        self._lock = threading.Lock()
        self._points: list[tuple[float, float]] = []
        self._film: TraceView | None = None
        menus |= {"zoo": zoo.names(), "about": CHOICES, "limits": [PIECE, LARGEST]}
        super().__init__(menus=menus, form=form, state={"at": "ready", "text": ""})
        self.on_msg(self._asked)

    def start(self) -> OptimizePanel:
        """Starts the work with what the form says; returns itself. Raises PanelError where one is running, or nothing is chosen."""
        with self._lock:
            if self._job is not None and self._job.running:
                raise PanelError("this panel is working: stop it first, or use a second panel")
            if not str(self.form["model"]).strip():
                raise PanelError("choose a model: a name of the zoo, a path, or a file to upload")
            values = self._values()
            self._points, self._film = [], None
            self.picture, self.result, self.child = b"", {}, ""
            self.state = {"at": "running", "stage": "start", "text": "", "share": None}
            self._given = values["model"], values["zoo"]
            self._job = Background("optimize", values, self._told)
        return self

    def _values(self) -> dict[str, Any]:
        form = self.form
        try:
            seconds = float(form["seconds"])
        except (TypeError, ValueError):
            seconds = -1.0
        if not 0 <= seconds < float("inf"):
            raise PanelError(f"the seconds of the search must be a number of at least 0, not '{form['seconds']}'")
        try:
            dims, unbound = sizes(str(form["sizes"]))
        except ValueError as e:
            raise PanelError(str(e)) from None
        model = str(form["model"]).strip()
        given = {name: form[name] for name in CHOICES}
        if form["cost"] == "measured":
            given["cost.table"] = str(Path(self._runs) / "costs")
        parameters = self._zoo if model in zoo.names() else {}
        if form["search"] == _AGENT:
            given |= _agents(str(form["policy"]).strip())
        return {"model": model, **given, "seconds": seconds, "dims": dims, "unbound": unbound, "zoo": parameters, "runs": self._runs}

    def stop(self) -> None:
        """Ends the search; the best so far is proven and kept."""
        if self._job is not None and self._job.running:
            self.state = {**self.state, "at": "stopping"}
            self._job.stop()

    def drop(self) -> None:
        """Ends all of it at once; nothing is kept."""
        if self._job is not None and self._job.running:
            self._job.drop()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for the end, at most so many seconds; whether it ended with a result. Raises PanelError where none was started."""
        if self._job is None:
            raise PanelError("nothing was started yet")
        return self._job.wait(seconds).get("kind") == "end"

    def run(self) -> OptimizePanel:
        """Starts the work unless it was started here or in the browser, and waits for its end; returns itself.

        Raises PanelError with what went wrong where there is no result.
        """
        if self._job is None:
            self.start()
        if not self.wait():
            raise PanelError(self.state["text"])
        return self

    @property
    def original(self) -> Graph:
        """The model that was optimized, as it was. Raises PanelError where nothing was started, ModelError where it is gone."""
        if self._job is None:
            raise PanelError("nothing was started yet")
        return load_model(*self._given)

    @property
    def folder(self) -> Path:
        """The folder of the run. Raises PanelError where there is none."""
        if not self.result:
            raise PanelError("there is no result yet")
        return Path(self.result["folder"])

    @property
    def files(self) -> list[Path]:
        """The optimized model and what lies beside it. Raises PanelError where there is no result."""
        folder = self.folder
        return [folder / name for name, _ in self.result["files"]]

    def film(self) -> TraceView:
        """The rewrites as a film. Raises PanelError where there is no result."""
        if self._film is None:
            self._film = TraceView(self.folder)
        return self._film

    def _told(self, message: Mapping[str, Any]) -> None:
        kind = message["kind"]
        if kind == "stage":
            if "point" in message:
                self._note(*message["point"])
            at = "stopping" if self.state.get("at") == "stopping" else "running"
            self.state = {"at": at, **{k: message[k] for k in ("stage", "text", "share")}}
        elif kind == "end":
            assert self._job is not None
            summary = message["summary"]
            self._points.insert(0, (0.0, summary["cost_ms"]["initial"]))
            self._note(max(summary["seconds"]["search"], self._points[-1][0]), summary["search"]["found_ms"])
            with self.hold_trait_notifications():
                self.result = brief(message, self._job.folder)
                self.state = {"at": "done", "text": ""}
            self.renew()
        elif kind == "error":
            self.state = {"at": "failed", "text": message["text"]}
            self.renew()

    def _note(self, seconds: float, best_ms: float) -> None:
        self._points.append((seconds, best_ms))
        if len(self._points) > 2 and self._points[-3][1] == self._points[-2][1] == best_ms:
            del self._points[-2]  # a level stretch needs its ends alone
        self.picture = packed(self._chart())

    def _chart(self) -> Chart:
        x, y = (np.array(v, float) for v in zip(*self._points, strict=True)) if self._points else (np.zeros(0), np.zeros(0))
        return Chart([Line("best so far", 0, *thinned(x, y, _POINTS), steps=True)], "seconds", "estimated cost of the best so far, ms")

    def _asked(self, _: Any, content: Mapping[str, Any], buffers: list[Any]) -> None:
        kind = content.get("kind")
        try:
            if kind == "start":
                self.form = {**self.form, **{k: v for k, v in content["form"].items() if k in self.form}}
                self.start()
            elif kind == "stop":
                self.stop()
            elif kind == "drop":
                self.drop()
            elif kind == "upload":
                self.send(self._inbox.take(content, bytes(buffers[0])))
            elif kind == "download":
                path, at = self.files[int(content["file"])], int(content["at"])
                self.send({"kind": "download", "file": content["file"], "at": at}, [piece(path, at)])
            elif kind == "film":
                self.child = self.film().model_id
        except (ValueError, OSError) as e:
            self.send({"kind": "why", "about": kind, "text": " ".join(str(e).split())})

    def close(self) -> None:
        """Ends the work and the views."""
        self.drop()
        super().close()

    def static(self) -> str:
        """What was chosen, and what came of it."""
        form = ", ".join(f"{k} {v}" for k, v in self.form.items() if v not in ("", None))
        parts = [f"<p>{escape(form)}</p>"]
        if len(self._points) > 1:
            parts.append(figure(svg(self._chart()), repr(self)))
        if self.result:
            rows = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in self.result["rows"])
            parts.append(f"<table><tr><th></th><th>before</th><th>after</th><th>change</th></tr>{rows}</table>")
            parts.append("<pre>" + escape("\n".join(self.result["lines"])) + "</pre>")
            parts.append(f"<p>{escape(self.result['folder'])}</p>")
        else:
            parts.append(f"<p>{escape(repr(self))}</p>")
        return "".join(parts)

    def __repr__(self) -> str:
        """One line."""
        model = str(self.form["model"]) or "no model"
        said = self.result["headline"] if self.result else self.state["text"] if self.state["at"] == "failed" else self.state["at"]
        return f"OptimizePanel({Path(model).name}: {said})"


def _agents(policy: str) -> dict[str, str]:
    """What search=agent needs besides; nothing for the policy that comes along. Raises PanelError where it cannot be had."""
    if find_spec("torch") is None or find_spec("torch_geometric") is None:
        raise PanelError("search=agent needs the agent's packages: pip install -c constraints.txt -e '.[agent]'")
    if policy and not Path(policy).is_file():
        raise PanelError(
            f"there is no policy '{policy}': it is a file that scripts/train.py has written, or nothing for the one that comes along"
        )
    return {"search.checkpoint": str(Path(policy).resolve())} if policy else {}
