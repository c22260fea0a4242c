"""Options that several commands share, so that they read and behave alike."""

import argparse
from pathlib import Path


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json``: for programs instead of people."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_config_dir(parser: argparse.ArgumentParser) -> None:
    """``--config-dir``: where the user's own YAMLs are."""
    parser.add_argument(
        "--config-dir", "-cd", type=Path, metavar="DIR", help="a folder with your own YAMLs, such as DIR/experiment/mine.yaml"
    )


def add_store(parser: argparse.ArgumentParser) -> None:
    """``--store``: which store to read."""
    parser.add_argument("--store", default="roofbench.db", metavar="PATH", help="the store (default: ./roofbench.db)")
