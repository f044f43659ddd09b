"""Files of weights put where the model looks for them: a browser sends a file without its folder, which the model may name."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import onnx

from cgorl.ir.to_proto import all_tensors
from cgorl.web.names import below

_MOST = 1024
"""So many names are looked at."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def place(model: Path) -> None:
    """Gives files beside a model the further names under which it refers to them, in folders below its own and nowhere else.

    What is there already, or has no file of its name, is left to the loader, which says what is wrong; so is what cannot be read.
    """
    folder = model.parent
    beside = {p.name for p in folder.iterdir() if p.is_file() and not p.is_symlink()} - {model.name}
    if not beside:
        return
    try:
        read = onnx.load_model(model, format="protobuf", load_external_data=False)
    except Exception:  # protobuf's DecodeError has no stable home
        return
    asked = {e.value for t in all_tensors(read) for e in t.external_data if e.key == "location" and isinstance(e.value, str)}
    for location in sorted(asked)[:_MOST]:
        where = below(location)
        if where is not None and where.rpartition("/")[2] in beside and not (folder / where).exists():
            _name(folder / where.rpartition("/")[2], folder / where)


def _name(file: Path, to: Path) -> None:
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, to)
    except OSError as e:
        if e.errno in _NO_LINKS:
            shutil.copyfile(file, to)
