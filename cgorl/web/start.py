"""What a user may do: bring a model, start a job on it, cancel and delete; the same for pages and the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from cgorl.web import choices, folders, intake, queue, quotas
from cgorl.web.models import Job, Kind, Source
from cgorl.web.owner import Owner
from cgorl.web.refusals import RefusalError


def bring(owner: Owner, model: UploadedFile | None, data: Sequence[UploadedFile], paths: Sequence[str], zoo: str) -> Source:
    """A source made of an upload (see intake.from_upload), or of the name of a model of the zoo. Raises RefusalError."""
    quotas.check_jobs(owner)
    quotas.check_uploads(owner)
    if (model is None) == (not zoo):
        raise RefusalError(400, "give either a file (as 'model') or the name of a model of the zoo (as 'zoo')")
    return intake.from_zoo(zoo, owner) if model is None else intake.from_upload(model, data, paths, owner)


def look(source: Source) -> Job:
    """A job that says what a source is."""
    return queue.add(Kind.LOOK, source, {})


def optimize(source: Source, owner: Owner, given: Mapping[str, Any]) -> Job:
    """A job that optimizes a source. Raises RefusalError."""
    options = choices.read(given)
    with transaction.atomic():
        quotas.check_jobs(owner)
        return queue.add(Kind.OPTIMIZE, source, options)


def discard(source: Source) -> None:
    """Removes a source that nothing came of."""
    folders.remove("sources", {str(source.pk)})
    source.delete()


def delete(job: Job) -> None:
    """Removes a job and its files, and its source where no other job is left on it; where it runs, its worker ends it."""
    source, number = job.source, job.number
    with transaction.atomic():
        job.delete()
        last = not source.jobs.filter(kind=Kind.OPTIMIZE).exists()
        looks = [j.number for j in source.jobs.all()] if last else []
        pk = str(source.pk)
        if last:
            source.delete()
    for k in (number, *looks):
        folders.remove_job(k)
    if last:
        folders.remove("sources", {pk})
