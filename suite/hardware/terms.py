"""Words in the remarks of sheets that a reader may not know: who is quoted there, and what parts of a chip are called.

A remark weighs sources against each other and names them briefly; the list of sources has only those that a figure rests on.
"""

import re
from collections.abc import Iterable, Iterator

GRADES = (
    "high: the maker's document, what quotes it word for word, or the device's own report; and nothing against it",
    "medium: one secondary source, a figure that follows from the maker's, or documents of the maker that differ by rounding",
    "low: others only, or sources that contradict each other",
)
TERMS = {
    "aiconfigurator": "ai-dynamo/aiconfigurator, NVIDIA's planner of inference deployments",
    "accelerator-microbenchmarks": "AI-Hypercomputer/accelerator-microbenchmarks, Google's benchmarks of its TPUs",
    "Baseten": "a host of models; its comparison of the A10 and the A10G",
    "FlashMLA": "deepseek-ai/FlashMLA, attention kernels with a report of what they reach",
    "GA": "general availability",
    "GCD": "one of the two dies of a package, each of which is a device of its own",
    "gn-kernels": "gau-nernst/gn-kernels, kernels for consumer GPUs with measurements",
    "gpumap": "lamonoai/gpumap, a table of NVIDIA GPUs kept by volunteers",
    "hmc-tech": "a site that compares graphics cards",
    "InferenceX": "SemiAnalysisAI/InferenceX-app, a dashboard of inference benchmarks with a table of accelerators",
    "jax": "the table of devices in jax-ml/jax",
    "KernelBench": "ScalingIntelligence/KernelBench, a benchmark of generated kernels with a table of GPUs",
    "LDS": "local data share, AMD's shared memory",
    "Lightning": "Lightning-AI/pytorch-lightning, whose throughput monitor has a table of peaks",
    "LNC": "logical NeuronCore configuration: how many cores one logical device has",
    "ml-engineering": "stas00/ml-engineering, a book on training large models with tables of accelerators",
    "MME": "matrix multiplication engine of a Gaudi",
    "MXU": "matrix unit of a TPU",
    "nanochat": "karpathy/nanochat, a training code with a table of peaks",
    "NeMo-RL": "NVIDIA-NeMo/RL, a training code with a table of peaks",
    "NKI": "Neuron Kernel Interface; its guide describes the hardware",
    "scaling book": "How to Scale Your Model, a book by Google's engineers",
    "SLM": "shared local memory",
    "sysrqmts.com": "a site that compares graphics cards",
    "technical.city": "a site that compares graphics cards",
    "TechPowerUp": "a data base of graphics cards",
    "themop.ru": "a news site",
    "Tom's": "Tom's Hardware, a magazine",
    "torch/_inductor": "the table of devices in PyTorch's compiler",
    "torchtitan": "pytorch/torchtitan, a training code with a table of peaks",
    "TPC": "tensor processing core of a Gaudi",
    "tritonbench": "meta-pytorch/tritonbench, benchmarks of Triton kernels with a table of GPUs",
    "WGP": "work-group processor, two compute units of an RDNA chip",
    "WMMA": "matrix instructions of an RDNA chip",
    "XCD": "one compute die of an MI300",
    "XLA": "openxla/xla, whose target files are attributes read from devices",
    "XMX": "matrix engine of an Xe core",
}
_SPELLINGS = {"scaling book": "scaling[ -]book"}


def used(remarks: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The words of ``TERMS`` that stand in any of the remarks, with what they mean."""
    text = "\n".join(remarks)
    for term, meaning in TERMS.items():
        if re.search(rf"(?<!\w){_SPELLINGS.get(term, re.escape(term))}(?!\w)", text):
            yield term, meaning
