"""Collectives: what ranks exchange, by a library or by algorithms of roofbench's own, against the link between them."""

from suite.jobs.collective.job import CollectiveJob
from suite.jobs.collective.settings import CollectiveSettings
from suite.jobs.collective.task import Task

__all__ = ["CollectiveJob", "CollectiveSettings", "Task"]
