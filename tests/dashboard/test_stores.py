"""Several stores beside one another: which is which, and what is one chip in all of them."""

import shutil
from dataclasses import replace

import pytest

from dashboard.store_names import NAME_CHARACTERS, store_names
from suite.report.printable import shortened
from tests.dashboard.opened import charts, labels, opened, words
from tests.dashboard.test_pages import figure, traces
from tests.report.builders import device, result, run_info
from tests.report.stores import write_store

LONG = "Intel(R) Xeon(R) Processor"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("/a/one.db", "/a/two.db"), ("one.db", "two.db")),
        (("/a/mine/r.db", "/a/r.db", "/a/other.db"), ("mine/r.db", "a/r.db", "other.db")),
        (("/x/1/data/r.db", "/x/2/data/r.db"), ("1/…/r.db", "2/…/r.db")),
        (("/a/x/r.db", "/b/x/r.db", "/a/y/r.db"), ("a/…/r.db", "b/…/r.db", "y/r.db")),
        (("/r.db", "/a/r.db"), ("/r.db", "a/r.db")),
    ],
)
def test_stores_of_one_file_name_are_told_apart_by_the_nearest_folder_that_differs(paths, names):
    assert store_names(paths) == names


def test_names_of_stores_are_short_and_different_however_long_their_folders_are():
    paths = tuple(f"/{'x' * 40}{number}{'y' * 40}/r.db" for number in range(3))
    names = store_names(paths)
    assert len(set(names)) == 3
    assert max(map(len, names)) <= NAME_CHARACTERS + 2
    assert all("r.db" in name for name in names)


def test_a_name_that_is_cut_keeps_what_stands_in_brackets_behind_it():
    assert shortened("short (a/r.db)", 34) == "short (a/r.db)"
    cut = {shortened(f"{LONG} ({folder}/roofbench.db)", 34) for folder in ("roofbench", "user")}
    assert cut == {"Intel(... (roofbench/roofbench.db)", "Intel(R) Xe... (user/roofbench.db)"}
    assert max(map(len, cut)) <= 34
    assert shortened("no brackets at all in this name", 12) == "no bracke..."


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """One chip in three stores, two of which have one file name."""
    folder = tmp_path_factory.mktemp("three")
    paths = [folder / "mine.db", folder / "roofbench" / "roofbench.db", folder / "user" / "roofbench.db"]
    for path, share in zip(paths, (0.2, 0.3, 0.4), strict=True):
        path.parent.mkdir(exist_ok=True)
        named = device(info=replace(device().info, name=LONG))
        write_store(path, [result(share=share, device=LONG)], devices=(named,), info=run_info())
    return paths


NAMES = {f"{LONG} (mine.db)", f"{LONG} (roofbench/roofbench.db)", f"{LONG} (user/roofbench.db)"}


def test_one_chip_in_three_stores_is_one_device_and_its_rows_are_told_apart(monkeypatch, three):
    app = opened(monkeypatch, *three)
    assert "1 device in 3 stores, 6 results in 3 runs" in words(app)
    assert set(app.dataframe[0].value["Device"]) == NAMES
    assert labels(app)["Devices"] == [LONG]
    assert {label.rsplit(", ", 1)[1] for label in labels(app)["Runs"]} == {name[len(LONG) + 2 : -1] for name in NAMES}


def test_figures_and_choosers_keep_what_tells_the_stores_apart(monkeypatch, three):
    app = opened(monkeypatch, *three)
    assert len(charts(app)) == 1
    notes = {note["text"] for note in figure(app)["layout"]["annotations"]}
    assert {name for name in NAMES if name in notes} == NAMES
    assert set(labels(opened(monkeypatch, *three, page="gemm"))["Device"]) == {shortened(name, 48) for name in NAMES}
    keys = {trace["name"] for trace in traces(opened(monkeypatch, *three, page="roofline"), "key")}
    assert len(keys) == 3
    assert all(name.endswith(".db)") for name in keys)


def test_one_file_under_two_names_is_one_store(monkeypatch, three, tmp_path):
    (tmp_path / "link.db").symlink_to(three[0])
    app = opened(monkeypatch, three[0], tmp_path / "link.db")
    assert "1 device, 2 results in 1 run" in words(app)
    shutil.copy(three[0], tmp_path / "copy.db")
    assert "1 device in 2 stores" in words(opened(monkeypatch, three[0], tmp_path / "copy.db"))
