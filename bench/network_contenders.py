"""The contenders of bench/network.py: one network computed by our own kernels and by others.

In: a network, positions, the number of threads, and whether gradients are asked for. Out: contenders for
bench/contest.py. Ours computes the logits of the legal moves, the others those of all labels: picking the
legal moves would be further work. They get their planes in the format they like best, untimed, and the ONNX
file is made for exactly this batch. Before its first turn, each contender's values are compared with torch's.
"""

import copy
import functools
import importlib
import importlib.util
import io
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from contest import Contender, Contest, TakeTurn, Turn, measured, plain
from torch import Tensor, nn

from keisei.config.schema import ModelConfig
from keisei.core.models import ActorCriticResTower, model_factory
from keisei.core.models.res_tower import ResidualBlock
from keisei.core.native_tower import Floats, NativeTower, usable_kernels
from keisei.runs.export import OPSET
from keisei.shogi.positions import Positions
from keisei.shogi.vector import Batch, VectorGames

BFLOAT16 = "bfloat16"  # the note of a contender that computes with fewer digits than float32
TOLERANCE = {"": 1e-3, BFLOAT16: 0.05}  # of a value, which is between -1 and 1
DIFFERENCE = "largest difference in values"

# Threads go on polling for a moment after their work, torch's for up to some milliseconds.
PAUSE_SECONDS = 0.03

SIZES = (512, 1024, 2048)  # of the square matrices that show the peak
PLIES = 200  # random moves before the last of the positions

Call = Callable[[], Any]  # computes once, and returns the values [B]


@dataclass(frozen=True)
class Work:
    """What each contender computes: values and logits of positions, and with `backward` all gradients."""

    config: ModelConfig
    network: nn.Module
    positions: Positions
    backward: bool
    threads: int

    @classmethod
    def of(cls, blocks: int, channels: int, batch: int, *, backward: bool, threads: int) -> Self:
        """Return the work for a network of this size and a batch of positions from random games."""
        config = ModelConfig(blocks=blocks, channels=channels)
        return cls(config, network_of(config), random_positions(batch), backward, threads)


def missing() -> dict[str, str]:
    """Return the peers that are not installed, with what installs them."""
    return {
        name: f"pip install {name}"
        for name in ("onnxruntime", "openvino")
        if importlib.util.find_spec(name) is None
    }


def network_of(config: ModelConfig) -> nn.Module:
    """Return a network as after some training: no layer is nearly 0."""
    network = model_factory(config, seed=1).eval()
    assert isinstance(network, ActorCriticResTower)
    torch.manual_seed(2)
    for block in network.modules():
        if isinstance(block, ResidualBlock):
            block.conv2.reset_parameters()
    network.policy.conv.reset_parameters()
    network.value.out.reset_parameters()
    return network


@functools.cache
def random_positions(count: int) -> Positions:
    """Return positions of as many random games, from the opening to the ending; a single one is between."""
    packed = []
    for number in range(count):
        batch = Batch.empty(1, planes=False)
        plies = (2 * number + 1) * PLIES // (2 * count)
        VectorGames(1, seed=number, random_plies=plies).observe(batch)
        packed.append(batch.packed)
    return Positions.of_packed(np.concatenate(packed))


def peak(seconds: float) -> Contest:
    """Return the contest of torch's product of square matrices of several sizes, on one thread."""
    torch.set_num_threads(1)
    contenders = []
    for size in SIZES:
        left, right, out = (torch.rand(size, size) for _ in range(3))
        multiply = functools.partial(torch.mm, left, right, out=out)

        def work(size: int = size, multiply: Call = multiply) -> float:
            return size**3 * _repeat(multiply, seconds)

        contenders.append(Contender(f"torch.mm, {size} × {size}", plain(work, multiply)))
    title = "peak multiplications/s, as torch's matrix product reaches it on one thread"
    return Contest("peak", title, "multiplications/s", contenders)


def contenders(work: Work, seconds: float, *, compiled: bool) -> list[Contender]:
    """Return those that can do this work, ours first; a turn takes about this many seconds."""
    torch.set_num_threads(work.threads)
    with torch.inference_mode():
        expected: Floats = work.network(torch.from_numpy(work.positions.planes))[1].numpy()

    def contender(name: str, build: Callable[[], Call], peer: str = "", note: str = "") -> Contender:
        ready = functools.partial(_open, build, expected, work, seconds, TOLERANCE[note])
        return Contender(name, ready, note, peer)

    found = [
        contender(f"native {kernels}", functools.partial(_native, work, kernels))
        for kernels in usable_kernels()
    ]
    for note in ("", BFLOAT16):
        for last in (False, True):
            name = f"torch {note or 'float32'}{', channels-last' if last else ''}"
            build = functools.partial(_torch, work, channels_last=last, bfloat16=bool(note))
            found.append(contender(name, build, "torch", note))
    if compiled:
        build = functools.partial(_torch, work, channels_last=True, compiled=True)
        found.append(contender("torch.compile float32, channels-last", build, "torch"))
    if not work.backward:
        file = functools.cache(lambda: _exported(work))
        if "onnxruntime" not in missing():
            build = functools.partial(_onnxruntime, work, file)
            found.append(contender("onnxruntime float32", build, "onnxruntime"))
        for note in ("", BFLOAT16) if "openvino" not in missing() else ():
            build = functools.partial(_openvino, work, file, bfloat16=bool(note))
            found.append(contender(f"OpenVINO {note or 'float32'}", build, "openvino", note))
    return found


def _open(
    build: Callable[[], Call],
    expected: Floats,
    work: Work,
    seconds: float,
    tolerance: float,
    _stack: ExitStack,
) -> TakeTurn:
    """Build a contender, compare its values with those expected, and warm it up."""
    call = build()
    begin = time.perf_counter()
    values = call()
    first_seconds = time.perf_counter() - begin
    found = values.detach().float().numpy() if isinstance(values, Tensor) else values
    difference = float(np.abs(found - expected).max())
    if not difference <= tolerance:  # NaN is not
        raise RuntimeError(f"values differ by {difference:.2g} from torch's, expected at most {tolerance:g}")
    if first_seconds < seconds:  # otherwise that was warm-up enough
        _repeat(call, seconds)

    def turn() -> Turn:
        if work.threads > 1:
            time.sleep(PAUSE_SECONDS)
        done = measured(lambda: len(work.positions) * _repeat(call, seconds))
        return replace(done, extra={DIFFERENCE: difference})

    return turn


def _repeat(call: Call, seconds: float) -> int:
    """Call for about so many seconds, at least once, and return how often."""
    end, calls = time.perf_counter() + seconds, 0
    while not calls or time.perf_counter() < end:
        call()
        calls += 1
    return calls


def _learn(network: nn.Module, logits: Tensor, values: Tensor) -> None:
    """Compute the gradients of a simple loss, and drop them."""
    (logits.float().square().mean() + values.float().square().mean()).backward()
    network.zero_grad()


def _native(work: Work, kernels: str) -> Call:
    tower = NativeTower(work.config, kernels=kernels, threads=work.threads)
    weights = {name: tensor.numpy() for name, tensor in work.network.state_dict().items()}
    tower.load(weights)

    def both() -> Floats:
        tower.load(weights, learning=True)  # they change with every step
        found = tower.evaluate(work.positions, keep=True)
        # Those of the same loss as _learn's.
        d_logits, d_values = (2 / out.size * out for out in (found.logits, found.values))
        tower.gradients(work.positions, found, d_logits, d_values)
        return found.values

    return both if work.backward else lambda: tower.evaluate(work.positions).values


def _torch(
    work: Work, *, channels_last: bool = False, bfloat16: bool = False, compiled: bool = False
) -> Call:
    network, planes = copy.deepcopy(work.network), torch.from_numpy(work.positions.planes)
    if channels_last:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        planes = planes.contiguous(memory_format=torch.channels_last)
    function = _compiled(network) if compiled else network

    chosen: AbstractContextManager[object] = (
        torch.autocast("cpu", torch.bfloat16) if bfloat16 else nullcontext()
    )

    def forward() -> Tensor:
        with torch.inference_mode(), chosen:
            values: Tensor = function(planes)[1]
        return values

    def both() -> Tensor:
        with chosen:
            logits, values = function(planes)
        _learn(network, logits, values)
        return values

    return both if work.backward else forward


def _compiled(network: nn.Module) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    # In this process: a contest kills the processes that a peer leaves, and these would be wanted again.
    inductor: Any = importlib.import_module("torch._inductor.config")
    inductor.compile_threads = 1
    torch.compiler.reset()  # otherwise it gives up after some networks
    return torch.compile(network, dynamic=False)


def _exported(work: Work) -> bytes:
    """Return the network as an ONNX file for batches of this size."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter calls itself legacy, see keisei/runs/export.py
        torch.onnx.export(
            copy.deepcopy(work.network),
            (torch.from_numpy(work.positions.planes),),
            file,  # type: ignore[arg-type]  # the newer exporter takes paths only
            dynamo=False,
            opset_version=OPSET,
            input_names=["planes"],
            output_names=["policy", "value"],
        )
    return file.getvalue()


def _onnxruntime(work: Work, file: Callable[[], bytes]) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = work.threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # it would slow down the next
    session = onnxruntime.InferenceSession(file(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(["policy", "value"], {"planes": work.positions.planes})[1]


def _openvino(work: Work, file: Callable[[], bytes], *, bfloat16: bool) -> Call:
    core = importlib.import_module("openvino").Core()
    settings = {
        "INFERENCE_PRECISION_HINT": "bf16" if bfloat16 else "f32",
        "INFERENCE_NUM_THREADS": work.threads,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,
    }
    request = core.compile_model(core.read_model(file()), "CPU", settings).create_infer_request()
    return lambda: request.infer([work.positions.planes], share_inputs=True, share_outputs=True)["value"]
