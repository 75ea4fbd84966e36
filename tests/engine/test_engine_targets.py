"""Code for processors that are not here: emitted, and looked at.

What is checked: the arithmetic is done in vectors of the target's width with fused multiply-add, and the
code needs nothing from outside its module, so that it can be loaded anywhere.
"""

from __future__ import annotations

import re
import struct

import ladder
import numpy as np
import pytest

from robokit import disk_cache
from robokit.dynamics.build import flat_function, outputs, sizes
from robokit.dynamics.table import KERNELS
from robokit.engine import Kernel
from robokit.engine.backend import llvm
from robokit.engine.backend.targets import Target
from robokit.engine.emit.batch_module import batch_module
from robokit.engine.emit.ir import FLOAT32, FLOAT64
from robokit.engine.emit.single_module import single_module
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.passes import similarity
from robokit.engine.signature import ArrayOf
from robokit.engine.trace.record import trace
from robokit.model import ModelBuilder, Placement
from robokit.model.robot import quaternion_offsets
from robokit.spatial.control_flow import call, whole

# triple, cpu, doubles a vector, a vector's multiplication, a fused one, registers that the target has not
TARGETS = {
    "ARM64": ("aarch64-linux-gnu", "", 2, r"fmul\s+v\d+\.2d", r"fml[as]\s+v\d+\.2d", r"\bz\d+\.d"),
    "Apple M1": ("arm64-apple-macosx", "apple-m1", 2, r"fmul\.2d\s+v", r"fml[as]\.2d\s+v", r"\bz\d+\.d"),
    "AVX2": ("x86_64-linux-gnu", "x86-64-v3", 4, r"vmulpd.*%ymm", r"vfn?m(add|sub)\d+pd.*%ymm", r"%zmm"),
    "AVX-512": ("x86_64-linux-gnu", "x86-64-v4", 8, r"vmulpd.*%zmm", r"vfn?m(add|sub)\d+pd.*%zmm", None),
    "SSE2": ("x86_64-linux-gnu", "x86-64", 2, r"mulpd.*%xmm", None, r"%ymm"),
}


def equal_links(n):
    """A chain that repeats itself."""
    builder = ModelBuilder("equal").link("l0")
    for k in range(n):
        builder.link(f"l{k + 1}", 1.0, (0.1, 0.02, -0.3), np.diag([0.02, 0.03, 0.02]))
        place = Placement(np.eye(3), (0.0, 0.01, -0.5))
        builder.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, axis=((1, 0, 0), (0, 1, 0))[k % 2])
    return builder.build()


def program(name, robot):
    row = KERNELS[name]
    inputs = sizes(row, robot)
    quaternions = [(0, k) for k in quaternion_offsets(robot)]
    return trace(flat_function(row, robot), inputs, outputs(row, robot)), quaternions


@pytest.fixture(scope="module")
def rnea():
    return program("rnea", ladder.chain(4, base="floating"))


@pytest.fixture(scope="module", params=TARGETS)
def emitted(request, rnea):
    triple, cpu, width, *patterns = TARGETS[request.param]
    ir, _ = batch_module(rnea[0], width, "k", rnea[1], fused=patterns[1] is not None)
    return (*llvm.cross(ir, triple, cpu), patterns)


def test_batches_are_vectors_of_the_targets_width(emitted, rnea):
    assembly, _, (multiply, fused, foreign) = emitted
    counts = rnea[0].counts
    plain = len(re.findall(multiply, assembly))
    together = len(re.findall(fused, assembly)) if fused else 0
    # Every multiplication of the function is one vector instruction (checks and sines add some).
    assert counts["mul"] <= plain + together <= 1.3 * counts["mul"] + 200
    assert together > 0.25 * counts["mul"] or fused is None  # before AVX2 there is none
    assert foreign is None or not re.search(foreign, assembly)


FUSED = {
    "ARM64": r"\tf(?:ml[as]|n?m(?:add|sub))\s",
    "AVX2": r"\tvfn?m(?:add|sub)\d",
    "AVX-512": r"\tvfn?m(?:add|sub)\d",
}


@pytest.mark.parametrize("target", FUSED)
@pytest.mark.parametrize("one", [False, True], ids=["lanes", "one state"])
def test_only_what_the_engine_fuses_is_fused(target, one, rnea):
    triple, cpu, width, *_ = TARGETS[target]
    for fused in (False, True):
        ir, _ = batch_module(rnea[0], 1 if one else width, "k", linked=True, width=width, fused=fused)
        wanted = len(re.findall(r"= call [^\n]*@llvm\.fma\.", ir))
        found = len(re.findall(FUSED[target], llvm.cross_assembly(ir, triple, cpu)))
        assert found <= wanted  # a product with 1 needs no instruction
        assert (found > 100) == (wanted > 100) == fused


def returning(count):
    """A kernel that calls a function with so many results, and holds more numbers than SSE has registers."""

    def several(a, k):
        return *(a * (i + 2.0) for i in range(count)), k + 1

    def held(x, out):
        products = [x[k] * x[k + 1] for k in range(24)]
        *found, k = call(several, x[0], whole(x[1]))
        total = x[k]
        for y in products:
            total = total * y
        for y in (*found, *products):
            total = total + y
        out[0] = total

    return LoopKernel("held", held, [], [ArrayOf("x", (25,)), ArrayOf("out", (1,), "out")])


@pytest.mark.parametrize("count", range(1, 8))
def test_functions_return_numbers_in_registers_of_sse_or_in_memory(count):
    """The third and fourth on the stack of x87 ended in an illegal instruction on processors with AVX-512."""
    kernel = returning(count)
    for lanes, real in ((1, FLOAT64), (1, FLOAT32), (8, FLOAT64)):
        text = kernel.text(lanes, real).removeprefix(llvm.LOOPS)  # as it is written: no calls vanish
        assembly = llvm.cross_assembly(text, "x86_64-linux-gnu", "x86-64-v4")
        assert re.search(r"\tcall\w*\s+held_function", assembly) and not re.search(r"\tf(ld|st)", assembly)
    x = np.linspace(0.5, 1.5, 25)
    assert kernel(x=x)["out"] == kernel(x=x, engine="python")["out"]


def defined_and_needed(code: bytes) -> tuple[set[str], set[str]]:
    """Global symbols of an ELF file: those it has and those it wants (ELF64, little endian)."""
    (sections,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + k * size) for k in range(count)]
    has, wants = set(), set()
    for header in headers:
        if header[1] != 2:  # SHT_SYMTAB
            continue
        names = headers[header[6]][4]
        for place in range(header[4] + 24, header[4] + header[5], 24):
            name, info, _, section = struct.unpack_from("<IBBH", code, place)
            start = names + name
            if info >> 4:  # global
                (wants if section == 0 else has).add(code[start : code.index(b"\0", start)].decode())
    return has, wants


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "Apple M1"])
@pytest.mark.parametrize("name", ["aba_f_ext", "forward_kinematics"])
def test_nothing_is_needed_from_outside(name, target):
    triple, cpu, width, *_ = TARGETS[target]
    graph, quaternions = program(name, ladder.chain(1, base="floating"))
    for drivers, (ir, _) in (
        ({"k_batch", "k_passes"}, batch_module(graph, width, "k", quaternions, True)),
        ({"k_linked"}, batch_module(graph, width, "k", linked=True)),
        ({"k_linked", "k_single"}, single_module(graph, width, "k", quaternions, True)),
    ):
        has, wants = defined_and_needed(llvm.cross(ir, triple, cpu)[1])
        assert has == drivers
        assert wants <= {"_GLOBAL_OFFSET_TABLE_"}


@pytest.mark.parametrize(
    ("target", "lanes", "multiply", "fused"),
    [
        ("ARM64", 4, r"fmul\s+v\d+\.4s", r"fml[as]\s+v\d+\.4s"),
        ("AVX-512", 16, r"vmulps.*%zmm", r"vfn?m(?:add|sub)\d+ps.*%zmm"),
    ],
)
def test_single_precision_has_twice_the_lanes(target, lanes, multiply, fused, rnea):
    triple, cpu, width, *_ = TARGETS[target]
    assert lanes == 2 * width
    ir, _ = batch_module(rnea[0], lanes, "k", rnea[1], False, FLOAT32)
    assembly, code = llvm.cross(ir, triple, cpu)
    products = len(re.findall(multiply, assembly)) + len(re.findall(fused, assembly))
    assert products >= rnea[0].counts["mul"]
    assert defined_and_needed(code)[1] <= {"_GLOBAL_OFFSET_TABLE_"}


@pytest.mark.parametrize("target", ["ARM64", "AVX-512"])
def test_shared_steps_are_vectors_too_and_need_nothing(target, monkeypatch):
    monkeypatch.setattr(similarity, "WORTH", 0)
    monkeypatch.setattr(similarity, "LEAST", 2)
    triple, cpu, width, multiply, fused, _ = TARGETS[target]
    graph, quaternions = program("aba", equal_links(40))
    shared = similarity.rerolled(graph, similarity.PIECE)
    assert shared is not None and shared.written < len(graph.order) / 4
    ir, _ = batch_module(graph, width, "k", quaternions, True, FLOAT64, shared)
    assembly, code = llvm.cross(ir, triple, cpu)
    assert len(re.findall(multiply, assembly)) + len(re.findall(fused, assembly)) > 300
    assert scalar(assembly) == 0
    has, wants = defined_and_needed(code)
    assert has == {"k_batch", "k_passes"} and wants <= {"_GLOBAL_OFFSET_TABLE_"}


def test_a_call_to_the_outside_is_seen():
    body = "%y = call double @sin(double %x)\nret double %y"
    ir = f"declare double @sin(double)\ndefine double @k_batch(double %x) {{\n{body}\n}}"
    _, code = llvm.cross(ir, "aarch64-linux-gnu")
    assert defined_and_needed(code) == ({"k_batch"}, {"sin"})


def test_an_unknown_target_is_refused():
    with pytest.raises(llvm.CompilerMissing, match="no code for pdp11"):
        llvm.cross("", "pdp11-unknown-unix")


def scalar(assembly: str) -> int:
    """Multiplications and divisions of single doubles."""
    arm, x86 = r"f(?:mul|div|n?madd|n?msub)\s+d\d+", r"v?(?:mul|div)sd\b|vfn?m(?:add|sub)\d+sd\b"
    return len(re.findall(rf"\b(?:{arm}|{x86})", assembly))


def test_no_vector_is_taken_apart_for_arithmetic(emitted, rnea):
    assembly, *_ = emitted
    assert scalar(assembly) == 0


@pytest.mark.parametrize("target", TARGETS)
def test_single_states_are_scalars(target, rnea):
    # The way of counting sees them where they are.
    triple, cpu, width, *_ = TARGETS[target]
    ir, _ = single_module(rnea[0], width, "k", rnea[1])
    assert scalar(llvm.cross_assembly(ir, triple, cpu)) > 0


@pytest.mark.parametrize(
    ("target", "past", "fence"),
    [
        ("ARM64", r"\bstnp\b", r"\bdmb\b"),
        ("AVX2", r"vmovntp[sd]\s+%ymm", r"\block\b|\bmfence\b"),
        ("AVX-512", r"vmovntp[sd]\s+%zmm", r"\block\b|\bmfence\b"),
        ("SSE2", r"movntp[sd]\s+%xmm", r"\block\b|\bmfence\b"),
    ],
)
def test_stores_past_the_caches_are_there_before_the_driver_returns(target, past, fence):
    triple, cpu, width, *_ = TARGETS[target]
    graph, quaternions = program("crba", ladder.chain(8, base="floating"))
    ir, _ = batch_module(graph, width, "k", quaternions)
    assembly, code = llvm.cross(ir, triple, cpu)
    driver = assembly[assembly.index("\nk_batch:") :]
    assert re.search(past, assembly) and re.search(fence, driver[: driver.index("\tret")])
    assert defined_and_needed(code)[1] <= {"_GLOBAL_OFFSET_TABLE_"}


class Arm(Target):
    """A target that cannot run here: it shows all that a new one takes."""

    name, real, lanes, bits = "arm64", FLOAT64, 2, 128
    features = "aarch64-linux-gnu"

    def __init__(self):
        self.assembled = []

    def write(self, kernel):
        return batch_module(
            kernel.program, self.lanes, kernel.symbol, kernel.signature.quaternions, kernel.signature.finite
        )

    def assemble(self, text):
        self.assembled.append(text)
        return llvm.cross(text, self.features)[1]

    def load(self, code):
        raise llvm.CompilerMissing("code of another machine")


def test_a_kernel_is_made_for_any_target_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    arm = Arm()

    def build():
        function = lambda x: [[a * 2.0 + 1.0 for a in x]]  # noqa: E731
        return Kernel("scale", [("x", 6)], [("y", (6,))], function, key=b"scale")

    code = build().compiled(arm)
    assert defined_and_needed(code)[0] == {f"robokit_scale_{name}" for name in ("batch", "passes")}
    assert "<2 x double>" in arm.assembled[0]
    assert build().compiled(arm) == code and len(arm.assembled) == 1
    kernel = build()
    assert kernel(np.ones((3, 6))).tolist() == [[3.0] * 6] * 3, "this machine's code has a file of its own"
    assert sorted(each.part for each in disk_cache.entries()) == ["arm64", "batch"]


def test_a_target_that_cannot_be_loaded_leaves_the_plain_text():
    kernel = Kernel("scale", [("x", 2)], [("y", (2,))], lambda x: [[a * 2.0 for a in x]])
    assert kernel._maker.code(Arm()) is None
    assert kernel._maker.refused == "code of another machine"
    assert kernel(np.ones(2)).tolist() == [2.0, 2.0]


def test_what_others_compile_in_this_process_stays_the_same(tmp_path, monkeypatch):
    robot, row = ladder.pendulum(), KERNELS["rnea"]
    program = trace(flat_function(row, robot), sizes(row, robot), outputs(row, robot))
    text, _ = single_module(program, 2, "others")

    def others() -> bytes:
        binding = llvm._binding()
        module = binding.parse_assembly(text, context=binding.create_context())
        return llvm._target_machine().emit_object(module)

    before = others()
    with llvm._unscheduled(), llvm._unscheduled():
        during = others()
    assert during != before, "the test sees the option"
    llvm.assemble(text)
    assert others() == before
