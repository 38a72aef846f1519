"""Bridge: the driver of a Ray cluster, in a process of its own, since a driver dies with its cluster.

Messages of the learner go to foremen, and what their sites send goes to the learner, unread. It keeps one
foreman on each node that has cores, and tells when one is gone; the learner decides who plays what. Ray's own
retries are off: a segment that is lost is played again by whoever is free.
"""

import asyncio
import contextlib
import logging
import os
import platform
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from keisei.training.cluster.access import AUTO, INLINE, INLINE_BYTES
from keisei.training.cluster.foreman import Foreman
from keisei.training.cluster.messages import ClusterKind, frame, pack, unpack
from keisei.training.parallel.parent_death import die_with_parent
from keisei.training.parallel.wire import Wire

NAMESPACE = "keisei"
_POLL_SECONDS = 0.25
_POLLS = 2  # at a time for each foreman: one notices its end while a result of the other is fetched
_LOOK_SECONDS = 0.5  # between two looks at the list of nodes
_LEAVE_SECONDS = 2.0
_LONGEST_BACKOFF = 30.0
_THREADS = _POLLS + 3  # of a foreman: polls, messages, weights


@dataclass(slots=True, eq=False)
class _Node:
    """A node and its foreman, if it has one. hire: how many foremen it has had.

    newest: weights that are waiting for older ones to arrive. outbox: messages for its site.
    """

    number: int
    ray_id: str
    host: str
    cores: int
    actor: Any = None
    hire: int = 0
    failures: int = 0
    due_at: float = 0.0
    newest: tuple[int, Any] | None = None
    is_sending: bool = False
    outbox: list[bytes] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Bridge:
    """wire: to the learner."""

    def __init__(self, wire: Wire[ClusterKind], connect: dict[str, Any], start: bytes) -> None:
        self._wire, self._connect, self._start = wire, connect, start
        self._nodes: dict[str, _Node] = {}
        self._weights: tuple[int, Any] | None = None  # version, and a message or a reference to it
        self._left = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Pass messages on until the learner is gone."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        loop.add_reader(self._wire.socket.fileno(), self._hear)
        self._in_background(self._watch_nodes())
        self._in_background(self._beat())
        self.tell(ClusterKind.CONNECTED, {"address": ray.get_runtime_context().gcs_address})
        await self._left.wait()
        # A cluster without its head does not let go of a driver, nor of threads that wait for it.
        threading.Timer(_LEAVE_SECONDS, os._exit, (1,)).start()
        for node in self._nodes.values():
            self._post(node, frame(ClusterKind.LEAVE, pack({})))
        await asyncio.sleep(0.1)

    def tell(self, kind: ClusterKind, fields: dict[str, Any]) -> None:
        """Send the learner a message."""
        self._wire.post(kind, pack(fields))
        self._send_rest_later()

    def _send_rest_later(self) -> None:
        """Send what did not fit into the socket as soon as the learner has read of it."""
        if self._wire.unsent:
            asyncio.get_running_loop().add_writer(self._wire.socket.fileno(), self._send_rest)

    def _send_rest(self) -> None:
        self._wire.flush()
        if not self._wire.unsent:
            asyncio.get_running_loop().remove_writer(self._wire.socket.fileno())

    def _in_background(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            task.get_loop().call_exception_handler(
                {"message": "the bridge failed", "exception": task.exception(), "handle": task}
            )

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End after an error in this process's own work: the learner sees that, and starts another one."""
        loop.default_exception_handler(context)
        if "handle" in context:  # not in an answer of Ray's that nobody waits for any more
            self._left.set()

    # The learner

    def _hear(self) -> None:
        try:
            messages = self._wire.receive()
        except EOFError:
            self._left.set()
            return
        self.take(messages)

    def take(self, messages: list[tuple[ClusterKind, bytes]]) -> None:
        """Do what the learner asks for."""
        for kind, body in messages:
            if kind is ClusterKind.FOR_NODE:
                fields, data = unpack(body)
                node = self._numbered(fields["node"])
                if node is not None and node.hire == fields["hire"]:
                    self._post(node, bytes(data))
            elif kind is ClusterKind.WEIGHTS:
                fields, _ = unpack(body)
                message = np.frombuffer(frame(kind, body), np.uint8)
                one_call = message.nbytes < INLINE_BYTES // 2
                self._weights = fields["version"], message if one_call else ray.put(message)
                for node in self._nodes.values():
                    self._send_weights(node)
            elif kind is ClusterKind.RELEASE:
                fields, _ = unpack(body)
                node = self._numbered(fields["node"])
                if node is not None and node.hire == fields["hire"] and node.actor is not None:
                    self._dismiss(node, fields["seconds"])
            elif kind is ClusterKind.LEAVE:
                self._left.set()

    def _numbered(self, number: int) -> _Node | None:
        return next((node for node in self._nodes.values() if node.number == number), None)

    async def _beat(self) -> None:
        """Show the learner that this process is not stopped."""
        while True:
            self.tell(ClusterKind.SIGN_OF_LIFE, {})
            await asyncio.sleep(_POLL_SECONDS)

    # Nodes

    async def _watch_nodes(self) -> None:
        """Keep a foreman on every node that is alive and has cores, as long as this driver's own is there."""
        here = ray.get_runtime_context().get_node_id()
        while True:
            # The list comes from the cluster's head, which may be gone: then nothing changes here.
            with contextlib.suppress(RayError, RuntimeError, OSError):
                all_nodes = await asyncio.to_thread(list_nodes)
                gone = {found["NodeID"] for found in all_nodes if not found["Alive"]}
                if here in gone:  # Ray has ended all foremen, and starts no others for this driver
                    self.tell(ClusterKind.REFUSED, {"text": "the raylet of this machine has ended"})
                    self._left.set()
                    return
                for found in all_nodes:
                    cores = int(found["Resources"].get("CPU", 0))
                    known = self._nodes.get(found["NodeID"])
                    if found["Alive"] and cores and known is None:
                        known = self._joined(found["NodeID"], found["NodeManagerHostname"], cores, gone)
                    free = known is not None and found["Alive"] and known.actor is None
                    if known is not None and free and time.monotonic() >= known.due_at:
                        await self._hire(known)
            await asyncio.sleep(_LOOK_SECONDS)

    def _joined(self, ray_id: str, host: str, cores: int, gone: set[str]) -> _Node:
        """Return a node that is new to Ray: with its former number if that machine was here before."""
        nodes = self._nodes.values()
        former = next((one for one in nodes if one.host == host and one.ray_id in gone), None)
        if former is None or former.actor is not None:
            self._nodes[ray_id] = _Node(len(self._nodes), ray_id, host, cores)
        else:
            del self._nodes[former.ray_id]
            self._nodes[ray_id] = _Node(former.number, ray_id, host, cores, hire=former.hire)
        return self._nodes[ray_id]

    async def _hire(self, node: _Node) -> None:
        node.hire += 1
        start = {"node": node.number, "hire": node.hire, "workers": node.cores}
        message = frame(ClusterKind.START, pack({**unpack(self._start)[0], **start}))
        about = {
            "ray_id": node.ray_id,
            "workers": node.cores,
            "learner": platform.node(),
            "since": time.time(),
        }
        kind: Any = ray.remote(Foreman)
        kind = kind.options(
            name=f"foreman-{platform.node()}-{os.getpid()}-{node.number}-{node.hire}",
            num_cpus=node.cores,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_THREADS,
            runtime_env={"env_vars": INLINE},
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.ray_id, soft=False),
        )
        patience = self._connect["start_seconds"], self._connect["timeout"]
        node.actor = await asyncio.to_thread(kind.remote, message, about, *patience)
        node.is_sending, node.newest = False, None
        told = {"node": node.number, "hire": node.hire, "host": node.host, "cores": node.cores}
        self.tell(ClusterKind.HIRED, told)
        node.tasks = [self._in_background(self._listen(node, node.actor)) for _ in range(_POLLS)]
        if self._weights is not None:
            self._send_weights(node)

    async def _listen(self, node: _Node, actor: Any) -> None:
        """Pass on what a node's site sends, until the foreman is gone or silent."""
        limit, silent = self._connect["start_seconds"], "did not start within {:g} s: are its cores in use?"
        while True:
            try:
                answer = await asyncio.wait_for(_result(actor.poll.remote(_POLL_SECONDS)), limit)
            except TimeoutError:
                self._lose(node, actor, "hung", silent.format(limit))
                return
            except RayError as error:
                self._lose(node, actor, "died", _cause(error))
                return
            limit, silent = self._connect["timeout"], "gave no sign of life for {:g} s"
            if len(answer):
                node.failures = 0
                self._wire.post_raw(answer.data)
                self._send_rest_later()

    def _lose(self, node: _Node, actor: Any, reason: str, text: str) -> None:
        """Tell the learner that a foreman is gone, unless it knows, and have another one later."""
        if node.actor is not actor:
            return
        told = {"node": node.number, "hire": node.hire, "reason": reason, "text": text}
        self.tell(ClusterKind.LOST, told)
        node.failures += 1
        self._dismiss(node, min(_LONGEST_BACKOFF, self._connect["backoff"] * 2.0 ** (node.failures - 1)))

    def _dismiss(self, node: _Node, seconds: float) -> None:
        """End a node's foreman, and do not hire another one for so many seconds."""
        actor, node.actor = node.actor, None
        node.due_at = time.monotonic() + seconds
        for task in node.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        node.tasks = []
        self._in_background(asyncio.to_thread(_kill, actor))

    # Messages to a site

    def _post(self, node: _Node, data: bytes) -> None:
        """Send a node's site a message, with what else comes for it now: a call costs a millisecond."""
        if not node.outbox:
            asyncio.get_running_loop().call_soon(self._send_outbox, node)
        node.outbox.append(data)

    def _send_outbox(self, node: _Node) -> None:
        data, node.outbox = b"".join(node.outbox), []
        if node.actor is not None:
            self._in_background(self._arrive(node, node.actor, node.actor.post, data))

    async def _arrive(self, node: _Node, actor: Any, method: Any, data: Any) -> None:
        """Have a foreman take something; it is lost if it does not: nobody would send that again."""
        limit = self._connect["start_seconds"] + self._connect["timeout"]
        try:
            await asyncio.wait_for(_result(method.remote(data)), limit)
        except TimeoutError:
            self._lose(node, actor, "hung", f"took no message for {limit:g} s")
        except RayError as error:
            self._lose(node, actor, "died", _cause(error))

    def _send_weights(self, node: _Node) -> None:
        """Send a node the newest weights, at once or when older ones have arrived there."""
        if node.actor is None:
            return
        node.newest = self._weights
        if not node.is_sending:
            self._in_background(self._push(node, node.actor))

    async def _push(self, node: _Node, actor: Any) -> None:
        node.is_sending = True
        while node.newest is not None and node.actor is actor:
            (version, message), node.newest = node.newest, None
            await self._arrive(node, actor, actor.weights, message)
            if node.actor is actor:
                arrived = {"node": node.number, "hire": node.hire, "version": version}
                self.tell(ClusterKind.ARRIVED, arrived)
        if node.actor is actor:
            node.is_sending = False


def list_nodes() -> list[dict[str, Any]]:
    """Return the nodes of the cluster, those that are gone included."""
    found: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return found


async def _result(reference: Any) -> Any:
    return await asyncio.wrap_future(reference.future())


def _kill(actor: Any) -> None:
    with contextlib.suppress(RayError, ValueError):
        ray.kill(actor)


def _cause(error: RayError) -> str:
    """Return why a foreman is gone, in a few words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    named = next((line for line in lines if "exit code" in line or "ModuleNotFoundError" in line), last)
    return f"{type(error).__name__}: {named[:200]}"


def why_refused(error: BaseException, address: str) -> str:
    """Return why a cluster cannot be used, in one line."""
    text = " ".join(str(error).split())
    if "ersion mismatch" in text:
        words = text.replace("This process", "; this process").replace(" :", ":")
        return f"the cluster at {address} has another version of Ray or Python: {words}"
    if address == AUTO and isinstance(error, ConnectionError):
        return f"no Ray cluster was found from here, or not with this token: {text}"
    if isinstance(error, ConnectionError):  # somebody answers there: that was checked before
        return f"cannot connect to {address} with this token: it is a wrong one, or no Ray cluster is there"
    return f"the cluster at {address} cannot be used: {type(error).__name__}: {text[:300]}"


def main(descriptor: int, dies_with_parent: int) -> None:
    """Be the bridge of the learner at the other end of this socket."""
    if dies_with_parent:
        die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wire = Wire(socket.socket(fileno=descriptor), ClusterKind)
    messages: list[tuple[ClusterKind, bytes]] = []
    while len(messages) < 2:
        try:
            messages += wire.receive()
        except EOFError:
            return
        time.sleep(0.005)
    (_, body), (_, start), *rest = messages
    connect, _ = unpack(body)
    try:
        ray.init(
            address=connect["address"], namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR
        )
    except Exception as error:  # whatever it is, the learner tells it
        with contextlib.suppress(OSError):
            wire.send(ClusterKind.REFUSED, pack({"text": why_refused(error, connect["address"])}))
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ray has replaced it
    bridge = Bridge(wire, connect, start)
    asyncio.run(_run(bridge, rest))
    ray.shutdown()
    sys.stderr.flush()
    os._exit(0)


async def _run(bridge: Bridge, rest: list[tuple[ClusterKind, bytes]]) -> None:
    bridge.take(rest)
    await bridge.run()
