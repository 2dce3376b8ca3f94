"""A trained network as a file for other programs: ONNX, torch's pt2, or safetensors."""

from __future__ import annotations

import copy
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load as load_tensors
from torch import Tensor, nn
from torch.fx import GraphModule

from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources
from rkcnn.disk import write_output, writing_to
from rkcnn.error import InputError, did_you_mean, how_to_install
from rkcnn.evaluation.weights import pack_weights
from rkcnn.run_folder import HUB_WEIGHTS, RESULT, WEIGHTS
from rkcnn.use.held_out import load_tested_images
from rkcnn.use.load import Classifier, load
from rkcnn.use.model_card import without_folders
from rkcnn.use.other_solver import describe_solver, find_ode_periods
from rkcnn.use.train import TrainingResult

FORMATS = {"onnx": ".onnx", "pt2": ".pt2", "safetensors": ".safetensors"}
"""The names of the formats, each with the suffix of its files."""
CHECKED = 256  # images that the file is compared on
MOST_DIFFERENCE = 1e-3  # of a probability, from which on a file is not written
REMEDY = "name another file with `output=...`"

Infer = Callable[[Tensor], Tensor]  # uint8 images (N, channels, height, width) -> probabilities (N, classes)


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how it compares with the network that it was made from."""

    path: Path
    to: str  # the format: onnx, pt2 or safetensors
    difference: float  # the largest of any probability between file and network
    images: int  # on which they were compared
    checked_on: str  # the name of the set that these images are of


class ProbabilityModel(nn.Module):
    """uint8 images (N, channels, height, width) -> probabilities (N, classes), with the normalisation inside."""

    shift: Tensor
    scale: Tensor

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.network = copy.deepcopy(classifier.network).cpu().float().eval().requires_grad_(False)
        mean, std = (torch.tensor(v, dtype=torch.float64).view(-1, 1, 1) for v in (classifier.mean, classifier.std))
        self.register_buffer("shift", (255 * mean).float())  # as in Images.normalisation
        self.register_buffer("scale", (1 / (255 * std)).float())

    def forward(self, images: Tensor) -> Tensor:
        return self.network((images.float() - self.shift) * self.scale).softmax(1)


def export(model: Classifier | TrainingResult | str | Path, to: str | None = None, *, output: str | Path) -> Exported:
    """Write a trained network as a file for other programs, check it, and return what was compared.

    model      what `rkcnn.load` or `rkcnn.train` returned, a run's folder, a weights file, or a name in
               `list_pretrained()`
    to         the format: onnx (needs the extra `onnx`), pt2 (torch.export.load) or safetensors (weights
               alone, for `rkcnn.load`); without it, the one that the suffix of `output` says
    output     the file to write

    An ONNX or pt2 file takes uint8 images (batch, channels, height, width), of any number, and returns probabilities
    (batch, classes). It holds the network's name, classes, size, mean, std and record as metadata. Before it is
    written, its probabilities are compared with the network's on 256 real images: those that the run was tested with
    or, where they are not on this machine, digits of mnist-mini.
    """
    if isinstance(model, TrainingResult):
        model = model.folder
    if not isinstance(output, str | Path):
        raise InputError(f"`output={output!r}` given; it is the path of the file to write, as in `output='model.onnx'`")
    path = Path(output)
    kind = _choose_format(to, path)
    classifier = model if isinstance(model, Classifier) else load(model)
    if kind != "safetensors":
        _refuse_unknown_length(classifier, kind)
    probability_model = ProbabilityModel(classifier)
    classifier = replace(classifier, network=probability_model.network)  # a copy on the CPU, in float32
    with torch.no_grad():
        content, run = _WRITERS[kind](classifier, probability_model)
        pixels, name = find_real_images(classifier)
        parts = (pixels, pixels[:1])  # many, and one
        differences = [(run(part) - classifier(part).softmax(1)).abs().max() for part in parts]
    difference = float(torch.stack(differences).max())
    if not difference <= MOST_DIFFERENCE:
        raise InputError(
            f"the {kind} file of {classifier.name} gives probabilities that differ from the network's by up to "
            f"{difference:.2g} on {len(pixels)} images of {name}, so nothing was written; export it to another format"
        )
    with writing_to(path.parent, REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_output(path, content, REMEDY)
    return Exported(path, kind, difference, len(pixels), name)


def describe_model(classifier: Classifier) -> dict[str, str]:
    """Return the metadata of an exported file: the network's name, and as JSON its classes, size, mean, std, record.

    The record is that of the run that trained it, without its epochs, its machine and the folders of this machine;
    null where there is none.
    """
    result = classifier.result
    record = None if result is None else without_folders(result).as_dict()
    for field in ("epochs", "machine") if record else ():
        record.pop(field)  # type: ignore[union-attr]
    values = {
        "classes": classifier.classes,
        "channels": classifier.channels,
        "size": classifier.size,
        "mean": classifier.mean,
        "std": classifier.std,
        "record": record,
    }
    return {"name": classifier.name, **{name: json.dumps(value) for name, value in values.items()}}


def find_real_images(classifier: Classifier) -> tuple[Tensor, str]:
    """Return uint8 images that fit the network, and the name of their set; nothing is downloaded for it."""
    try:
        if classifier.result is None:
            raise InputError("no record names the images")
        images = load_tested_images(classifier.result, Sources(offline=True))
    except InputError:  # arrays, files that have moved, a set that is not on this machine
        images = load_data_set("mnist-mini")[1]
    chosen = torch.linspace(0, len(images) - 1, min(CHECKED, len(images))).long()  # a folder is sorted by class
    pixels = images.pixels[chosen]
    if pixels.shape[1:] != (classifier.channels, *classifier.size):
        resized = F.interpolate(pixels[:, :1].float(), classifier.size, mode="bilinear").to(torch.uint8)
        pixels = resized.expand(-1, classifier.channels, -1, -1).contiguous()
    return pixels, images.name


def _choose_format(to: str | None, path: Path) -> str:
    suffixes = {suffix: name for name, suffix in FORMATS.items()}
    if not isinstance(to, str | None):
        raise InputError(f"`to={to!r}` given; formats are {', '.join(FORMATS)}")
    suffix = path.suffix.lower()
    kind = suffixes.get(suffix) if to is None else to.lower()
    if kind is None:
        raise InputError(f"{path} has none of the suffixes {', '.join(suffixes)}; say which format, as in `to=onnx`")
    if kind not in FORMATS:
        raise InputError(f"`to={to}` given{did_you_mean(kind, FORMATS)}; formats are {', '.join(FORMATS)}")
    if suffixes.get(suffix, kind) != kind:
        raise InputError(f"`to={to}` given with {path}, whose suffix says {suffixes[suffix]}; leave one of them out")
    if path.is_dir():
        raise InputError(f"{path} is a folder; {REMEDY}")
    if path.name in (WEIGHTS, HUB_WEIGHTS) and (path.parent / RESULT).exists():
        raise InputError(f"{path} holds the weights of a run, which would be overwritten; {REMEDY}")
    if kind == "onnx" and (missing := [name for name in ("onnx", "onnxscript", "onnxruntime") if not find_spec(name)]):
        raise InputError(f"ONNX needs {' and '.join(missing)}, not installed here: {how_to_install('onnx')}")
    return kind


def _refuse_unknown_length(classifier: Classifier, kind: str) -> None:
    for period in find_ode_periods(classifier.network):
        if not period.solver.exact:
            raise InputError(
                f"{classifier.name} can't be exported to {kind}: its solver ({describe_solver(period.solver)}) takes "
                "as many evaluations as each image needs, and such a file holds a fixed number; export it to "
                "safetensors, or train it with a method of equal steps, such as rk4"
            )


def _write_safetensors(classifier: Classifier, _: ProbabilityModel) -> tuple[bytes, Infer]:
    content = pack_weights(
        classifier.network.state_dict(), {**classifier.description.as_metadata(), **describe_model(classifier)}
    )

    def run(pixels: Tensor) -> Tensor:
        network = copy.deepcopy(classifier.network)
        network.load_state_dict(load_tensors(content))
        return replace(classifier, network=network)(pixels).softmax(1)

    return content, run


def _trace(classifier: Classifier, probability_model: ProbabilityModel) -> torch.export.ExportedProgram:
    """Return the network as a graph for any number of images; traced with two, since 1 would be taken as fixed.

    The graph's nodes have no stack traces, which name files of this machine and quote their lines.
    """
    example = torch.zeros(2, classifier.channels, *classifier.size, dtype=torch.uint8)
    with _without_warnings():
        any_number = ({0: torch.export.Dim("batch", min=1)},)
        program = torch.export.export(probability_model, (example,), dynamic_shapes=any_number)
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, GraphModule) else ():
            node.meta.pop("stack_trace", None)
    return program


def _write_pt2(classifier: Classifier, probability_model: ProbabilityModel) -> tuple[bytes, Infer]:
    program = _trace(classifier, probability_model)
    buffer = io.BytesIO()
    with _without_warnings():
        torch.export.save(program, buffer, extra_files={"rkcnn.json": json.dumps(describe_model(classifier))})
        run: Any = torch.export.load(io.BytesIO(buffer.getvalue())).module()
    return buffer.getvalue(), run


def _write_onnx(classifier: Classifier, probability_model: ProbabilityModel) -> tuple[bytes, Infer]:
    onnxruntime: Any = import_module("onnxruntime")  # an extra, without types
    with _without_warnings():
        program = torch.onnx.export(
            _trace(classifier, probability_model),
            dynamo=True,
            verbose=False,
            input_names=["images"],
            output_names=["probabilities"],
        )
        assert program is not None
        file = program.model_proto
    graph = file.graph
    traced = graph.input[0].type.tensor_type.shape.dim[0].dim_param  # the tracer's name, such as s34
    for value in (*graph.input, *graph.output, *graph.value_info):
        for length in value.type.tensor_type.shape.dim:
            if length.dim_param == traced:
                length.dim_param = "batch"
    for node in graph.node:
        del node.metadata_props[:]  # the exporter's own stack traces, and how torch names the node
    file.producer_name = "rkcnn"
    for name, text in describe_model(classifier).items():
        file.metadata_props.add(key=name, value=text)
    content = file.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return content, lambda pixels: torch.from_numpy(session.run(None, {"images": pixels.numpy()})[0])


_WRITERS: dict[str, Callable[[Classifier, ProbabilityModel], tuple[bytes, Infer]]] = {
    "onnx": _write_onnx,
    "pt2": _write_pt2,
    "safetensors": _write_safetensors,
}


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence torch's exporters, which warn of their own use of old functions, and of torchvision, which isn't used."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
