"""The shapes of what the API takes and gives."""

from __future__ import annotations

from typing import Any

from ninja import Field, Schema


class Why(Schema):
    """What went wrong."""

    detail: str = Field(description="one sentence for people")


class Brought(Schema):
    """What comes with a model, beside its files."""

    zoo: str = Field("", description="the name of a model of the zoo, in place of a file")
    path: list[str] = Field(
        [],
        description='where the model refers to each file of `data`, in the same order: "weights/w.bin". '
        "Without it, a file is found by its name, in whatever folder the model looks for it",
    )


class Given(Brought):
    """What a job is started with, beside a file."""

    source: str = Field("", description="the id of a model uploaded before, in place of a file")
    rules: str | None = Field(None, description="which rewrites are allowed")
    cost: str | None = Field(None, description="roofline or measured")
    device: str | None = Field(None, description="the price list's machine")
    search: str | None = Field(None, description="how rewrites are looked for")
    seconds: float | None = Field(None, description="for the search")
    expansions: int | None = Field(None, description="graphs to look at, at most")
    evaluations: int | None = Field(None, description="rewrites to price, at most")
    seed: int | None = None
    dims: str | None = Field(None, description='sizes of dynamic dims: "batch=8, seq=128", or "1" for all')
    unbound: int | None = Field(None, description="the size of every dynamic dim without one")


class SourceShort(Schema):
    """A model."""

    id: str
    name: str
    bytes: int
    zoo: bool
    files: list[str]
    url: str


class SourceOut(SourceShort):
    """A model, and what is known of it."""

    state: str | None = Field(description="of the look at it: queued, running, done, refused, failed")
    ended: bool
    reason: str
    facts: dict[str, Any] | None
    expires: str


class FileOut(Schema):
    """A file to fetch."""

    name: str
    bytes: int
    url: str


class JobOut(Schema):
    """A job."""

    id: str
    state: str = Field(description="queued, running, done, refused, failed or cancelled")
    ended: bool
    stopping: bool
    position: int = Field(description="in the queue: 1 is next, 0 is not waiting")
    stage: str
    text: str
    share: float | None
    expansions: int = Field(description="graphs that the search has looked at")
    evaluations: int = Field(description="rewrites that it has priced")
    points: list[tuple[float, float]] = Field(description="seconds and the best cost in ms")
    reason: str
    url: str
    source: SourceShort
    options: dict[str, Any]
    created: str
    started: str | None
    finished: str | None
    expires: str
    result: dict[str, Any] | None
    files: list[FileOut]


class Choices(Schema):
    """What there is to choose."""

    groups: dict[str, list[str]]
    about: dict[str, str]
    defaults: dict[str, Any]
    zoo: list[str]
    limits: dict[str, int]
