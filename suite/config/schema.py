"""What Hydra may compose: the structured schemas that reject a misspelt key before anything runs.

Schemas live under ``schema/`` so that they do not show up as options of the groups they belong to; a job's YAML starts with
``defaults: [/schema/job/gemm@_here_, _self_]``.  ``jobs`` and ``backends`` are open mappings whose entries are structured one
by one: an experiment may carry settings for a job that the user then leaves out, and those stay plain mappings.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hydra.core.config_store import ConfigNode, ConfigStore
from omegaconf.errors import OmegaConfBaseException

from suite.config.strict import structured
from suite.errors import UsageError
from suite.jobs.registry import JOBS, find
from suite.reason import named
from suite.settings import BackendSettings, MeasureSettings, SearchSettings, StoreSettings

GROUPS = ("job", "backend", "measure", "experiment", "store", "launcher", "hardware")
OPTIONAL_GROUPS = ("experiment", "hardware")
OFFERED_JOBS = tuple(name for name in JOBS if name != "calibration")  # plan adds calibration where a device has none


@dataclass
class RunSchema:
    """``RunConfig`` as Hydra sees it.  ``hardware`` holds the chosen sheet, of which only the name is kept."""

    jobs: dict[str, Any] = field(default_factory=dict)
    backends: dict[str, Any] = field(default_factory=dict)
    measure: MeasureSettings = field(default_factory=MeasureSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    search: SearchSettings | None = None
    hardware: Any = None
    device: Any = 0
    oversize: str = "refuse"
    max_cases: int | None = None
    max_kernel_s: float | None = None
    max_time_s: float | None = None
    wait_s: float = 0.0
    seed: int = 0
    resume: str | None = None
    note: str = ""


class JobSchemas(dict[str, Any]):
    """Hydra's folder ``schema/job``: a job is imported when the first file asks for its schema, and no other with it.

    A plugin's is in it as soon as a file asks for it by name.
    """

    def __init__(self) -> None:
        super().__init__({f"{name}.yaml": None for name in OFFERED_JOBS})

    def __contains__(self, file: object) -> bool:
        return super().__contains__(file) or (
            str(file).endswith(".yaml") and is_outside("job", str(file).removesuffix(".yaml"))
        )

    def __getitem__(self, file: str) -> Any:
        if self.get(file) is None:
            self[file] = ConfigNode(file, _structured(file.removesuffix(".yaml")), "schema/job", package=None, provider=None)
        return super().__getitem__(file)


def is_outside(kind: str, name: str) -> bool:
    """Whether a plugin offers a job or a backend of this name; ``UsageError`` where its offer is refused."""
    from suite.plugins import offers

    return offers.find(kind, name) is not None


def outside_names(kind: str) -> tuple[str, ...]:
    """The names of the jobs or backends that plugins offer."""
    from suite.plugins import offers

    return offers.names(kind)


def _structured(job: str) -> Any:
    settings_type = find(job).settings_type
    try:
        return structured(settings_type)
    except OmegaConfBaseException as error:
        raise UsageError(f"the settings of job '{job}' are no schema that Hydra takes: {named(error)}") from error


@cache
def register() -> None:
    """Put every schema into Hydra's store, once in a process."""
    store = ConfigStore.instance()
    store.store(group="schema", name="run", node=structured(RunSchema), package="_global_")
    store.store(group="schema", name="backend", node=structured(BackendSettings))
    store.store(group="schema", name="measure", node=structured(MeasureSettings))
    store.store(group="schema", name="store", node=structured(StoreSettings))
    store.repo["schema"]["job"] = JobSchemas()  # Hydra's own way in takes a schema that is there already
