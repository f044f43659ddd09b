"""Intake: uploaded files become a source, without being read; names are checked, and the files moved, never copied."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from cgorl.web import choices, folders
from cgorl.web.models import Source
from cgorl.web.names import LONGEST, below
from cgorl.web.owner import Owner
from cgorl.web.refusals import RefusalError


def from_zoo(name: str, owner: Owner) -> Source:
    """A model of the zoo as a source. Raises RefusalError."""
    if name not in choices.models():
        raise RefusalError(400, f"there is no model '{name[:60]}' in the zoo; there is {', '.join(choices.models())}")
    made: Source = Source.objects.create(name=name, zoo=name, **owner.fields())
    return made


def from_upload(model: UploadedFile, data: Sequence[UploadedFile], paths: Sequence[str], owner: Owner) -> Source:
    """An uploaded model, with the files of its external data, as a source. Raises RefusalError.

    `paths` says of each file of data where the model refers to it ("weights/w.bin"); empty: under its plain name.
    """
    if any(paths) and len(paths) != len(data):
        raise RefusalError(400, f"there are {len(data)} files of data and {len(paths)} paths: give one for each, in the same order")
    files = {_model_name(str(model.name)): model}
    for part, path in zip(data, paths if any(paths) else [""] * len(data), strict=True):
        name = _data_name(path or str(part.name))
        if name in files:
            raise RefusalError(400, f"two files are called '{name}': give the path of each (as 'path')")
        files[name] = part
    for name in files:
        if any(name.startswith(f"{other}/") for other in files):
            raise RefusalError(400, f"'{name}' lies in a folder that is a file")
    if len(files) > settings.MOST_FILES:
        raise RefusalError(413, f"at most {settings.MOST_FILES} files may be uploaded at once")
    size = sum(int(f.size or 0) for f in files.values())
    if size > settings.MOST_UPLOAD_BYTES:
        raise too_large()
    if not model.size:
        raise RefusalError(400, "the file is empty")
    shown = "".join(c for c in str(model.name) if c.isprintable())[-255:]
    made: Source = Source.objects.create(name=shown, bytes=size, files=list(files), **owner.fields())
    folder = folders.of_source(made)
    try:
        folder.mkdir(parents=True, mode=0o700)
        for name, part in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _move(part, folder / name)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        made.delete()
        raise RefusalError(507, "the service has no room for this file: try again later", 600) from None
    return made


def too_large() -> RefusalError:
    """The refusal of an upload above the limit."""
    return RefusalError(413, f"an upload may have {settings.MOST_UPLOAD_BYTES >> 20:,} MB at most, all files together")


def _move(part: Any, to: Path) -> None:
    os.replace(part.temporary_file_path(), to)
    to.chmod(0o600)


def _model_name(given: str) -> str:
    """A plain name that still tells which file it was: it stands in messages and in the name of the result."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", given.removesuffix(".onnx")).strip("._-")[:80]
    return f"{stem or 'model'}.onnx"


def _data_name(given: str) -> str:
    """The name as the model refers to it, below the model's own folder. Raises RefusalError."""
    name = below(given)
    if name is None:
        raise RefusalError(
            400,
            "a file of external data has a name that is not taken: a plain file name is, or the path to one below the model's folder, "
            f"of at most {LONGEST} bytes",
        )
    return name
