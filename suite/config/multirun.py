"""What ``hydra.main`` serves: ``-m``, ``--cfg`` and ``--info``, exactly as Hydra users know them.

Everything is composed once before it is handed over, so that a bad value ends as one line here too.
"""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from suite.config.compose import CONFIG_MODULE, CONFIG_NAME, compose_node, from_composed
from suite.config.interruption import interrupted_afterwards
from suite.config.overrides import parse, refuse_sweeps, tidy
from suite.config.own_files import own_files
from suite.config.plugin_files import plugin_files
from suite.config.schema import register
from suite.config.sweeps import refuse_uncountable
from suite.errors import UsageError, nearest
from suite.hardware.catalogue import builtin
from suite.paths import shown
from suite.settings import RunConfig

Task = Callable[[RunConfig, Sequence[str]], None]
Refuse = Callable[[RunConfig, Sequence[str]], object]

HERE = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
LISTS = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
NOTE_BYTES = 2**16  # the notes are 4 KB and the overrides of the sweep
EXPLAINED = "# what each setting means is written beside it in the files that this is composed of: {}\n"


def sweep(overrides: Sequence[str], config_dir: Path | None, task: Task, refuse: Refuse) -> None:
    """Call ``task`` with each combination of ``a,b`` values (and its overrides), through the launcher that is configured.

    ``UsageError`` before the first one when any of them cannot be composed, or when ``refuse`` raises it for one that this
    machine would run: another launcher's run elsewhere.  What ``task`` raises ends the sweep and escapes.
    """
    node = None
    for combination in _combinations(overrides):
        node = compose_node(combination, config_dir)
        _refuse_composed(node, overrides)
        config = from_composed(node, config_dir=config_dir)
        if node.hydra.launcher.get("_target_") == HERE:
            refuse(config, combination)
    if node is None:
        node = compose_node([text for text in overrides if not parse(text).is_sweep_override()], config_dir)
    _refuse_unwritable(Path(node.hydra.sweep.dir))
    raised: list[BaseException] = []

    def guarded(node: DictConfig) -> None:
        try:
            task(from_composed(node, config_dir=config_dir), list(HydraConfig.get().overrides.task))
        except BaseException as error:  # Hydra would print it and exit; the command line decides that here
            raised.append(error)
            raise

    try:
        _main(["--multirun", *tidy(overrides, config_dir)], config_dir, guarded)
    except SystemExit:
        if not raised:
            raise
    if raised:
        raise raised[0]


def _refuse_unwritable(folder: Path) -> None:
    """``UsageError`` where Hydra could not note what it sweeps, of which it would make a traceback; leaves nothing behind."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    trial = folder / f".{os.getpid()}.trial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(bytes(NOTE_BYTES))
    except OSError as error:
        raise UsageError(
            f"-m notes what it swept under {shown(folder)}, where nothing can be written ({error.strerror}); "
            "change to another folder, or give one with hydra.sweep.dir=PATH"
        ) from error
    finally:
        with suppress(OSError):
            trial.unlink(missing_ok=True)
            for each in made:
                each.rmdir()


@interrupted_afterwards()
def inspect(flags: Sequence[str], overrides: Sequence[str], config_dir: Path | None) -> None:
    """Print what ``--cfg`` or ``--info`` (with its value, in ``flags``) asks for.

    It is held until Hydra is done: a reader that left would be told as an error of its logging, once for each line.
    """
    refuse_sweeps(overrides)
    node = compose_node(overrides, config_dir)
    if "--package" in flags:
        _refuse_no_part(node, flags[1], flags[flags.index("--package") + 1])
    held = io.StringIO()
    try:
        with redirect_stdout(held):
            _main([*flags, *tidy(overrides, config_dir)], config_dir, lambda node: None)
    finally:
        sys.stdout.write(held.getvalue() + _explained(flags))


def _refuse_no_part(node: DictConfig, kind: str, package: str) -> None:
    """Hydra would print a line of its own and exit."""
    shown = [key for key in map(str, node) if kind == "all" or (key == "hydra") == (kind == "hydra")]
    top = re.split(r"[.\[]", package, maxsplit=1)[0]
    try:
        found = OmegaConf.select(node, package) if top in shown else None
    except OmegaConfBaseException:
        found = None
    if found is None and package != "_global_":
        near = f"; `roofbench run --cfg {kind}` prints all of it" if top in shown else nearest(top, shown)
        raise UsageError(f"--package {package} is no part of the configuration that has a value{near}")


def _explained(flags: Sequence[str]) -> str:
    """Where a person reads on; a comment, so that what is printed stays YAML."""
    if flags[0] != "--cfg" or flags[1] == "hydra" or "--package" in flags:
        return ""
    return EXPLAINED.format(builtin(""))


def _combinations(overrides: Sequence[str]) -> Iterator[list[str]]:
    """What Hydra's own sweeper would run; another sweeper chooses its values as it goes, and is left to do so."""
    parsed = [parse(text) for text in overrides]
    if any(override.key_or_group == "hydra/sweeper" for override in parsed):
        return
    refuse_uncountable(parsed)
    for batch in BasicSweeper.split_arguments(parsed, None):
        yield from (list(combination) for combination in batch)


def _refuse_composed(node: DictConfig, overrides: Sequence[str]) -> None:
    """What Hydra's own sweeper sweeps besides: ``hydra.sweeper.params`` of a file or an override."""
    if node.hydra.sweeper.get("_target_") != LISTS:
        return
    swept = node.hydra.sweeper.get("params") or {}
    refuse_uncountable([parse(text) for text in (*(f"{key}={value}" for key, value in swept.items()), *overrides)])


def _main(arguments: Sequence[str], config_dir: Path | None, task: Callable[[DictConfig], None]) -> None:
    register()
    with own_files(config_dir), plugin_files(True), _argv(["roofbench", *arguments]):
        hydra.main(config_path=f"pkg://{CONFIG_MODULE}", config_name=CONFIG_NAME, version_base="1.3")(task)()


@contextmanager
def _argv(arguments: list[str]) -> Iterator[None]:
    """``hydra.main`` reads ``sys.argv`` and nothing else."""
    kept = sys.argv
    sys.argv = arguments
    try:
        yield
    finally:
        sys.argv = kept
