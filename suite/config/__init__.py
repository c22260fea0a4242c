"""From YAML and command-line overrides to one plain ``RunConfig``; the only room besides the command line that knows Hydra."""

from suite.config.compose import compose, from_composed
from suite.config.resume import from_stored, to_stored

__all__ = ["compose", "from_composed", "from_stored", "to_stored"]
