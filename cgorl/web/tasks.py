"""The one task of the queue."""

from __future__ import annotations

from uuid import UUID

from django_tasks import TaskContext, task

from cgorl.web.models import Kind
from cgorl.web.runner import run


@task(takes_context=True, queue_name=str(Kind.OPTIMIZE))
def work(context: TaskContext, number: int) -> str:
    """Runs a job to its end; returns how it ended."""
    result = context.task_result
    return run(number, UUID(str(result.id)), result.worker_ids[-1])
