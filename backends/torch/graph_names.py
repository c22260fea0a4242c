"""Names of the device kernels that one launch runs, read from a captured graph: no profiler, nothing left attached."""

import re
import tempfile
import warnings
from pathlib import Path

from backends.launches.plan import Launchable
from backends.torch.capture import Capture

# A kernel node of the driver's DOT dump: | {ID | 0 (topoId: 3) | name\<\<\<grid,block,shared\>\>\>}
_KERNEL_NODE = re.compile(r"\{ID \| \d+[^|]*\| ([^|{}\\]+)\\<\\<\\<")
NAME_CHARACTERS = 200


def parse_names(dot: str) -> list[str]:
    """Kernel names (mangled, as the driver gives them) in the order of the dump."""
    return [name.strip()[:NAME_CHARACTERS] for name in _KERNEL_NODE.findall(dot)]


def kernel_names(kernel: Launchable, capture: Capture) -> list[str]:
    """Capture one launch and name its kernels; empty where this torch cannot keep a graph to look at."""
    try:
        graph = capture.cuda.CUDAGraph(keep_graph=True)
    except TypeError:
        return []
    with capture.into(graph):
        kernel.enqueue(0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces every dump as a warning
        path = Path(folder) / "graph.dot"
        graph.debug_dump(str(path))
        return parse_names(path.read_text()) if path.exists() else []
