"""Whether what a plugin made is what its contract asks for; said before anything is measured with it."""

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

from suite.jobs.job import Job
from suite.settings import JobSettings


def lacking(made: object, contract: type) -> list[str]:
    """The parts of a protocol that an object has not, and those that cannot be called where a method is due; sorted."""
    methods = {name for name, part in vars(contract).items() if isinstance(part, Callable)}  # type: ignore[arg-type]
    parts = {*getattr(contract, "__annotations__", {}), *vars(contract)}
    public = sorted(name for name in parts if not name.startswith("_"))
    return [name for name in public if not _has(made, name, is_method=name in methods)]


def wrong_with_job(job: Any, name: str) -> str:
    """What keeps an object from being the job ``name``, as the end of a sentence; empty where nothing does."""
    if missing := lacking(job, Job):
        return f"lacks {', '.join(missing)}, which suite.jobs.job.Job asks for"
    if job.name != name:
        return f"is named {job.name!r}; an entry point and its job have one name"
    if isinstance(job.method_version, bool) or not isinstance(job.method_version, int):
        return f"has method_version={job.method_version!r}, which is not a whole number"
    settings = job.settings_type
    if not (isinstance(settings, type) and issubclass(settings, JobSettings) and is_dataclass(settings)):
        return "has a settings_type that is no dataclass derived from suite.settings.JobSettings"
    return ""


def _has(made: object, name: str, is_method: bool) -> bool:
    return callable(getattr(made, name, None)) if is_method else hasattr(made, name)
