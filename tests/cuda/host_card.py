"""A card that is this processor: the methods of ``robokit.engine.cuda.driver.Card``, and memory of the host.

It runs the kernels' own text: what is written for the card is compiled for the host with the state spaces
taken out, and a launch is a loop over the threads. So layout, dispatch and arguments are tested without a
card, but not what threads do together, nor what ptxas makes of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from robokit.engine.cuda import assemble

SPECIAL = ("tid.x", "ctaid.x", "ntid.x", "nctaid.x", "laneid")
KERNEL = re.compile(r"define\s+(?:dso_local\s+)?ptx_kernel\s+void\s+@([\w.$]+)\(([^)]*)\)")
SLOTS = {"ptr": "ptr", "i64": "i64", "i32": "i32", "double": "double", "float": "float"}


def for_host(text: str) -> str:
    """A module for the card as one for the host: no state spaces, thread numbers from variables."""
    text = re.sub(r" ?addrspace\(\d+\)", "", text)
    text = re.sub(r"addrspacecast (ptr \S+ to ptr)", r"bitcast \1", text)
    text = re.sub(r"(?m)^target (triple|datalayout).*$", "", text)
    for name in SPECIAL:
        text = re.sub(rf"(?m)^declare i32 @llvm\.nvvm\.read\.ptx\.sreg\.{re.escape(name)}\(\).*$", "", text)
        text = text.replace(f"@llvm.nvvm.read.ptx.sreg.{name}(", f"@thread.{name}(")
    text = re.sub(r"external global \[0 x (\w+)\]", rf"global [{SHARED} x \1] zeroinitializer", text)
    text = text.replace("@llvm.nvvm.barrier0(", "@thread.barrier(")
    text = text.replace("@llvm.nvvm.vote.any.sync(", "@thread.any(")
    kernels = KERNEL.findall(text)
    text = text.replace("ptx_kernel ", "")
    read = "".join(f"declare i32 @thread.{name}()\n" for name in SPECIAL if f"@thread.{name}(" in text)
    if kernels:
        read += "declare void @thread.set(i32, i32, i32, i32)\n"
    return "\n".join([read, text, *(_loop(name, parameters) for name, parameters in kernels)])


def _loop(name: str, parameters: str) -> str:
    """The function ``launch.NAME(words, grid, block)``: the kernel in every thread, one after the other.

    And ``team.NAME(words, warp, warps, grid)``: in the threads of one warp of each block, while others do so
    in the other warps; they wait for each other at each barrier.
    """
    kinds = [part.split()[0] for part in parameters.split(",") if part.strip()]
    loads = "".join(
        f"  %p{k} = getelementptr i64, ptr %words, i64 {k}\n  %a{k} = load {SLOTS[kind]}, ptr %p{k}\n"
        for k, kind in enumerate(kinds)
    )
    given = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(kinds))
    return f"""
define void @launch.{name}(ptr %words, i32 %grid, i32 %block) {{
entry:
{loads}  br label %thread
thread:
  %k = phi i32 [0, %entry], [%next, %thread]
  %tid = urem i32 %k, %block
  %cta = udiv i32 %k, %block
  call void @thread.set(i32 %tid, i32 %cta, i32 %block, i32 %grid)
  call void @{name}({given})
  %next = add i32 %k, 1
  %all = mul i32 %grid, %block
  %more = icmp ult i32 %next, %all
  br i1 %more, label %thread, label %done
done:
  ret void
}}
define void @team.{name}(ptr %words, i32 %warp, i32 %warps, i32 %grid) {{
entry:
{loads}  %first = mul i32 %warp, 32
  %block = mul i32 %warps, 32
  %all = mul i32 %grid, 32
  br label %thread
thread:
  %k = phi i32 [0, %entry], [%next, %thread]
  %lane = urem i32 %k, 32
  %cta = udiv i32 %k, 32
  %tid = add i32 %first, %lane
  call void @thread.set(i32 %tid, i32 %cta, i32 %block, i32 %grid)
  call void @{name}({given})
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, %all
  br i1 %more, label %thread, label %done
done:
  ret void
}}
"""


SHARED = 232448 // 4  # numbers in a block's shared memory


LIBC = ctypes.CDLL(None)
KEYS = [ctypes.c_uint() for _ in SPECIAL]
for key in KEYS:
    LIBC.pthread_key_create(ctypes.byref(key), None)
GATE = ctypes.create_string_buffer(64)  # a barrier of POSIX threads

_numbers = "".join(
    f"""define i32 @"thread.{n}"() {{
  %p = call ptr @pthread_getspecific(i32 {key.value})
  %x = ptrtoint ptr %p to i32
  ret i32 %x
}}
"""
    for n, key in zip(SPECIAL, KEYS, strict=True)
)
_set = "".join(
    f"  %p{v} = inttoptr i32 %{v} to ptr\n"
    f"  %s{v} = call i32 @pthread_setspecific(i32 {key.value}, ptr %p{v})\n"
    for v, key in zip("abcd", KEYS, strict=False)
)
THREADS = f"""declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @pthread_barrier_wait(ptr)
{_numbers}define void @thread.set(i32 %a, i32 %b, i32 %c, i32 %d) {{
{_set}  ret void
}}
define i1 @thread.any(i32 %threads, i1 %x) {{
  ret i1 %x
}}
define void @thread.barrier() {{
  %x = call i32 @pthread_barrier_wait(ptr inttoptr (i64 {ctypes.addressof(GATE)} to ptr))
  ret void
}}
"""


class Module:
    """Machine code of the host, and the functions in it."""

    def __init__(self, card: HostCard, text: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        context = llvm.create_context()
        whole = llvm.parse_assembly(THREADS, context)
        for part in assemble.modules(text):
            whole.link_in(llvm.parse_assembly(for_host(part), context))
        cpu, features = (
            llvm.get_host_cpu_name(),
            llvm.get_host_cpu_features().flatten(),
        )  # fused multiply-adds
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(cpu=cpu, features=features, opt=1, jit=True)
        whole.triple, whole.data_layout = machine.triple, str(machine.target_data)
        whole.verify()
        self.card, self._engine = card, llvm.create_mcjit_compiler(whole, machine)
        self._engine.finalize_object()
        for kept in (context, self._engine):  # a context must not be freed before the code that is in it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

    def function(self, name: str) -> Function:
        """The kernel of that name."""
        return Function(self, name)


class Function:
    """A kernel."""

    registers, local = 255, 0

    def __init__(self, module: Module, name: str) -> None:
        self.module, find = module, module._engine.get_function_address
        assert find(f"launch.{name}"), f"no kernel {name}"
        integer = ctypes.c_int32
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, integer, integer)(find(f"launch.{name}"))
        self.team = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *3 * [integer])(find(f"team.{name}"))

    def give_shared(self, size: int) -> None:
        """A block's shared memory."""
        assert size <= 4 * SHARED

    def resident(self, threads: int) -> int:
        """Blocks of a multiprocessor."""
        return 1


class Event:
    """A moment."""

    def __init__(self) -> None:
        self.at = time.perf_counter()

    def before(self, stream: int) -> None:
        """Nothing to wait for."""

    def record(self, stream: int) -> None:
        """Now."""
        self.at = time.perf_counter()

    def since(self, earlier: Event) -> float:
        """Seconds."""
        return self.at - earlier.at


class HostCard:
    """This processor with the methods of a card.

    Attributes:
        launches: (blocks, threads) of each launch so far.
        held: memory that was allocated and not freed, by address.
    """

    name, capability, arch = "a card that is the processor", (9, 0), "sm_90"
    multiprocessors, size, identity = 2, 1 << 32, "the processor"
    side = 99

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.launches: list[tuple[int, int]] = []
        self.held: dict[int, Any] = {}

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Nothing to do."""
        yield

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and all."""
        return self.size, self.size

    def assemble(self, text: str) -> bytes:
        """The text itself."""
        return text.encode()

    def load(self, code: bytes) -> Module:
        """Of what ``assemble`` gave."""
        return Module(self, code.decode())

    def launch(
        self,
        function: Function,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        stream: int = 0,
        shared: int = 0,
    ) -> None:
        """All threads, one after the other; with shared memory the warps of a block at the same time."""
        self.launches.append((blocks, threads))
        words = (ctypes.c_uint64 * len(arguments))(*(getattr(x, "value", x) for x in arguments))
        place, warps = ctypes.addressof(words), threads // 32
        if not shared:
            function.run(place, blocks, threads)
            return
        LIBC.pthread_barrier_init(GATE, None, warps)
        with ThreadPoolExecutor(warps) as pool:
            for each in [pool.submit(function.team, place, w, warps, blocks) for w in range(warps)]:
                each.result()

    def allocate(self, size: int, stream: int = 0) -> int:
        """Memory, 0xff in every byte: NaN where nobody writes."""
        made = np.full(size + 256, 0xFF, np.uint8)
        place = -(-made.ctypes.data // 256) * 256
        self.held[place] = made
        return place

    def free(self, pointer: int, stream: int = 0) -> None:
        """Memory back."""
        del self.held[pointer]

    def write(self, pointer: int, array: np.ndarray, stream: int = 0) -> None:
        """To the card, from contiguous memory."""
        assert array.flags.c_contiguous
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def read(self, array: np.ndarray, pointer: int, stream: int = 0) -> None:
        """From the card, into contiguous memory."""
        assert array.flags.c_contiguous
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)

    def copy(self, to: int, source: int, size: int, stream: int = 0) -> None:
        """On the card."""
        ctypes.memmove(to, source, size)

    def fill(self, pointer: int, size: int, byte: int = 0, stream: int = 0) -> None:
        """Set all bytes."""
        ctypes.memset(pointer, byte, size)

    def synchronize(self, stream: int = 0) -> None:
        """Nothing to wait for."""

    def capturing(self, stream: int = 0) -> int:
        """There are no graphs."""
        return 0

    @contextlib.contextmanager
    def relaxed(self) -> Iterator[None]:
        """There are no graphs."""
        yield

    @contextlib.contextmanager
    def aside(self) -> Iterator[int]:
        """The stream on which memory is prepared."""
        yield self.side
        self.synchronize(self.side)

    def event(self, stream: int = 0) -> Event:
        """Now."""
        return Event()
