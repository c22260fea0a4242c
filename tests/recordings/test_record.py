"""The script that takes recordings still fits the backends, and what it writes can be read."""

from suite.measure.load import Settled
from tests.recordings import record
from tests.recordings.recording import Recording


def test_a_case_is_recorded_through_a_real_backend_and_read_back(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "settle", lambda *_: Settled(True, False))
    record.main(["--out", str(tmp_path), "--only", "empty-call", "--warm-up", "0", "--seconds", "10", "--most", "500"])
    [path] = tmp_path.glob("*.json")
    recording = Recording.read(path)
    assert path.stem == recording.name == "cpu-empty-call"
    assert len(recording.durations_ns) == 500
    assert recording.launches == 1
    assert recording.wall_s >= min(recording.durations_ns) * 1e-9
    assert recording.tape().resolution_s > 0
    assert "500 samples" in capsys.readouterr().out


def test_what_is_written_is_read_back_unchanged(tmp_path):
    written = Recording("cuda-x", "a device", "a case", "graph", 8, 5e-7, 2e-3, True, 0.25, {"sets": 3}, (2_000_000, 1_999_968))
    assert Recording.read(written.write(tmp_path)) == written
